//! Combinations: several encodings that act together, and the expressions that name them.
//!
//! The hooks of the parts are applied one after the other, and what they add to the logits is summed.
//! A part that scales the products of queries and keys is refused beside one that changes them too.
//! A single encoding is a combination of one part.
//!
//! ```
//! use pe_zoo::Combination;
//! let both = Combination::parse("rope + cope{max_positions=16}")?;
//! assert_eq!(both.to_string(), "cope{max_positions=16}+rope");
//! assert_eq!(both.card().label, "CoPE{max_positions=16} + RoPE");
//! let refused = Combination::parse("rope+rope").unwrap_err().to_string();
//! assert!(refused.contains("given twice"), "{refused}");
//! # Ok::<(), pe_zoo::PeError>(())
//! ```
//!
//! # Grammar
//!
//! ```text
//! expression = sum { "/" sum }
//! sum        = operand { "+" operand }
//! operand    = id [ "{" options "}" ] [ "(" expression ")" ] | "(" expression ")"
//! options    = [ key "=" value { "," key "=" value } ]
//! value      = number | true | false | null | word | "text" | "[" values "]" | "{" options "}"
//! ```
//!
//! A word is a letter followed by letters, digits, `-`, `_` and `.`; other text is written in double
//! quotes. White space is ignored. Options are settings of the encoding; settings that are left out
//! keep their defaults. Brackets are for encodings that have no effect by themselves, as
//! `randomized(rope)`, for those with a setting that names another encoding, as `dape(fire)`, and for those that act
//! through others, which have a setting of type [`Inner`].
//!
//! Between slashes stand the encodings of successive layers, [`layers`](crate::zoo::layers), as `rope/rope/rope/nope`.
//!
//! The **canonical text** sorts parts by id and leaves out settings at their defaults. It is the id
//! of the combination in records, reports and suites. Parsing it gives the same combination.

mod grammar;
mod inner;
mod module;
mod print;
mod rules;
mod scalar;

pub use inner::Inner;
pub use module::Combined;
pub(crate) use scalar::owner_of_parameter;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use crate::card::{ActsOn, Composition, Properties};
use crate::probe;
use crate::registry::{EncodingConfig, Registry};
use crate::{Cost, Dims, PeError};

/// One or more encodings that act together, with their settings.
#[derive(Debug, Clone)]
pub struct Combination {
    /// Sorted by id, those that choose the positions of others first.
    parts: Vec<EncodingConfig>,
    card: Arc<CombinationCard>,
}

/// Description of a combination: the cards of its parts, joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinationCard {
    /// Canonical text of the combination.
    pub id: String,
    /// Display name in tables and figures.
    pub label: String,
    /// Effect of each part, one sentence per part.
    pub summary: String,
    /// Number of learned parameters as a formula.
    pub parameters: String,
    /// Authors and years of the papers.
    pub paper: String,
    /// Address of the first part's paper.
    pub url: String,
}

impl PartialEq for Combination {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Registry {
    /// Reads an expression; see [`compose`](crate::compose) for the grammar.
    ///
    /// # Errors
    /// [`PeError::Expression`] with the place, [`PeError::UnknownId`], or as [`Combination::new`].
    pub fn parse(&self, text: &str) -> Result<Combination, PeError> {
        grammar::read(self, text, Map::new())
    }

    /// Reads an expression of one part with further settings for it.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and if settings are given for an expression of several parts.
    pub fn parse_with_settings(
        &self,
        text: &str,
        settings: Map<String, Value>,
    ) -> Result<Combination, PeError> {
        grammar::read(self, text, settings)
    }
}

impl Combination {
    /// Combines encodings.
    ///
    /// # Errors
    /// [`PeError::Combination`] if parts exclude each other, or a part has no effect beside the others.
    pub fn new(mut parts: Vec<EncodingConfig>) -> Result<Self, PeError> {
        parts.sort_by_key(|part| (!is_over(part), part.card().id));
        if let Some(reason) = rules::reason_against(&parts)? {
            return Err(PeError::Combination { text: print::card(&parts).id, reason });
        }
        let card = Arc::new(print::card(&parts));
        Ok(Self { parts, card })
    }

    /// Reads an expression of the encodings of this crate; see [`Registry::parse`] for others.
    ///
    /// # Errors
    /// As [`Registry::parse`].
    pub fn parse(text: &str) -> Result<Self, PeError> {
        Registry::builtin().parse(text)
    }

    /// Splits a list of expressions at the commas outside of brackets and quotes.
    pub fn split_list(text: &str) -> Vec<&str> {
        grammar::split_list(text)
    }

    /// The parts, sorted by id, those that choose the positions of others first.
    pub fn parts(&self) -> &[EncodingConfig] {
        &self.parts
    }

    /// Description for tables, reports and help texts.
    pub fn card(&self) -> &CombinationCard {
        &self.card
    }

    /// Returns the combination if it acts inside of attention only, so that [`attention::layer`](crate::attention::layer)
    /// alone applies it: it adds nothing to embeddings, chooses no positions and carries no state from layer to layer.
    ///
    /// # Errors
    /// [`PeError::Combination`] otherwise, with the hooks that must be called as well, and [`PeError::Probe`] if a part cannot
    /// be probed.
    pub fn inside_attention(self) -> Result<Self, PeError> {
        let mut outside = Vec::new();
        for part in &self.parts {
            let properties = probe::properties(part)?;
            let hooks = [
                (properties.acts_on(ActsOn::Positions), "positions"),
                (properties.acts_on(ActsOn::Embedding), "embed"),
                (probe::carries_state(part)?, "update"),
            ];
            let hooks = hooks.into_iter().filter(|(needed, _)| *needed);
            outside.extend(hooks.map(|(_, hook)| format!("`{hook}` of `{}`", part.card().id)));
        }
        if outside.is_empty() {
            return Ok(self);
        }
        let reason = format!(
            "it also acts outside of attention; call {} in the model, as in the second example of the documentation \
             of pe-zoo, or choose another encoding",
            outside.join(" and ")
        );
        Err(PeError::Combination { text: self.card.id.clone(), reason })
    }

    /// Properties of the parts together, found by probing each part.
    ///
    /// # Errors
    /// [`PeError::Probe`] if a part cannot be probed.
    pub fn properties(&self) -> Result<Properties, PeError> {
        Ok(rules::together(&probed(&self.parts)?))
    }

    /// Ids and settings, which represent the encoding in a cell's key.
    pub fn identity(&self) -> Value {
        match self.parts.as_slice() {
            [part] => part.identity(),
            parts => {
                let ids = parts.iter().map(|part| part.card().id).collect::<Vec<_>>();
                json!({ "id": ids.join("+"), "settings": self })
            }
        }
    }

    /// Dimensions for the encodings that act together with this combination.
    pub fn dims_beside(&self, dims: &Dims) -> Dims {
        self.parts.iter().fold(*dims, |dims, part| part.dims_beside(&dims))
    }

    /// Refuses settings and sizes that cannot work, before anything is built.
    ///
    /// # Errors
    /// [`PeError::InvalidSetting`] with the field.
    pub fn check(&self, dims: &Dims) -> Result<(), PeError> {
        // First, because sizes beside other parts are computed from their settings.
        self.parts.iter().try_for_each(EncodingConfig::check_limits)?;
        self.sized(dims).try_for_each(|(part, dims)| part.check(&dims))
    }

    /// Builds all parts; `rng` is the source of all random numbers.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn init(
        &self,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Combined, PeError> {
        self.check(dims)?;
        let parts = self
            .sized(dims)
            .map(|(part, dims)| part.build(&dims, rng, device))
            .collect::<Result<Vec<_>, _>>()?;
        let properties = if parts.len() > 1 { probed(&self.parts)? } else { Vec::new() };
        // An encoding that fails when it is probed can still be built, so that the conformance kit can run all its
        // checks; `biases` refuses it, and with it whatever trains.
        let biases =
            self.parts.iter().map(|part| probe::biases(part).unwrap_or_default()).collect();
        Ok(Combined::new(&properties, biases, self.horizons(dims.layers), parts, dims, device))
    }

    /// Names of the biases and slopes of each part; see [`probe::biases`].
    ///
    /// # Errors
    /// [`PeError::Probe`] if a part cannot be probed.
    pub fn biases(&self) -> Result<Vec<Arc<BTreeSet<String>>>, PeError> {
        self.parts.iter().map(probe::biases).collect()
    }

    /// Number of learned parameters in the whole model; `None` if a part states no formula for it.
    pub fn param_count(&self, dims: &Dims) -> Option<usize> {
        self.sized(dims).map(|(part, dims)| part.param_formula(&dims)).sum()
    }

    /// Number of positions that a row sees in each layer; `None`: all. Where positions are chosen, their distances change as a
    /// sequence grows, and all columns are kept.
    pub fn horizons(&self, layers: usize) -> Vec<Option<usize>> {
        self.horizons_of(layers, |_| true)
    }

    /// As [`horizons`](Self::horizons), of some parts alone.
    fn horizons_of(
        &self,
        layers: usize,
        wanted: impl Fn(&EncodingConfig) -> bool,
    ) -> Vec<Option<usize>> {
        if self.parts.iter().any(is_over) {
            return vec![None; layers];
        }
        let parts = self.parts.iter().filter(|part| wanted(part)).collect::<Vec<_>>();
        let least = |layer| parts.iter().filter_map(|part| part.horizon(layers, layer)).min();
        (0..layers).map(least).collect()
    }

    /// As [`horizons`](Self::horizons), of one layer.
    pub(crate) fn horizon(&self, layers: usize, layer: usize) -> Option<usize> {
        if self.parts.iter().any(is_over) {
            return None;
        }
        self.parts.iter().filter_map(|part| part.horizon(layers, layer)).min()
    }

    /// Operations that the parts add to one forward pass over one sequence of `len` tokens, all pairs
    /// of tokens counted; `None` if a part does not state its cost.
    pub fn cost(&self, dims: &Dims, len: usize) -> Option<Cost> {
        let costs = self.sized(dims).map(|(part, dims)| part.cost(&dims, len));
        Some(self.sum(dims, costs.collect::<Option<Vec<_>>>()?))
    }

    /// As [`cost`](Self::cost); products of a part that does not state its cost are counted by building
    /// it and running it at small lengths, and its other operations are left out.
    ///
    /// # Errors
    /// [`PeError::Probe`] if such a part cannot be built or counted.
    pub fn counted_cost(&self, dims: &Dims, len: usize) -> Result<Cost, PeError> {
        let costs = self.sized(dims).map(|(part, dims)| match part.cost(&dims, len) {
            Some(cost) => Ok(cost),
            None => {
                Ok(Cost::none().product("counted products", probe::products(part, &dims, len)?))
            }
        });
        Ok(self.sum(dims, costs.collect::<Result<Vec<_>, _>>()?))
    }

    /// Sums the costs of the parts.
    fn sum(&self, dims: &Dims, costs: Vec<Cost>) -> Cost {
        let wider = costs.len() > 1
            && probed(&self.parts).is_ok_and(|parts| parts.iter().any(|part| part.widens_queries));
        let sum = self.parts.iter().zip(costs).fold(Cost::none(), |sum, (part, cost)| {
            // The cost of an encoding by layer is already that within its own windows.
            let is_by_layer = matches!(part.composition(), Composition::Layers { .. });
            let horizons =
                self.horizons_of(dims.layers, |other| !(is_by_layer && std::ptr::eq(other, part)));
            sum.and(cost.within(&horizons))
        });
        sum.with_wider_queries(if wider { 2 } else { 1 })
    }

    /// Canonical text, the id of the combination in records, reports and suites.
    pub fn id(&self) -> &str {
        &self.card.id
    }

    /// Returns the dimensions for building one part.
    fn dims_of(&self, part: usize, dims: &Dims) -> Dims {
        let others = self.parts.iter().enumerate().filter(|(other, _)| *other != part);
        others.fold(*dims, |dims, (_, other)| other.dims_beside(&dims))
    }

    /// Iterates over the parts with the dimensions for building each.
    pub(crate) fn sized(&self, dims: &Dims) -> impl Iterator<Item = (&EncodingConfig, Dims)> {
        let dims = *dims;
        self.parts.iter().enumerate().map(move |(at, part)| (part, self.dims_of(at, &dims)))
    }
}

/// Whether an encoding has no effect by itself.
fn is_over(part: &EncodingConfig) -> bool {
    matches!(part.composition(), Composition::Over { .. })
}

fn probed(parts: &[EncodingConfig]) -> Result<Vec<Arc<Properties>>, PeError> {
    parts.iter().map(probe::properties).collect()
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.card.id)
    }
}

impl TryFrom<EncodingConfig> for Combination {
    type Error = PeError;

    fn try_from(part: EncodingConfig) -> Result<Self, PeError> {
        Self::new(vec![part])
    }
}

/// All settings of an encoding in the syntax of an expression, `{key=value,...}`; empty if it has
/// none.
pub fn settings_text(part: &EncodingConfig) -> String {
    print::all_options(part)
}

/// Serialises the settings of a single part, or a list of the ids and settings of several.
impl serde::Serialize for Combination {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.parts.as_slice() {
            [part] => part.serialize(serializer),
            parts => serializer.collect_seq(parts.iter().map(EncodingConfig::identity)),
        }
    }
}

#[cfg(test)]
mod tests;

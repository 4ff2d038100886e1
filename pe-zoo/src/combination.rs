//! Several encodings as one, and the expressions that name them.
//!
//! A combination is a value, not a class of its own: each part acts where it acts, and what two
//! parts add to the logits is summed. A single encoding is the combination of one part.
//!
//! ```
//! use pe_zoo::{Combination, EncodingConfig};
//! let both = Combination::parse("rope + cope{max_positions=16}")?;
//! assert_eq!(both.to_string(), "cope{max_positions=16}+rope");
//! assert_eq!(both.meta().label, "CoPE{max_positions=16} + RoPE");
//! let refused = Combination::parse("rope+rope").unwrap_err().to_string();
//! assert!(refused.contains("stands twice"), "{refused}");
//! # Ok::<(), pe_zoo::PeError>(())
//! ```
//!
//! # Grammar
//!
//! ```text
//! expression = part { "+" part }
//! part       = id [ "{" options "}" ] [ "(" expression ")" ]
//! options    = [ key "=" value { "," key "=" value } ]
//! value      = number | true | false | null | word | "text" | "[" values "]" | "{" options "}"
//! ```
//!
//! A word is a letter followed by letters, digits, `-`, `_` and `.`; other text stands in double
//! quotes. Blanks are free. Options are the settings of the encoding's file; what is left out
//! keeps its default. Brackets belong to encodings that stand over others, as
//! `randomized(rope)`, and to those that are built on another, whose settings say which.
//!
//! The **canonical text** sorts parts by id, leaves out settings at their defaults, and is the id
//! by which records, reports and suites know the combination. Printing and parsing again gives
//! the same combination.

mod grammar;
mod limits;
mod module;
mod print;
mod rules;
mod scalar;

pub use module::Combined;

use std::fmt;
use std::str::FromStr;

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use crate::meta::{Brackets, Conduct, PeMeta, Site};
use crate::zoo::PeConfig;
use crate::{Cost, Dims, EncodingConfig, PeError};

/// The settings of one or more encodings that act together.
#[derive(Debug, Clone)]
pub struct Combination {
    /// Sorted by id, those that choose positions first.
    parts: Vec<PeConfig>,
    meta: &'static PeMeta,
}

impl PartialEq for Combination {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Combination {
    /// Puts encodings together.
    ///
    /// # Errors
    /// [`PeError::Combination`] where two parts claim the same place, or a part does nothing
    /// beside the others.
    pub fn new(mut parts: Vec<PeConfig>) -> Result<Self, PeError> {
        parts.sort_by_key(|part| (!stands_over(part), part.meta().id));
        if let Some(reason) = rules::reason_against(&parts) {
            let ids = parts.iter().map(|part| part.meta().id).collect::<Vec<_>>();
            return Err(PeError::Combination { text: ids.join("+"), reason });
        }
        let meta = match parts.as_slice() {
            [part] if *part == default_of(part)? => part.meta(),
            _ => print::meta(&parts),
        };
        Ok(Self { parts, meta })
    }

    /// Reads an expression; see the module's documentation for the grammar.
    ///
    /// # Errors
    /// [`PeError::Expression`] with the place, [`PeError::UnknownId`], or as [`new`](Self::new).
    pub fn parse(text: &str) -> Result<Self, PeError> {
        grammar::read(text, Map::new())
    }

    /// Reads an expression of one part, with further options for it: the form that suites have.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and if there are options for an expression of several parts.
    pub fn with_options(text: &str, options: Map<String, Value>) -> Result<Self, PeError> {
        grammar::read(text, options)
    }

    /// Splits a list of expressions at those commas that stand in no brackets.
    pub fn split_list(text: &str) -> Vec<&str> {
        grammar::split_list(text)
    }

    /// The parts, sorted by id, one that chooses positions first.
    pub fn parts(&self) -> &[PeConfig] {
        &self.parts
    }

    /// The part for which `has` is true; the rules let no more than one through.
    fn place_of(&self, has: impl Fn(&PeConfig) -> bool) -> Option<usize> {
        self.parts.iter().position(has)
    }

    /// The sizes that one part is built for.
    fn dims_of(&self, part: usize, dims: &Dims) -> Dims {
        let others = self.parts.iter().enumerate().filter(|(other, _)| *other != part);
        others.fold(*dims, |dims, (_, other)| other.dims_beside(&dims))
    }

    /// Each part with the sizes that it is built for.
    fn sized(&self, dims: &Dims) -> impl Iterator<Item = (&PeConfig, Dims)> {
        let dims = *dims;
        self.parts.iter().enumerate().map(move |(at, part)| (part, self.dims_of(at, &dims)))
    }
}

fn stands_over(part: &PeConfig) -> bool {
    matches!(part.brackets(), Brackets::Beside { .. })
}

fn acts_on(part: &PeConfig, site: Site) -> bool {
    part.meta().sites.contains(&site)
}

fn conducts(part: &PeConfig, conduct: Conduct) -> bool {
    part.conduct().contains(&conduct)
}

fn default_of(part: &PeConfig) -> Result<PeConfig, PeError> {
    PeConfig::from_id(part.meta().id)
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.meta.id)
    }
}

impl FromStr for Combination {
    type Err = PeError;

    fn from_str(text: &str) -> Result<Self, PeError> {
        Self::parse(text)
    }
}

impl TryFrom<PeConfig> for Combination {
    type Error = PeError;

    fn try_from(part: PeConfig) -> Result<Self, PeError> {
        Self::new(vec![part])
    }
}

/// All settings of a part as an expression has them, `{key=value,…}`; empty if it has none.
pub fn settings_text(part: &PeConfig) -> String {
    print::all_options(part)
}

/// The settings of the one part, or a list of the parts' ids and settings.
impl serde::Serialize for Combination {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.parts.as_slice() {
            [part] => part.serialize(serializer),
            parts => serializer.collect_seq(parts.iter().map(EncodingConfig::identity)),
        }
    }
}

impl EncodingConfig for Combination {
    type Encoding = Combined;

    fn meta(&self) -> &'static PeMeta {
        self.meta
    }

    fn identity(&self) -> Value {
        match self.parts.as_slice() {
            [part] => part.identity(),
            parts => {
                let ids = parts.iter().map(|part| part.meta().id).collect::<Vec<_>>();
                json!({ "id": ids.join("+"), "settings": self })
            }
        }
    }

    fn conduct(&self) -> Vec<Conduct> {
        rules::conduct(&self.parts)
    }

    fn dims_beside(&self, dims: &Dims) -> Dims {
        self.parts.iter().fold(*dims, |dims, part| part.dims_beside(&dims))
    }

    fn check(&self, dims: &Dims) -> Result<(), PeError> {
        self.sized(dims).try_for_each(|(part, dims)| {
            limits::check(part)?;
            part.check(&dims)
        })
    }

    fn init(
        &self,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Combined, PeError> {
        let parts = self
            .sized(dims)
            .map(|(part, dims)| part.init(&dims, rng, device))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Combined::new(self, parts, dims, device))
    }

    fn param_count(&self, dims: &Dims) -> usize {
        self.sized(dims).map(|(part, dims)| part.param_count(&dims)).sum()
    }

    fn cost(&self, dims: &Dims, len: usize) -> Cost {
        let wider = self.parts.iter().any(|part| conducts(part, Conduct::WidensQueries));
        self.sized(dims)
            .fold(Cost::none(), |cost, (part, dims)| cost.and(part.cost(&dims, len)))
            .with_wider_queries(if wider { 2 } else { 1 })
    }
}

#[cfg(test)]
mod tests;

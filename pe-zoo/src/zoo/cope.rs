//! # CoPE: positions counted by gates that look at the content
//!
//! ## What it does
//! Each query opens or closes a gate at every earlier token; the position of a key is the sum of
//! the gates between it and the query. Such a position is in general not an integer, so a learned table is
//! interpolated between its entries. Another paper of 2026 calls clipped RoPE "CoPE" (Li et al., arXiv 2602.05258); that is
//! `rope{scaling={rope_type=clipped}}`.
//!
//! ## Formula
//! `g[i, j] = sigma(q_i . k_j / sqrt(D))`, `p[i, j] = min(sum of g[i, m] for m in j..=i, N - 1)`,
//! `z[i, j] = q_i . e[p]`, linear between `e[floor p]` and `e[ceil p]`,
//! `logit = q_i . k_j / sqrt(D) + z[i, j]`
//!
//! ## Shapes
//! `score: Contextual`, table `[D, max_positions]` per layer, shared by the heads. With separate
//! keys, `state: [B, H, T, D]`.
//!
//! ## Settings
//! `max_positions` (64, as in the paper's Listing 1): entries of the table; counts are clamped to
//! `max_positions - 1`.
//! `convention`: `listing` (default; formula above), `code` (the authors' default: `(q.k + z) /
//! sqrt(D)`), `equation` (equations 3 to 5: no division anywhere).
//! `gates`: `query-key` (default), `query-value`, or `separate-keys` (queries with separate keys, a
//! projection `[C, C]` of the layer's input in each layer).
//! `sharing`: `per-layer` (default) or `all-layers` (one table).
//! `layers`: `{ type = "all" }` (default), `{ type = "first" }`, or `{ type = "every", n = K }` (layers K, 2 K and so
//! on, counted from 1). Other layers have no encoding.
//!
//! ## Initial values
//! Tables: 0, as in the authors' code, so that the model is NoPE at step 0. Projections to separate keys: uniform in
//! `+-1 / sqrt(C)`, as PyTorch starts a linear layer.
//!
//! ## Deviations
//! Eq. 5 counts `p_max + 1` rows, Listing 1 has `npos`; `max_positions` is the number of rows. The authors'
//! `--cope-layers K` has a relative encoding in the other layers.
//!
//! ## References
//! Golovneva et al. 2024, "Contextual Position Encoding", arXiv 2405.18719; authors' code
//! `facebookresearch/RAM` `projects/cope/src/cope/context_position.py` at e6f051fbcf.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::{ScoreContext, StateContext};
use crate::ops::linear;
use crate::parts::by_head;
use crate::reference::cope::{self, GateSide};
use crate::reference::{Heads, ScalarInput, ScalarReference, table_f64};
use crate::score::{Contextual, ContextualFunction, GateSource, LogitScaling};
use crate::settings::{Sharing, of_layer};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, TokenState, init};

/// Source of the gate logits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gates {
    /// Products of queries and keys.
    #[default]
    QueryKey,
    /// Products of queries and values (the paper's value gates).
    QueryValue,
    /// Products of queries and separate keys (the paper's separate keys).
    SeparateKeys,
}

/// Layers that have the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Layers {
    /// All layers of the model.
    All {},
    /// The first layer only.
    First {},
    /// Layers `n`, `2 n` and so on, counted from 1.
    Every {
        /// Interval in layers; at least 1, at most the number of layers.
        n: usize,
    },
}

impl Layers {
    /// Number of layers, out of `layers`, that have the encoding.
    pub fn count(self, layers: usize) -> usize {
        (0..layers).filter(|layer| self.slot(*layer).is_some()).count()
    }

    /// Index of `layer` among the layers that have the encoding, counted from 0; `None` if it does
    /// not have it.
    pub fn slot(self, layer: usize) -> Option<usize> {
        match self {
            Self::All {} => Some(layer),
            Self::First {} => (layer == 0).then_some(0),
            Self::Every { n } => (layer + 1).is_multiple_of(n).then(|| (layer + 1) / n - 1),
        }
    }

    /// Checks that at least one layer has the encoding.
    ///
    /// # Errors
    /// [`PeError::InvalidSetting`] for `layers.n` of encoding `pe`.
    pub fn check(self, pe: &str, dims: &Dims) -> Result<(), PeError> {
        match self {
            Self::Every { n } => {
                let expected = format!("1 to {}, the number of layers", dims.layers);
                PeError::require((1..=dims.layers).contains(&n), pe, "layers.n", n, expected)
            }
            Self::All {} | Self::First {} => Ok(()),
        }
    }
}

crate::settings! {
    /// Settings of the CoPE encoding.
    pub struct CopeConfig {
        /// Number of entries of the table.
        pub max_positions: usize = 64,
        /// Placement of the division by `sqrt(D)`.
        pub convention: LogitScaling = LogitScaling::Listing,
        /// Source of the gate logits.
        pub gates: Gates = Gates::QueryKey,
        /// Which layers share a table.
        pub sharing: Sharing = Sharing::PerLayer,
        /// Layers that have the encoding.
        pub layers: Layers = Layers::All {},
    }
}

/// Contextual position encoding with a table of learned vectors.
#[derive(Module, Debug)]
pub struct Cope {
    /// Tables of position vectors, `[D, max_positions]` each: one, or one per layer that has the
    /// encoding.
    pub tables: Vec<Param<Tensor<2>>>,
    /// Projections to separate keys, `[C, C]` each, one per layer that has the encoding; empty if
    /// gates use the keys or values of the attention.
    pub key_weights: Vec<Param<Tensor<2>>>,
    #[module(skip)]
    config: CopeConfig,
    #[module(skip)]
    heads: usize,
}

/// Refuses a number of contextual positions that leaves nothing to count.
pub(super) fn check_positions(pe: &str, positions: usize) -> Result<(), PeError> {
    let expected = "at least 2, so that there is something to count";
    PeError::require(positions >= 2, pe, "max_positions", positions, expected)
}

impl CopeConfig {
    fn tables(&self, dims: &Dims) -> usize {
        self.sharing.sets(self.layers.count(dims.layers))
    }

    fn key_weights(&self, dims: &Dims) -> usize {
        if self.gates == Gates::SeparateKeys { self.layers.count(dims.layers) } else { 0 }
    }
}

impl Cope {
    /// Table of a layer; `None` if the layer does not have the encoding.
    fn table(&self, layer: usize) -> Option<&Param<Tensor<2>>> {
        self.config.layers.slot(layer).map(|slot| of_layer(&self.tables, slot))
    }

    /// Projection to the separate keys of a layer; `None` if the layer has none.
    fn key_weight(&self, layer: usize) -> Option<&Param<Tensor<2>>> {
        self.key_weights.get(self.config.layers.slot(layer)?)
    }
}

impl PositionEncoding for Cope {
    type Settings = CopeConfig;

    const CARD: Card = Card {
        id: "cope",
        label: "CoPE",
        summary: "Counts positions with gates that depend on the tokens; a table interpolated at the count gives the \
             bias.",
        parameters: "L D max_positions",
        paper: "Golovneva et al. 2024",
        url: "https://arxiv.org/abs/2405.18719",
    };

    fn card(settings: &CopeConfig) -> Card {
        let shared = settings.sharing == Sharing::AllLayers;
        let parameters = match (settings.layers, shared, settings.gates == Gates::SeparateKeys) {
            (Layers::All {}, false, false) => Self::CARD.parameters,
            (Layers::All {}, false, true) => "L (D max_positions + C^2)",
            (Layers::All {}, true, true) => "D max_positions + L C^2",
            (Layers::First {}, _, true) => "D max_positions + C^2",
            (Layers::Every { .. }, false, false) => "L / n D max_positions",
            (Layers::Every { .. }, false, true) => "L / n (D max_positions + C^2)",
            (Layers::Every { .. }, true, true) => "D max_positions + L / n C^2",
            (Layers::First {}, false, false) | (_, true, false) => "D max_positions",
        };
        Card { parameters, ..Self::CARD }
    }

    fn check(settings: &CopeConfig, dims: &Dims) -> Result<(), PeError> {
        check_positions(Self::CARD.id, settings.max_positions)?;
        settings.layers.check(Self::CARD.id, dims)
    }

    fn build(
        settings: &CopeConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let tables = (0..settings.tables(dims))
            .map(|_| init::zeros([dims.head_dim, settings.max_positions], device))
            .collect();
        let bound = (dims.width as f64).powf(-0.5);
        let shape = [dims.width, dims.heads_width()];
        let key_weights = (0..settings.key_weights(dims))
            .map(|_| init::uniform(bound, shape, rng, device))
            .collect();
        Ok(Cope { tables, key_weights, config: settings.clone(), heads: dims.heads })
    }

    fn param_count(settings: &CopeConfig, dims: &Dims) -> Option<usize> {
        Some(
            settings.tables(dims) * dims.head_dim * settings.max_positions
                + settings.key_weights(dims) * dims.width * dims.heads_width(),
        )
    }

    fn cost(settings: &CopeConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let (heads, channels) = (dims.heads, dims.heads_width());
        let layers = settings.layers.count(dims.layers);
        let pairs = layers * heads * len * len;
        let cost = Cost::none()
            .product("queries with the table", layers * len * settings.max_positions * channels)
            .pair_activation("gates", pairs, 3)
            .pair_elementwise(
                "running sum, clamp, interpolation in four, sum of logits",
                7 * pairs,
            );
        let against = layers * len * len * channels;
        Some(match settings.gates {
            Gates::QueryKey => cost.pair_product_kept("queries with keys", against),
            Gates::QueryValue => cost.pair_product("queries with values", against),
            Gates::SeparateKeys => cost
                .product("separate keys", layers * len * dims.width * channels)
                .pair_product("queries with separate keys", against),
        })
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let Some(weight) = self.key_weight(ctx.layer) else { return TokenState::default() };
        let keys = by_head(linear(ctx.x.clone(), weight.val(), None), self.heads);
        TokenState { tensors: vec![keys] }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let Some(table) = self.table(ctx.layer.layer) else { return ScoreMod::None };
        let [_head_dim, entries] = table.val().dims();
        ScoreMod::Contextual(Contextual {
            gates: match (self.config.gates, ctx.layer.cols.tensors.first()) {
                (Gates::SeparateKeys, Some(keys)) => GateSource::Keys(keys.clone()),
                (Gates::QueryValue, _) => GateSource::QueryValue,
                (Gates::QueryKey | Gates::SeparateKeys, _) => GateSource::QueryKey,
            },
            max_position: (entries - 1) as f64,
            function: ContextualFunction::Table(table.val()),
            convention: self.config.convention,
        })
    }
}

impl ScalarReference for Cope {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let Some(table) = self.table(input.layer) else { return input.plain() };
        let gate_keys = self
            .key_weight(input.layer)
            .map(|weight| cope::own_keys(&input.x, &table_f64(weight), self.heads));
        let side = match (self.config.gates, &gate_keys) {
            (_, Some(keys)) => GateSide::Own(keys),
            (Gates::QueryValue, None) => GateSide::Values,
            (Gates::QueryKey | Gates::SeparateKeys, None) => GateSide::Keys,
        };
        cope::logits(input, &table_f64(table), self.config.convention, side)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples {
            facts: "acts on logits; content dependent, ignores positions, reads vectors, shift invariant",
            texts: &[
                "cope",
                "cope{convention=code,max_positions=5}",
                "cope{gates=query-value}",
                "cope{max_positions=1024,layers={type=first}}",
            ],
        },
        Examples {
            facts: "acts on logits; content dependent, ignores positions, reads vectors, shift invariant, undivided",
            texts: &["cope{convention=equation,sharing=all-layers}"],
        },
        Examples {
            facts: "acts on logits, state; content dependent, ignores positions, reads vectors, shift invariant",
            texts: &[
                "cope{gates=separate-keys}",
                "cope{gates=separate-keys,layers={type=every,n=2}}",
            ],
        },
    ];

    #[test]
    fn the_layers_that_have_it_are_counted_from_one() {
        let slots = |layers: Layers| (0..5).map(|l| layers.slot(l)).collect::<Vec<_>>();
        assert_eq!(slots(Layers::Every { n: 2 }), [None, Some(0), None, Some(1), None]);
        assert_eq!(slots(Layers::First {}), [Some(0), None, None, None, None]);
        assert_eq!(Layers::Every { n: 2 }.count(5), 2);
    }

    #[test]
    fn a_choice_that_leaves_no_layer_is_refused_by_name() {
        let dims = Dims { layers: 2, width: 4, heads: 1, head_dim: 4, train_len: 8, max_len: 8 };
        for n in [0, 3] {
            let config = CopeConfig { layers: Layers::Every { n }, ..CopeConfig::default() };
            let error = Cope::check(&config, &dims).unwrap_err().to_string();
            assert!(error.contains(&format!("layers.n is {n}")), "{error}");
        }
    }
}

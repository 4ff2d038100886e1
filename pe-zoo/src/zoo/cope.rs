//! # CoPE: positions counted by gates that look at the content
//!
//! ## What it does
//! Each query opens or closes a gate at every earlier token; the position of a key is the sum of the
//! gates between it and the query. Such a position is a fraction, so a learned table is read between
//! its entries.
//!
//! ## Formula
//! `g[i, j] = sigma(q_i . k_j / sqrt(D))`, `p[i, j] = min(sum of g[i, m] for m in j..=i, N - 1)`,
//! `z[i, j] = q_i . e[p]`, linear between `e[floor p]` and `e[ceil p]`,
//! `logit = q_i . k_j / sqrt(D) + z[i, j]`
//!
//! ## Shapes
//! `score: Contextual`, table `[D, max_positions]` per layer, shared by the heads.
//!
//! ## Settings
//! `max_positions` (64, as in the paper's Listing 1): entries of the table; counts are clamped to
//! `max_positions - 1`.
//! `convention`: `listing` (default; formula above), `code` (the authors' default: `(q.k + z) /
//! sqrt(D)`), `equation` (equations 3 to 5: no division anywhere).
//! `gates`: `query-key` (default) or `query-value`.
//! `sharing`: `per-layer` (default) or `all-layers` (one table).
//!
//! ## Deviations
//! Eq. 5 counts `p_max + 1` rows, Listing 1 has `npos`; `max_positions` is the number of rows. The
//! table starts at zero as in the authors' code, so that the model is NoPE at step 0.
//!
//! ## References
//! Golovneva et al. 2024, "Contextual Position Encoding", arXiv 2405.18719; authors' code
//! `facebookresearch/RAM` `projects/cope/src/cope/context_position.py` at e6f051fbcf.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::encoding::ScoreContext;
use crate::meta::{Claims, Conduct, PeMeta, Site};
use crate::reference::{Heads, ScalarInput, ScalarReference, cope, table_f64};
use crate::score::{Contextual, ContextualFunction, Convention, GateSource};
use crate::{Cost, Dims, EncodingConfig, PeError, PositionEncoding, ScoreMod, init};

/// The facts.
pub const META: PeMeta = PeMeta {
    id: "cope",
    label: "CoPE",
    summary: "Counts positions with gates that depend on the tokens, and reads a table there.",
    sites: &[Site::Logits],
    claims: Claims { shift_invariant: true, content_dependent: true, limited_length: false },
    parameters: "L D max_positions",
    paper: "Golovneva et al. 2024",
    url: "https://arxiv.org/abs/2405.18719",
};

/// What opens a gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gates {
    /// Query and key.
    #[default]
    QueryKey,
    /// Query and value (the paper's value gates).
    QueryValue,
}

/// Which layers share a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableSharing {
    /// Each layer has its own.
    #[default]
    PerLayer,
    /// One table for all.
    AllLayers,
}

/// Settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Entries of the table.
    pub max_positions: usize,
    /// Where the division by `sqrt(D)` stands.
    pub convention: Convention,
    /// What opens a gate.
    pub gates: Gates,
    /// Which layers share a table.
    pub sharing: TableSharing,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_positions: 64,
            convention: Convention::Listing,
            gates: Gates::QueryKey,
            sharing: TableSharing::PerLayer,
        }
    }
}

/// Contextual positions.
#[derive(Module, Debug)]
pub struct Cope {
    /// `[D, max_positions]` each: one, or one per layer.
    pub tables: Vec<Param<Tensor<2>>>,
    #[module(skip)]
    convention: Convention,
    #[module(skip)]
    gates: Gates,
}

impl Config {
    fn tables(&self, dims: &Dims) -> usize {
        match self.sharing {
            TableSharing::PerLayer => dims.layers,
            TableSharing::AllLayers => 1,
        }
    }
}

impl EncodingConfig for Config {
    type Encoding = Cope;

    fn meta(&self) -> &'static PeMeta {
        &META
    }

    fn conduct(&self) -> Vec<Conduct> {
        vec![Conduct::IgnoresPositions, Conduct::ReadsQueries]
    }

    fn check(&self, _dims: &Dims) -> Result<(), PeError> {
        if self.max_positions < 2 {
            let expected = "at least 2, so that there is something to count";
            return Err(PeError::invalid(META.id, "max_positions", self.max_positions, expected));
        }
        Ok(())
    }

    fn init(&self, dims: &Dims, _rng: &mut ChaCha8Rng, device: &Device) -> Result<Cope, PeError> {
        self.check(dims)?;
        let tables = (0..self.tables(dims))
            .map(|_| init::zeros([dims.head_dim, self.max_positions], device))
            .collect();
        Ok(Cope { tables, convention: self.convention, gates: self.gates })
    }

    fn param_count(&self, dims: &Dims) -> usize {
        self.tables(dims) * dims.head_dim * self.max_positions
    }

    fn cost(&self, dims: &Dims, len: usize) -> Cost {
        let Dims { layers, heads, .. } = *dims;
        let pairs = layers * heads * len * len;
        let cost = Cost::none()
            .product("queries with the table", layers * len * self.max_positions * dims.width())
            .pair_activation("gates", pairs, 3)
            .pair_elementwise(
                "running sum, clamp, interpolation in four, sum of logits",
                7 * pairs,
            );
        match self.gates {
            Gates::QueryKey => cost,
            Gates::QueryValue => {
                cost.pair_product("queries with values", layers * len * len * dims.width())
            }
        }
    }
}

impl Cope {
    fn table(&self, layer: usize) -> &Param<Tensor<2>> {
        &self.tables[layer.min(self.tables.len() - 1)]
    }
}

impl PositionEncoding for Cope {
    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let table = self.table(ctx.layer.layer).val();
        let [_head_dim, entries] = table.dims();
        ScoreMod::Contextual(Contextual {
            gates: match self.gates {
                Gates::QueryKey => GateSource::QueryKey,
                Gates::QueryValue => GateSource::QueryValue,
            },
            max_position: (entries - 1) as f64,
            function: ContextualFunction::Table(table),
            convention: self.convention,
        })
    }
}

impl ScalarReference for Cope {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let table = table_f64(self.table(input.layer));
        cope::logits(input, &table, self.convention, self.gates == Gates::QueryValue)
    }
}

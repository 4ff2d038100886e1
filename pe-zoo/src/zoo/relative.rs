//! # Relative: a learned vector per distance, met by the query
//!
//! ## What it does
//! Adds to each logit the dot product of the query with a vector that is learned for the distance.
//! One table serves all layers and heads. Distances past the end of the table add nothing.
//!
//! ## Formula
//! `logit[i, j] = (q_i . k_j + q_i . e[i - j]) / sqrt(D)`
//!
//! ## Shapes
//! `score: QueryDistance([D, max_distance])`.
//!
//! ## Settings
//! `max_distance` (entries of the table, distances `0..max_distance`; default: the training
//! length, as CoPE's code has it). `std` (default `D^(-1/2)`): deviation of the initial table.
//!
//! ## Deviations
//! The authors' code stores the table backwards (column `N - 1 - distance`); a permutation of
//! independent equal draws. Shaw et al. also learn vectors for the values; the baseline does not.
//!
//! ## References
//! Shaw et al. 2018, arXiv 1803.02155, as the baseline of CoPE in `facebookresearch/RAM`
//! `projects/cope` at e6f051fbcf.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::encoding::ScoreContext;
use crate::meta::{Claims, Conduct, PeMeta, Site};
use crate::reference::{Heads, ScalarInput, ScalarReference, relative, table_f64};
use crate::score::Beyond;
use crate::{Cost, Dims, EncodingConfig, PeError, PositionEncoding, ScoreMod, init};

/// The facts.
pub const META: PeMeta = PeMeta {
    id: "relative",
    label: "Relative (Shaw)",
    summary: "Adds the query's dot product with a learned vector of the distance.",
    sites: &[Site::Logits],
    claims: Claims {
        shift_invariant: true,
        content_dependent: true,
        limited_length: false,
        depends_on_length: false,
    },
    parameters: "D max_distance",
    paper: "Shaw et al. 2018",
    url: "https://arxiv.org/abs/1803.02155",
};

/// Settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Entries of the table; `None`: the training length.
    pub max_distance: Option<usize>,
    /// Deviation of the initial table; `None`: `D^(-1/2)`.
    pub std: Option<f64>,
}

/// A table of learned vectors, one per distance.
#[derive(Module, Debug)]
pub struct Relative {
    /// `[D, max_distance]`.
    pub table: Param<Tensor<2>>,
}

impl Config {
    pub(super) fn distances(&self, dims: &Dims) -> usize {
        self.max_distance.unwrap_or(dims.train_len)
    }

    pub(super) fn check_as(&self, id: &str, dims: &Dims) -> Result<(), PeError> {
        let distances = self.distances(dims);
        if distances == 0 {
            return Err(PeError::invalid(id, "max_distance", distances, "at least 1"));
        }
        if let Some(std) = self.std.filter(|std| !(std.is_finite() && *std >= 0.0)) {
            return Err(PeError::invalid(id, "std", std, "a number of at least 0"));
        }
        Ok(())
    }

    pub(super) fn table(
        &self,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Param<Tensor<2>> {
        let std = self.std.unwrap_or((dims.head_dim as f64).powf(-0.5));
        init::normal(std, [dims.head_dim, self.distances(dims)], rng, device)
    }
}

impl EncodingConfig for Config {
    type Encoding = Relative;

    fn meta(&self) -> &'static PeMeta {
        &META
    }

    fn conduct(&self) -> Vec<Conduct> {
        vec![Conduct::ReadsQueries]
    }

    fn check(&self, dims: &Dims) -> Result<(), PeError> {
        self.check_as(META.id, dims)
    }

    fn init(
        &self,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Relative, PeError> {
        self.check(dims)?;
        Ok(Relative { table: self.table(dims, rng, device) })
    }

    fn param_count(&self, dims: &Dims) -> usize {
        dims.head_dim * self.distances(dims)
    }

    fn cost(&self, dims: &Dims, len: usize) -> Cost {
        let Dims { layers, heads, .. } = *dims;
        Cost::none()
            .product("queries with the table", layers * len * self.distances(dims) * dims.width())
            .pair_elementwise("sum of logits", layers * heads * len * len)
    }
}

impl PositionEncoding for Relative {
    fn score(&self, _ctx: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::QueryDistance { table: self.table.val(), beyond: Beyond::Zero }
    }
}

impl ScalarReference for Relative {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        relative::logits(input, &table_f64(&self.table), relative::Past::Nothing)
    }
}

//! # Relative: a learned vector per distance, met by the query
//!
//! ## What it does
//! Adds to each logit the dot product of the query with a learned vector for the distance. One
//! table serves all layers and heads. Distances past the end of the table add nothing.
//!
//! ## Formula
//! `logit[i, j] = (q_i . k_j + q_i . e[i - j]) / sqrt(D)`
//!
//! ## Shapes
//! `score: QueryDistance([D, max_distance])`.
//!
//! ## Settings
//! `max_distance` (entries of the table, distances `0..max_distance`; default: the training length,
//! as in CoPE's code). `std` (default `D^(-1/2)`): standard deviation of the initial table.
//!
//! ## Initial values
//! Table: normal with deviation `D^(-1/2)`, as in CoPE's code.
//!
//! ## Deviations
//! The authors' code stores the table backwards (column `N - 1 - distance`); this is a permutation
//! of independent draws from one distribution. Shaw et al. also learn vectors for the values; the
//! baseline does not.
//!
//! ## References
//! Shaw et al. 2018, arXiv 1803.02155, as the baseline of CoPE in `facebookresearch/RAM`
//! `projects/cope` at e6f051fbcf.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference, relative, table_f64};
use crate::score::Beyond;
use crate::settings::{check_not_below_zero, check_size};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};

/// Settings of learned relative positions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RelativeConfig {
    /// Number of entries of the table; `None`: the training length.
    pub max_distance: Option<usize>,
    /// Standard deviation of the initial table; `None`: `D^(-1/2)`.
    pub std: Option<f64>,
}

/// Table of learned vectors, one per distance; longer distances add nothing.
#[derive(Module, Debug)]
pub struct Relative {
    /// Learned vectors of the distances, `[D, max_distance]`.
    pub table: Param<Tensor<2>>,
}

impl RelativeConfig {
    pub(super) fn distances(&self, dims: &Dims) -> usize {
        self.max_distance.unwrap_or(dims.train_len)
    }

    pub(super) fn check_as(&self, id: &str, dims: &Dims) -> Result<(), PeError> {
        check_size(id, "max_distance", self.distances(dims))?;
        check_not_below_zero(id, "std", self.std)
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

impl PositionEncoding for Relative {
    type Settings = RelativeConfig;

    const CARD: Card = Card {
        id: "relative",
        label: "Relative (Shaw)",
        summary: "Adds the query's dot product with a learned vector of the distance.",
        parameters: "D max_distance",
        paper: "Shaw et al. 2018",
        url: "https://arxiv.org/abs/1803.02155",
    };

    fn check(settings: &RelativeConfig, dims: &Dims) -> Result<(), PeError> {
        settings.check_as(Relative::CARD.id, dims)
    }

    fn build(
        settings: &RelativeConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        Ok(Relative { table: settings.table(dims, rng, device) })
    }

    fn param_count(settings: &RelativeConfig, dims: &Dims) -> Option<usize> {
        Some(dims.head_dim * settings.distances(dims))
    }

    fn cost(settings: &RelativeConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let Dims { layers, heads, .. } = *dims;
        Some(
            Cost::none()
                .product(
                    "queries with the table",
                    layers * len * settings.distances(dims) * dims.heads_width(),
                )
                .pair_elementwise("sum of logits", layers * heads * len * len),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, _ctx: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::QueryDistance { table: self.table.val(), beyond: Beyond::Zero }
    }
}

impl ScalarReference for Relative {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        relative::logits(input, &table_f64(&self.table), relative::Past::Nothing)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits; content dependent, reads vectors, shift invariant",
        texts: &["relative", "relative{max_distance=4}"],
    }];
}

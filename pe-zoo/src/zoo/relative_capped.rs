//! # Relative, capped: distances past the table share its last entry
//!
//! ## What it does
//! The same as `relative`, but every distance past the end of the table uses the vector of the longest distance in the
//! table, so that the bias is defined at any distance.
//!
//! ## Formula
//! `logit[i, j] = (q_i . k_j + q_i . e[min(i - j, N - 1)]) / sqrt(D)`
//!
//! ## Shapes
//! `score: QueryDistance([D, max_distance])`.
//!
//! ## Settings
//! As `relative`.
//!
//! ## Initial values
//! Table: normal with deviation `D^(-1/2)`, as in CoPE's code.
//!
//! ## Deviations
//! As `relative`.
//!
//! ## References
//! CoPE's `--rel-pos-extend`, `facebookresearch/RAM` `projects/cope` at e6f051fbcf.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::relative as uncapped;
use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference, relative, table_f64};
use crate::score::Beyond;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod};

/// Settings of the capped variant: those of [`uncapped::RelativeConfig`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RelativeCappedConfig(pub uncapped::RelativeConfig);

/// Table of learned vectors, one per distance; longer distances use the last one.
#[derive(Module, Debug)]
pub struct RelativeCapped {
    /// Learned vectors of the distances, `[D, max_distance]`.
    pub table: Param<Tensor<2>>,
}

impl PositionEncoding for RelativeCapped {
    type Settings = RelativeCappedConfig;

    const CARD: Card = Card {
        id: "relative-capped",
        label: "Relative, capped",
        summary: "Like relative positions, but all distances beyond a limit share the last learned vector.",
        parameters: "D max_distance",
        paper: "Golovneva et al. 2024",
        url: "https://arxiv.org/abs/2405.18719",
    };

    fn check(settings: &RelativeCappedConfig, dims: &Dims) -> Result<(), PeError> {
        settings.0.check_as(RelativeCapped::CARD.id, dims)
    }

    fn build(
        settings: &RelativeCappedConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        Ok(RelativeCapped { table: settings.0.table(dims, rng, device) })
    }

    fn param_count(settings: &RelativeCappedConfig, dims: &Dims) -> Option<usize> {
        uncapped::Relative::param_count(&settings.0, dims)
    }

    fn cost(settings: &RelativeCappedConfig, dims: &Dims, len: usize) -> Option<Cost> {
        uncapped::Relative::cost(&settings.0, dims, len)
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, _ctx: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::QueryDistance { table: self.table.val(), beyond: Beyond::Last }
    }
}

impl ScalarReference for RelativeCapped {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        relative::logits(input, &table_f64(&self.table), relative::Past::LastEntry)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits; content dependent, reads vectors, shift invariant",
        texts: &["relative-capped", "relative-capped{max_distance=4}"],
    }];
}

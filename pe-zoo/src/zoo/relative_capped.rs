//! # Relative, capped: distances past the table share its last entry
//!
//! ## What it does
//! As `relative`, but every distance past the end of the table uses the vector of the longest
//! distance in it, so that there is something to add at any length.
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
use crate::encoding::ScoreContext;
use crate::meta::{Claims, Conduct, PeMeta, Site};
use crate::reference::{Heads, ScalarInput, ScalarReference, relative, table_f64};
use crate::score::Beyond;
use crate::{Cost, Dims, EncodingConfig, PeError, PositionEncoding, ScoreMod};

/// The facts.
pub const META: PeMeta = PeMeta {
    id: "relative-capped",
    label: "Relative, capped",
    summary: "As relative, with the last learned vector reused for all longer distances.",
    sites: &[Site::Logits],
    claims: Claims {
        shift_invariant: true,
        content_dependent: true,
        limited_length: false,
        depends_on_length: false,
    },
    parameters: "D max_distance",
    paper: "Golovneva et al. 2024",
    url: "https://arxiv.org/abs/2405.18719",
};

/// Settings: those of [`uncapped::Config`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Config(pub uncapped::Config);

/// A table of learned vectors, the last one reused.
#[derive(Module, Debug)]
pub struct RelativeCapped {
    /// `[D, max_distance]`.
    pub table: Param<Tensor<2>>,
}

impl EncodingConfig for Config {
    type Encoding = RelativeCapped;

    fn meta(&self) -> &'static PeMeta {
        &META
    }

    fn conduct(&self) -> Vec<Conduct> {
        vec![Conduct::ReadsQueries]
    }

    fn check(&self, dims: &Dims) -> Result<(), PeError> {
        self.0.check_as(META.id, dims)
    }

    fn init(
        &self,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<RelativeCapped, PeError> {
        self.check(dims)?;
        Ok(RelativeCapped { table: self.0.table(dims, rng, device) })
    }

    fn param_count(&self, dims: &Dims) -> usize {
        self.0.param_count(dims)
    }

    fn cost(&self, dims: &Dims, len: usize) -> Cost {
        self.0.cost(dims, len)
    }
}

impl PositionEncoding for RelativeCapped {
    fn score(&self, _ctx: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::QueryDistance { table: self.table.val(), beyond: Beyond::Last }
    }
}

impl ScalarReference for RelativeCapped {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        relative::logits(input, &table_f64(&self.table), relative::Past::LastEntry)
    }
}

//! # ALiBi: a penalty on the logits that grows with distance
//!
//! ## What it does
//! Subtracts from each logit the distance times a slope. Each head has its own fixed slope, so some
//! heads look near and some far.
//!
//! ## Formula
//! `logit[h, i, j] = q_i . k_j / sqrt(D) - slope_h * (i - j)`, `slope_h = 2^(-8 (h+1) / H)`
//!
//! ## Shapes
//! `score: Slope([H])`.
//!
//! ## Settings
//! `slopes`: `authors` (default) or `paper`. They differ only where the number of heads is no power
//! of two.
//!
//! ## Deviations
//! The authors' code adds `slope * j` instead; a constant per row cancels in the softmax.
//!
//! ## References
//! Press et al. 2021, "Train Short, Test Long", arXiv 2108.12409; slopes as in
//! `ofirpress/attention_with_linear_biases` at 4b92f28a00.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::encoding::ScoreContext;
use crate::math::slopes;
use crate::meta::{Claims, PeMeta, Site};
use crate::reference::{Heads, ScalarInput, ScalarReference, alibi};
use crate::{Cost, Dims, EncodingConfig, PeError, PositionEncoding, ScoreMod};

/// The facts.
pub const META: PeMeta = PeMeta {
    id: "alibi",
    label: "ALiBi",
    summary: "Subtracts from the logits a fixed slope per head times the distance.",
    sites: &[Site::Logits],
    claims: Claims { shift_invariant: true, content_dependent: false, limited_length: false },
    parameters: "0",
    paper: "Press et al. 2021",
    url: "https://arxiv.org/abs/2108.12409",
};

/// Which slopes heads get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Slopes {
    /// The authors' code: for head counts that are no power of two, two sequences are spliced.
    #[default]
    Authors,
    /// The paper's formula for any head count.
    Paper,
}

impl Slopes {
    /// The slopes of `heads` heads.
    pub fn values(self, heads: usize) -> Vec<f64> {
        match self {
            Self::Authors => slopes::spliced(heads),
            Self::Paper => slopes::geometric(heads),
        }
    }
}

/// Settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which slopes heads get.
    pub slopes: Slopes,
}

/// A fixed slope per head.
#[derive(Module, Debug)]
pub struct Alibi {
    #[module(skip)]
    slopes: Vec<f64>,
}

impl EncodingConfig for Config {
    type Encoding = Alibi;

    fn meta(&self) -> &'static PeMeta {
        &META
    }

    fn init(&self, dims: &Dims, _rng: &mut ChaCha8Rng, _device: &Device) -> Result<Alibi, PeError> {
        Ok(Alibi { slopes: self.slopes.values(dims.heads) })
    }

    fn cost(&self, dims: &Dims, len: usize) -> Cost {
        let pairs = dims.layers * dims.heads * len * len;
        Cost::none().pair_elementwise("slope times distance, sum of logits", 2 * pairs)
    }
}

impl PositionEncoding for Alibi {
    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let slopes = self.slopes.iter().map(|slope| *slope as f32).collect::<Vec<_>>();
        ScoreMod::Slope(Tensor::from_data(slopes.as_slice(), &ctx.q.device()))
    }
}

impl ScalarReference for Alibi {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        alibi::logits(input, &self.slopes)
    }
}

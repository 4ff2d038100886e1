//! # NewEncoding: a penalty on the logits that grows with distance
//!
//! ## What it does
//! Subtracts from each logit the distance between the two tokens times a learned slope, one for each
//! head and layer.
//!
//! ## Formula
//! `logit[h, i, j] = q_i . k_j / sqrt(D) - slope_h * (i - j)`
//!
//! ## Shapes
//! `score: Slope([H])`.
//!
//! ## Settings
//! `slope` (0.1): initial value of every slope.
//!
//! ## Initial values
//! Every slope starts at `slope`.
//!
//! ## Deviations
//! None.
//!
//! ## References
//! Authors and year, "Title", arXiv 0000.00000.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference, values_f64};
use crate::settings::check_above_zero;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};

crate::settings! {
    /// Settings of NewEncoding, as suites write them.
    pub struct NewEncodingConfig {
        /// Initial value of every slope.
        pub slope: f64 = 0.1,
    }
}

/// Penalty on distance with one learned slope for each head and layer.
#[derive(Module, Debug)]
pub struct NewEncoding {
    /// Slopes of each layer, `[H]`.
    pub slopes: Vec<Param<Tensor<1>>>,
}

impl PositionEncoding for NewEncoding {
    type Settings = NewEncodingConfig;

    const CARD: Card = Card {
        id: "new-encoding",
        label: "NewEncoding",
        summary: "Subtracts from the logits a learned slope per head times the distance.",
        parameters: "L H",
        paper: "Authors year",
        url: "https://arxiv.org/abs/0000.00000",
    };

    fn check(settings: &NewEncodingConfig, _dims: &Dims) -> Result<(), PeError> {
        check_above_zero(Self::CARD.id, "slope", settings.slope)
    }

    fn build(
        settings: &NewEncodingConfig,
        dims: &Dims,
        _rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let of_layer = |_| init::constant(settings.slope as f32, [dims.heads], device);
        Ok(Self { slopes: (0..dims.layers).map(of_layer).collect() })
    }

    fn param_count(_settings: &NewEncodingConfig, dims: &Dims) -> Option<usize> {
        Some(dims.layers * dims.heads)
    }

    fn cost(_settings: &NewEncodingConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let pairs = dims.layers * dims.heads * len * len;
        Some(Cost::none().pair_elementwise("slope times distance, sum of logits", 2 * pairs))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::Slope(self.slopes[ctx.layer.layer].val())
    }
}

impl ScalarReference for NewEncoding {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let slopes = values_f64(&self.slopes[input.layer]);
        let root = (input.head_dim() as f64).sqrt();
        input.map(|h, row, i, j| {
            input.content(h, row, j) / root - slopes[h] * input.distance(i, j) as f64
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits; shift invariant; biases slopes",
        texts: &["new-encoding", "new-encoding{slope=2.0}"],
    }];

    #[test]
    fn a_slope_that_is_not_above_zero_is_refused_by_name() {
        let dims = Dims { layers: 1, width: 8, heads: 2, head_dim: 4, train_len: 8, max_len: 8 };
        let error = NewEncoding::check(&NewEncodingConfig { slope: 0.0 }, &dims).unwrap_err();
        assert!(error.to_string().contains("slope is 0"), "{error}");
    }
}

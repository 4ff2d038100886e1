//! # Sinks: a learned logit in the denominator of each head
//!
//! ## What it does
//! Adds to the softmax of each head a learned logit without a value. If no token is useful to a head, the head gives
//! its weight to that logit and returns nearly nothing, instead of spreading the weight over tokens or putting it on
//! the first token.
//!
//! ## Formula
//! `w[i, j] = exp(z[i, j]) / (exp(s_h) + sum over j of exp(z[i, j]))`
//!
//! ## Shapes
//! `score: Sinks([H])`.
//!
//! ## Settings
//! None.
//!
//! ## Initial values
//! Sinks start at 0, as one more token whose logit is 0.
//!
//! ## Deviations
//! `transformers` draws sinks with the small deviation of its weights (0.02) around 0; here they start at 0.
//!
//! ## References
//! OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card", arXiv 2508.10925; `sinks` in `modeling_gpt_oss.py` of `transformers`.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{ScalarReference, values_f64};
use crate::settings::NoSettings;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};

/// Learned logits in the denominators of the softmax.
#[derive(Module, Debug)]
pub struct Sinks {
    /// Logits of the heads, `[H]` for each layer.
    sinks: Vec<Param<Tensor<1>>>,
}

impl PositionEncoding for Sinks {
    type Settings = NoSettings;

    const CARD: Card = Card {
        id: "sinks",
        label: "Sinks",
        summary: "Adds a learned logit without a value to the softmax of each head.",
        parameters: "L H",
        paper: "OpenAI 2025",
        url: "https://arxiv.org/abs/2508.10925",
    };

    fn build(
        _: &NoSettings,
        dims: &Dims,
        _: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        Ok(Self { sinks: (0..dims.layers).map(|_| init::zeros([dims.heads], device)).collect() })
    }

    fn param_count(_: &NoSettings, dims: &Dims) -> Option<usize> {
        Some(dims.layers * dims.heads)
    }

    fn cost(_: &NoSettings, dims: &Dims, len: usize) -> Option<Cost> {
        // An exponential function and a sum.
        Some(Cost::none().elementwise("sinks", 2 * dims.layers * dims.heads * len))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::Sinks(self.sinks[ctx.layer.layer].val())
    }
}

impl ScalarReference for Sinks {
    fn scalar_sinks(&self, layer: usize) -> Option<Vec<f64>> {
        Some(values_f64(&self.sinks[layer]))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Combination;
    use crate::encoding::LayerContext;
    use crate::zoo::tests::Examples;
    use crate::{Hooks, Positions, TokenState};
    use rand_chacha::rand_core::SeedableRng;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits; has sinks, ignores positions, shift invariant",
        texts: &["sinks"],
    }];

    /// One token whose logit is 0 beside a sink of 0: half of the value.
    #[test]
    fn a_sink_takes_its_share() {
        let dims = Dims { layers: 1, width: 2, heads: 1, head_dim: 2, train_len: 4, max_len: 4 };
        let device = crate::probe::device();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let sinks = Combination::parse("sinks").unwrap().init(&dims, &mut rng, &device).unwrap();
        let at = Positions::contiguous(0, 1);
        let state = TokenState::default();
        let ctx = LayerContext { layer: 0, at: &at, rows: &state, cols: &state };
        let q = Tensor::<4>::zeros([1, 1, 1, 2], &device);
        let v = Tensor::<4>::ones([1, 1, 1, 2], &device);
        let modifier = sinks.score(&ScoreContext { layer: &ctx, q: &q, k: &q });
        for engine in [crate::attention::Engine::Reference, crate::attention::Engine::best(&device)]
        {
            let weights = crate::attention::Weights::Drop;
            let output = engine.attend(&q, &q, &v, v.clone(), &modifier, &at, 1.0, weights).output;
            let values = output.into_data().try_into_vec::<f32>().unwrap();
            assert!(values.iter().all(|value| (value - 0.5).abs() < 1e-6), "{values:?}");
        }
    }
}

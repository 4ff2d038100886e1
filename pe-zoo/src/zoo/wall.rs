//! # Wall attention: channels that forget
//!
//! ## What it does
//! Each token computes from its content a gate for each channel of queries and keys. The product of a query and a key
//! in a channel is multiplied by the gates of the tokens between them, so that some channels remember for long and
//! others only the last tokens. FoX has one gate for all channels of a head, and adds its logarithm.
//!
//! ## Formula
//! `f_t = sigma(W x_t + b)`, one number per channel of each head;
//! `logit[h, i, j] = (sum over c of q_ic k_jc exp(sum over j < l <= i of ln f_lc)) / sqrt(D)`.
//!
//! ## Shapes
//! `state: [B, H, T, D]`, `ln f` of each token; `score: ChannelDecay([B, H, S, D])`, their running sums over all columns.
//!
//! ## Settings
//! `bias` (8, as in the authors' code): initial bias of the gates, at which a gate forgets 0.03% per token.
//!
//! ## Initial values
//! Gate weights: normal with standard deviation 0.02; gate bias: 8, so that training starts near plain attention.
//!
//! ## Deviations
//! Encodings that read the products of queries and keys, such as CoPE and DAPE, cannot be combined with `wall`, which
//! does not compute the products. The authors' optional gate per head is FoX. Their output gate and normalisation of
//! queries and keys are settings of the model. Engines scale queries and keys by factors of at most 1, relative to
//! tokens between them. Running sums are f32: where they reach 10,000, decays of old tokens are rounded by a
//! thousandth.
//!
//! ## References
//! Averbuch and Pai 2026 (Tilde Research), "Wall Attention", as contributed to `fla-org/flash-linear-attention`,
//! `fla/layers/wall_attn.py` at 189b286fb0.

use burn::module::{Module, Param};
use burn::tensor::activation::log_sigmoid;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use crate::card::Card;
use crate::encoding::{ScoreContext, StateContext};
use crate::ops::linear;
use crate::parts::by_head;
use crate::reference::{Heads, ScalarInput, ScalarReference, decay, table_f64, values_f64};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, TokenState, init};

crate::settings! {
    /// Settings of Wall attention.
    pub struct WallConfig {
        /// Initial bias of the gates.
        pub bias: f64 = 8.0,
    }
}

/// Map from tokens to the logits of their gates, of one layer.
#[derive(Module, Debug)]
pub struct ChannelGates {
    /// Weights of the map, `[C, C]`.
    pub weight: Param<Tensor<2>>,
    /// Biases of the channels, `[C]`.
    pub bias: Param<Tensor<1>>,
}

/// Decay of the channels of queries and keys by forget gates.
#[derive(Module, Debug)]
pub struct Wall {
    /// Gates, one map per layer.
    pub layers: Vec<ChannelGates>,
    #[module(skip)]
    heads: usize,
}

impl PositionEncoding for Wall {
    type Settings = WallConfig;

    const CARD: Card = Card {
        id: "wall",
        label: "Wall",
        summary: "Multiplies each channel of the products of queries and keys by forget gates of the tokens in between.",
        parameters: "L (C + 1) H D",
        paper: "Averbuch and Pai 2026",
        url: "https://github.com/fla-org/flash-linear-attention",
    };

    fn check(settings: &WallConfig, _: &Dims) -> Result<(), PeError> {
        let bias = settings.bias;
        PeError::require(bias.is_finite(), Self::CARD.id, "bias", bias, "a finite number")
    }

    fn build(
        settings: &WallConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let (width, channels) = (dims.width, dims.heads_width());
        let gates = |_| ChannelGates {
            weight: init::normal(0.02, [width, channels], rng, device),
            bias: init::constant(settings.bias as f32, [channels], device),
        };
        Ok(Self { layers: (0..dims.layers).map(gates).collect(), heads: dims.heads })
    }

    fn param_count(_: &WallConfig, dims: &Dims) -> Option<usize> {
        Some(dims.layers * (dims.width + 1) * dims.heads_width())
    }

    fn cost(_: &WallConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let (tokens, channels) = (dims.layers * len, dims.heads_width());
        Some(
            Cost::none()
                .product("gates", tokens * dims.width * channels)
                .elementwise("logarithms of gates, running sums", 5 * tokens * channels)
                .pair_elementwise("decays of channels", 3 * tokens * len * channels),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let ChannelGates { weight, bias } = &self.layers[ctx.layer];
        let gates = linear(ctx.x.clone(), weight.val(), Some(bias.val()));
        TokenState { tensors: vec![log_sigmoid(by_head(gates, self.heads))] }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::ChannelDecay { cumulative: ctx.layer.cols.tensors[0].clone().cumsum(2) }
    }
}

impl ScalarReference for Wall {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let ChannelGates { weight, bias } = &self.layers[input.layer];
        let gates = decay::wall_log_gates(&input.x, &table_f64(weight), &values_f64(bias));
        decay::wall_logits(input, &gates)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits, state; content dependent, decays channels, ignores positions, reads vectors, replaces products, shift invariant; dense on GPUs in f32",
        texts: &["wall", "wall{bias=0.0}"],
    }];

    #[test]
    fn a_bias_that_is_no_number_is_refused() {
        let dims = Dims { layers: 1, width: 8, heads: 2, head_dim: 4, train_len: 8, max_len: 8 };
        let error = Wall::check(&WallConfig { bias: f64::NAN }, &dims).unwrap_err().to_string();
        assert!(error.contains("bias is NaN"), "{error}");
    }

    /// Two tokens after the key, with gates of 1/2 and 1/4 in the first of two channels, and of 1 in the second.
    #[test]
    fn a_channel_keeps_the_product_of_its_gates() {
        let zeros = vec![vec![0.0; 2]; 3];
        let input = ScalarInput {
            layer: 0,
            q: vec![vec![vec![2.0, 3.0]; 3]],
            k: vec![vec![vec![5.0, 7.0]; 3]],
            v: vec![zeros.clone()],
            x: zeros,
            positions: vec![0, 1, 2],
            unit: 1.0,
            first_row: 0,
        };
        let gates = vec![vec![-9.0, 0.0], vec![0.5f64.ln(), 0.0], vec![0.25f64.ln(), 0.0]];
        let logits = decay::wall_logits(&input, &gates);
        let expected = [10.0 / 8.0 + 21.0, 10.0 / 4.0 + 21.0, 31.0].map(|z| z / 2f64.sqrt());
        for (found, expected) in logits[0][2].iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{logits:?}");
        }
    }
}

//! Contextual GRAPE-M: every token adds a step of its own to the angle of all later tokens.

use burn::module::{Module, Param};
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use super::multiplicative::{HeadSharing, check_rotation, stored_frequencies};
use super::norm::{QkNorm, QkNorms};
use crate::card::Card;
use crate::encoding::{LayerContext, StateContext};
use crate::ops::linear;
use crate::reference::{self, ScalarInput, ScalarReference, grape, table_f64, values_f64};
use crate::rotary::Rotation;
use crate::{Cost, Dims, PeError, PositionEncoding, TokenState, init};

/// Divisor of the gate's logits.
const GATE_SCALE: f64 = 16.0;

/// Initial bias of the gate: the inverse softplus of 0.001, as in the authors' code, although the
/// gate is a sigmoid.
const GATE_BIAS: f32 = -6.907_255;

crate::settings! {
    /// Settings of contextual GRAPE-M.
    pub struct ContextualConfig {
        /// Base of RoPE's frequencies, the initial values of the learned ones.
        pub base: f64 = 1e4,
        /// Whether heads share a token's step.
        pub phase: HeadSharing = HeadSharing::AllHeads,
        /// Whether queries and keys are normalised after the rotation.
        pub qk_norm: QkNorm = QkNorm::Rms,
    }
}

/// Rotation by angles that are sums over the tokens.
#[derive(Module, Debug)]
pub struct ContextualRotation {
    /// Logarithms of the frequencies, `[D/2]` per layer.
    pub stored: Vec<Param<Tensor<1>>>,
    /// Weights of the gate, `[C, 1 or H]` per layer.
    pub weight: Vec<Param<Tensor<2>>>,
    /// Biases of the gate, `[1 or H]` per layer.
    pub bias: Vec<Param<Tensor<1>>>,
    /// Normalisation of queries and keys after the rotation.
    pub norms: QkNorms,
}

impl PositionEncoding for ContextualRotation {
    type Settings = ContextualConfig;

    const CARD: Card = Card {
        id: "grape",
        label: "GRAPE-M, contextual",
        summary: "Rotates queries and keys by angles that are sums over the preceding tokens.",
        parameters: "L (C + 1 + 5 D / 2)",
        paper: "Zhang et al. 2025",
        url: "https://arxiv.org/abs/2512.07805",
    };

    fn card(settings: &ContextualConfig) -> Card {
        let parameters = match (settings.phase, settings.qk_norm) {
            (HeadSharing::AllHeads, QkNorm::Rms) => Self::CARD.parameters,
            (HeadSharing::AllHeads, QkNorm::None) => "L (C + 1 + D / 2)",
            (HeadSharing::PerHead, QkNorm::Rms) => "L (H (C + 1) + 5 D / 2)",
            (HeadSharing::PerHead, QkNorm::None) => "L (H (C + 1) + D / 2)",
        };
        Card { parameters, ..Self::CARD }
    }

    fn check(settings: &ContextualConfig, dims: &Dims) -> Result<(), PeError> {
        check_rotation(settings.base, dims)
    }

    fn build(
        settings: &ContextualConfig,
        dims: &Dims,
        _rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let steps = settings.phase.sets(dims.heads);
        let frequencies = stored_frequencies(settings.base, dims.head_dim, 1.0);
        let layers = 0..dims.layers;
        Ok(ContextualRotation {
            stored: layers
                .clone()
                .map(|_| init::given(frequencies.clone(), [dims.head_dim / 2], device))
                .collect(),
            weight: layers.clone().map(|_| init::zeros([dims.width, steps], device)).collect(),
            bias: layers.map(|_| init::constant(GATE_BIAS, [steps], device)).collect(),
            norms: settings.qk_norm.init(dims, device),
        })
    }

    fn param_count(settings: &ContextualConfig, dims: &Dims) -> Option<usize> {
        let gate = settings.phase.sets(dims.heads) * (dims.width + 1);
        Some(dims.layers * (gate + dims.head_dim / 2) + settings.qk_norm.param_count(dims))
    }

    fn cost(settings: &ContextualConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let (steps, tokens) = (settings.phase.sets(dims.heads), dims.layers * len);
        Some(
            Cost::none()
                .product("gate", tokens * dims.width * steps)
                .elementwise("steps, running sums", 5 * tokens * steps)
                .elementwise(
                    "angles, rotation of queries and keys",
                    8 * tokens * dims.heads_width(),
                )
                .and(settings.qk_norm.cost(dims, len)),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let (weight, bias) = (self.weight[ctx.layer].val(), self.bias[ctx.layer].val());
        let gate = linear(ctx.x.clone(), weight, Some(bias));
        let omega = sigmoid(gate / GATE_SCALE).swap_dims(1, 2);
        TokenState { tensors: vec![omega.unsqueeze_dim::<4>(3)] }
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        let omega = ctx.cols.tensors[0].clone();
        let phase = omega.clone().cumsum(TokenState::TOKEN_AXIS) - omega;
        let angles = phase * self.stored[ctx.layer].val().exp().unsqueeze::<4>();
        let (q, k) = Rotation::by_angles(angles.neg()).turn_both(q, k, ctx.at);
        self.norms.apply(ctx.layer, q, k)
    }
}

impl ScalarReference for ContextualRotation {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        let layer = input.layer;
        let frequencies =
            values_f64(&self.stored[layer]).into_iter().map(f64::exp).collect::<Vec<_>>();
        let bias = values_f64(&self.bias[layer]);
        let norm = self.norms.scalar(layer);
        let weight = table_f64(&self.weight[layer]);
        grape::contextual(input, &weight, &bias, &frequencies, norm.as_ref())
    }

    fn scalar_logits(&self, input: &ScalarInput) -> reference::Heads {
        self.scalar_transformed(input).plain()
    }
}

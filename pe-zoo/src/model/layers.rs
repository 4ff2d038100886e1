//! Linear maps, normalisation and activations, with initial values drawn on the host.

use crate::init;
use crate::kernels::activation::ActivationKind;
use crate::ops::{self, LinearMap, MatmulPrecision};
use burn::module::{Module, Param};
use burn::nn::{LayerNorm, LayerNormConfig, Linear, RmsNorm, RmsNormConfig};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use super::config::{Init, ModelConfig, NormKind};
use super::weights::learned;

/// Destination of a linear map's output, which determines its initialisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Into {
    /// The output is the input of further layers.
    Layer,
    /// The output is added to the residual stream.
    Residual,
}

pub(super) fn linear(
    config: &ModelConfig,
    inputs: usize,
    outputs: usize,
    into: Into,
    rng: &mut ChaCha8Rng,
    device: &Device,
) -> Linear {
    let bound = (inputs as f64).powf(-0.5);
    let weight = match config.init {
        Init::FanIn => init::uniform(bound, [inputs, outputs], rng, device),
        Init::Gpt2 if into == Into::Residual => {
            let std = 0.02 / (2.0 * config.layers as f64).sqrt();
            init::normal(std, [inputs, outputs], rng, device)
        }
        Init::Gpt2 | Init::Normal002 => init::normal(0.02, [inputs, outputs], rng, device),
    };
    let bias = config.bias.then(|| match config.init {
        Init::FanIn => init::uniform(bound, [outputs], rng, device),
        Init::Gpt2 | Init::Normal002 => init::zeros([outputs], device),
    });
    Linear { weight, bias }
}

/// Applies a linear map with a precision of the product.
pub(super) fn apply<const D: usize>(
    map: &Linear,
    x: Tensor<D>,
    precision: MatmulPrecision,
) -> Tensor<D> {
    ops::linear_of(precision, x, map.weight.val(), map.bias.as_ref().map(Param::val))
}

pub(super) fn embedding(
    config: &ModelConfig,
    vocabulary: usize,
    rng: &mut ChaCha8Rng,
    device: &Device,
) -> Param<Tensor<2>> {
    let std = match config.init {
        Init::FanIn => (config.width as f64).powf(-0.5),
        Init::Gpt2 | Init::Normal002 => 0.02,
    };
    init::normal(std, [vocabulary, config.width], rng, device)
}

/// Constant added to variances, PyTorch's default.
const LAYER_NORM_EPSILON: f64 = 1e-5;

/// Constant added to mean squares, as in Burn and Llama.
const RMS_NORM_EPSILON: f64 = 1e-5;

pub(super) fn rms_epsilon(config: &ModelConfig) -> f64 {
    config.norm_epsilon.unwrap_or(RMS_NORM_EPSILON)
}

/// Normalisation layer of either kind.
#[derive(Module, Debug)]
pub(super) enum AnyNorm {
    Layer(LayerNorm),
    Rms(RmsNorm),
}

impl AnyNorm {
    pub(super) fn new(config: &ModelConfig, device: &Device) -> Self {
        match config.norm {
            NormKind::LayerNorm => Self::Layer(
                LayerNormConfig::new(config.width).with_epsilon(LAYER_NORM_EPSILON).init(device),
            ),
            NormKind::RmsNorm => Self::Rms(
                RmsNormConfig::new(config.width).with_epsilon(rms_epsilon(config)).init(device),
            ),
        }
    }

    /// Creates an RMSNorm with a given gain, `[C]`.
    pub(super) fn of(config: &ModelConfig, gamma: Tensor<1>) -> Self {
        Self::Rms(RmsNorm { gamma: learned(gamma), epsilon: rms_epsilon(config) })
    }

    /// Lets frozen gains and offsets learn again.
    #[must_use]
    pub(super) fn learning(self) -> Self {
        match self {
            Self::Layer(mut norm) => {
                norm.gamma = norm.gamma.set_require_grad(true);
                norm.beta = norm.beta.map(|beta| beta.set_require_grad(true));
                Self::Layer(norm)
            }
            Self::Rms(norm) => {
                Self::Rms(RmsNorm { gamma: norm.gamma.set_require_grad(true), ..norm })
            }
        }
    }

    pub(super) fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        match self {
            Self::Layer(LayerNorm { gamma, beta: Some(beta), .. }) => {
                ops::layer_norm(x, gamma.val(), beta.val(), LAYER_NORM_EPSILON)
            }
            Self::Layer(norm) => norm.forward(x),
            Self::Rms(norm) => ops::rms_norm(x, norm.gamma.val(), norm.epsilon),
        }
    }
}

/// Feed-forward network: `up`, activation, `down`.
#[derive(Module, Debug)]
pub(super) struct FeedForward {
    up: Linear,
    down: Linear,
    #[module(skip)]
    activation: ActivationKind,
}

impl FeedForward {
    pub(super) fn new(config: &ModelConfig, rng: &mut ChaCha8Rng, device: &Device) -> Self {
        let hidden = config.hidden();
        let up = if config.activation.is_gated() { 2 * hidden } else { hidden };
        Self {
            up: linear(config, config.width, up, Into::Layer, rng, device),
            down: linear(config, hidden, config.width, Into::Residual, rng, device),
            activation: config.activation,
        }
    }

    /// Creates a network from given maps, `[C, 2 F]` (gate, then up) and `[F, C]`.
    pub(super) fn of(config: &ModelConfig, up: Linear, down: Linear) -> Self {
        Self { up, down, activation: config.activation }
    }

    pub(super) fn forward(&self, x: Tensor<3>, precision: MatmulPrecision) -> Tensor<3> {
        let [up, down] = [&self.up, &self.down].map(|map| LinearMap {
            weight: map.weight.val(),
            bias: map.bias.as_ref().map(Param::val),
        });
        ops::feed_forward_of(precision, x, up, down, self.activation)
    }
}

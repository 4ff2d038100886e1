//! # FIRE: a learned function of distance over position
//!
//! ## What it does
//! A small network maps the distance of a token, divided by the largest distance in the row, to the
//! bias of each head. Both distances are on a learned logarithmic scale. The quotient is between 0 and
//! 1 at any length.
//!
//! ## Formula
//! `psi(x) = ln(|c x| + 1)`, `u[i, j] = psi(i - j) / (psi(max(i, |m L0|)) + eps)`,
//! `logit[h, i, j] = q_i . k_j / sqrt(D) + (W2 act(w1 u[i, j] + b1) + b2)[h]`
//!
//! ## Shapes
//! `score: PositionMlp`; `w1`, `b1` `[width]`, `W2` `[H, width]`, `b2` `[H]`, `c` and `m`
//! one number each.
//!
//! ## Settings
//! `width` (32): hidden units.
//! `c` (0.1): initial value of the learned `c`; `m` is learned from 1.
//! `initial_len` (512): `L0`, in positions.
//! `eps` (1e-6).
//! `activation`: `relu` or `leaky-relu` (0.01 below 0); if absent `relu`, and `leaky-relu` where
//! FIRE is the base of DAPE, as its authors have it.
//! `sharing`: `per-layer` (default, as in TAPE's baseline) or `all-layers`.
//!
//! ## Initial values
//! `c` and `m` as in the paper's listing (0.1 and 1); the network as PyTorch starts linear layers, which the listing uses.
//!
//! ## Deviations
//! The authors published no code; this is the paper's listing. The normaliser depends on absolute
//! positions, so that FIRE is shift-invariant only while `i` stays below `|m L0|`.
//!
//! ## References
//! Li et al. 2023, "Functional Interpolation for Relative Positions Improves Long Context
//! Transformers", arXiv 2310.04418.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference, distance, table_f64, values_f64};
use crate::score::PositionMlp;
use crate::settings::{Sharing, check_above_zero, check_size, of_layer};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};

/// Slope of LeakyReLU for negative inputs (PyTorch's default).
pub(super) const NEGATIVE_SLOPE: f64 = 0.01;

/// Activation of the network's hidden layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// ReLU: 0 for negative inputs.
    Relu,
    /// LeakyReLU: a hundredth of negative inputs.
    LeakyRelu,
}

crate::settings! {
    /// Settings of the FIRE encoding and its network.
    pub struct FireConfig {
        /// Number of hidden units.
        pub width: usize = 32,
        /// Initial value of `c`.
        pub c: f64 = 0.1,
        /// Initial threshold `L0`, in positions.
        pub initial_len: f64 = 512.0,
        /// Constant added to the normaliser.
        pub eps: f64 = 1e-6,
        /// Activation of the hidden layer; `None`: ReLU, or LeakyReLU as the base of DAPE.
        pub activation: Option<Activation> = None,
        /// Which layers share a network.
        pub sharing: Sharing = Sharing::PerLayer,
    }
}

/// Network that computes the bias, with its learned normalisation.
#[derive(Module, Debug)]
pub struct FireNetwork {
    /// Coefficient `c` in the logarithm, `[1]`.
    pub c: Param<Tensor<1>>,
    /// Multiplier `m` of the threshold, `[1]`.
    pub multiplier: Param<Tensor<1>>,
    /// Weights of the hidden layer, `[width]`.
    pub w1: Param<Tensor<1>>,
    /// Biases of the hidden layer, `[width]`.
    pub b1: Param<Tensor<1>>,
    /// Weights of the output layer, `[H, width]`.
    pub w2: Param<Tensor<2>>,
    /// Biases of the output layer, `[H]`.
    pub b2: Param<Tensor<1>>,
}

/// Learned function of distance divided by position.
#[derive(Module, Debug)]
pub struct Fire {
    /// Networks: one, or one per layer.
    pub networks: Vec<FireNetwork>,
    #[module(skip)]
    initial_len: f64,
    #[module(skip)]
    eps: f64,
    #[module(skip)]
    negative_slope: f64,
}

impl Fire {
    /// Returns the modifier of one layer.
    fn bias(&self, layer: usize) -> ScoreMod {
        let network = of_layer(&self.networks, layer);
        ScoreMod::PositionMlp(PositionMlp {
            c: network.c.val(),
            threshold: network.multiplier.val() * self.initial_len,
            eps: self.eps,
            w1: network.w1.val(),
            b1: network.b1.val(),
            w2: network.w2.val(),
            b2: network.b2.val(),
            negative_slope: self.negative_slope,
        })
    }

    /// Computes the bias of every pair in scalar f64.
    pub(super) fn scalar_bias(&self, input: &ScalarInput) -> Heads {
        let network = of_layer(&self.networks, input.layer);
        let vector = |x: &Param<Tensor<1>>| values_f64(x);
        let scalar = distance::ScalarFire {
            c: vector(&network.c)[0],
            threshold: vector(&network.multiplier)[0] * self.initial_len,
            eps: self.eps,
            hidden: vector(&network.w1).into_iter().zip(vector(&network.b1)).collect(),
            negative_slope: self.negative_slope,
            outer: table_f64(&network.w2),
            outer_bias: vector(&network.b2),
        };
        scalar.bias(input)
    }
}

impl PositionEncoding for Fire {
    type Settings = FireConfig;

    const CARD: Card = Card {
        id: "fire",
        label: "FIRE",
        summary: "Adds to the logits a learned function of distance divided by position.",
        parameters: "L (width (H + 2) + H + 2)",
        paper: "Li et al. 2023",
        url: "https://arxiv.org/abs/2310.04418",
    };

    fn card(settings: &FireConfig) -> Card {
        match settings.sharing {
            Sharing::PerLayer => Self::CARD,
            Sharing::AllLayers => Card { parameters: "width (H + 2) + H + 2", ..Self::CARD },
        }
    }

    fn check(settings: &FireConfig, _dims: &Dims) -> Result<(), PeError> {
        let pe = Self::CARD.id;
        check_above_zero(pe, "c", settings.c)?;
        check_above_zero(pe, "initial_len", settings.initial_len)?;
        check_above_zero(pe, "eps", settings.eps)?;
        check_size(pe, "width", settings.width)
    }

    fn build(
        settings: &FireConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let (heads, width) = (dims.heads, settings.width);
        // PyTorch's default for linear layers: uniform in `+-1 / sqrt(inputs)`.
        let bound = (width as f64).powf(-0.5);
        let networks = (0..settings.sharing.sets(dims.layers))
            .map(|_| FireNetwork {
                c: init::constant(settings.c as f32, [1], device),
                multiplier: init::constant(1.0, [1], device),
                w1: init::uniform(1.0, [width], rng, device),
                b1: init::uniform(1.0, [width], rng, device),
                w2: init::uniform(bound, [heads, width], rng, device),
                b2: init::uniform(bound, [heads], rng, device),
            })
            .collect();
        let negative_slope = match settings.activation {
            Some(Activation::LeakyRelu) => NEGATIVE_SLOPE,
            Some(Activation::Relu) | None => 0.0,
        };
        let FireConfig { initial_len, eps, .. } = *settings;
        Ok(Fire { networks, initial_len, eps, negative_slope })
    }

    fn param_count(settings: &FireConfig, dims: &Dims) -> Option<usize> {
        Some(
            settings.sharing.sets(dims.layers)
                * (settings.width * (dims.heads + 2) + dims.heads + 2),
        )
    }

    fn cost(settings: &FireConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let pairs = dims.layers * len * len;
        Some(
            Cost::none()
                .pair_product("network", pairs * settings.width * (1 + dims.heads))
                .pair_activation("ReLU", pairs * settings.width, 1)
                .pair_elementwise("logarithms, sum of logits", pairs * (4 + dims.heads)),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        self.bias(ctx.layer.layer)
    }
}

impl ScalarReference for Fire {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        input.biased(&self.scalar_bias(input))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Positions;
    use crate::attention::{Engine, Weights};
    use crate::testkit::close::numbers;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits; biases networks.b1, networks.c, networks.multiplier, networks.w1, networks.w2; dense on GPUs in f32",
        texts: &[
            "fire",
            "fire{sharing=all-layers,initial_len=10.0}",
            "fire{width=5,c=2.0,activation=leaky-relu}",
        ],
    }];

    #[test]
    fn parameters_and_products_are_those_of_tape_s_table() {
        // TAPE's Table 3 with 12 layers and heads at 1024 tokens: 5 544 parameters (12 frozen
        // lengths left out), 5.234 G products.
        let dims = Dims {
            layers: 12,
            width: 768,
            heads: 12,
            head_dim: 64,
            train_len: 1024,
            max_len: 1024,
        };
        assert_eq!(Fire::param_count(&FireConfig::default(), &dims), Some(5544));
        let cost = Fire::cost(&FireConfig::default(), &dims, 1024);
        assert_eq!(cost.unwrap().macs(), 12 * 1024 * 1024 * (32 + 32 * 12));
    }

    #[test]
    fn settings_that_divide_by_zero_are_refused_by_name() {
        let dims = Dims { layers: 1, width: 4, heads: 1, head_dim: 4, train_len: 8, max_len: 8 };
        let error = Fire::check(&FireConfig { eps: 0.0, ..FireConfig::default() }, &dims)
            .unwrap_err()
            .to_string();
        assert!(error.contains("eps is 0") && error.contains("above 0"), "{error}");
        assert!(Fire::check(&FireConfig { width: 0, ..FireConfig::default() }, &dims).is_err());
        assert!(Fire::check(&FireConfig { c: f64::NAN, ..FireConfig::default() }, &dims).is_err());
    }

    #[test]
    fn c_may_cross_zero_and_everything_stays_finite() {
        let device = Device::flex().autodiff();
        let dims = Dims { layers: 1, width: 8, heads: 2, head_dim: 4, train_len: 8, max_len: 8 };
        let mut rng = rand_chacha::rand_core::SeedableRng::seed_from_u64(1);
        let mut fire = Fire::build(&FireConfig::default(), &dims, &mut rng, &device).unwrap();
        for c in [-0.3, 0.0] {
            fire.networks[0].c = init::constant(c, [1], &device);
            for engine in [Engine::Reference, Engine::Fused] {
                let x = Tensor::<4>::ones([1, 2, 5, 4], &device);
                let (values, at) = (x.clone().cumsum(2), Positions::contiguous(0, 5));
                let (bias, drop) = (fire.bias(0), Weights::Drop);
                let output = engine.attend(&x, &x, &x, values, &bias, &at, 0.5, drop).output;
                assert!(numbers(output.clone()).iter().all(|x| x.is_finite()), "c {c}");
                let gradients = output.sum().backward();
                let gradient = fire.networks[0].c.val().grad(&gradients).unwrap();
                assert!(numbers(gradient)[0].is_finite(), "c {c}");
            }
        }
    }
}

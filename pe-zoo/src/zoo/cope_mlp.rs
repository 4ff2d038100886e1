//! # CoPE-MLP: contextual positions read by a small network
//!
//! ## What it does
//! Counts positions with gates as CoPE does, and maps a count to a vector by a network with one
//! hidden layer instead of an interpolated table.
//!
//! ## Formula
//! `p[i, j]` as in CoPE, `e(p) = W2 act(W1 p + b1) + b2`, `logit = q_i . k_j / sqrt(D) + q_i . e(p)`
//!
//! ## Shapes
//! `score: Contextual`, network `1 -> width -> D` per layer, shared by the heads.
//!
//! ## Settings
//! `width` (64, what the paper reports): hidden units.
//! `max_positions` (64): counts are clamped to `max_positions - 1`, as in CoPE.
//! `activation`: `relu` (default) or `gelu`.
//! `layers`: `{ type = "all" }` (default), `{ type = "first" }` (the paper's cheap form), or
//! `{ type = "every", n = K }`; the others have no encoding.
//! `convention`: `listing` (default), `code` or `equation`, as in CoPE.
//!
//! ## Initial values
//! `W2 = b2 = 0`, so that the model is NoPE at step 0, `W1 = +-1 / (max_positions - 1)` with the sign drawn, and `b1`
//! such that the kinks of the units are drawn uniformly from the range of positions. The paper states no initial
//! values.
//!
//! ## Deviations
//! The paper states only "an N-dimensional MLP", N 32 to 256. One hidden layer is the simplest reading; the clamp, the
//! activation and the initial values are this project's choice.
//!
//! ## References
//! Golovneva et al. 2024, "Contextual Position Encoding", arXiv 2405.18719, appendix C. Not in the
//! authors' code.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::cope::{Layers, check_positions};
use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference, cope, dot, table_f64, values_f64};
use crate::score::{
    Contextual, ContextualFunction, GateSource, HiddenActivation, LogitScaling, Perceptron,
};
use crate::settings::check_size;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};

crate::settings! {
    /// Settings of CoPE with a perceptron.
    pub struct CopeMlpConfig {
        /// Number of hidden units.
        pub width: usize = 64,
        /// Contextual positions are clamped to `max_positions - 1`.
        pub max_positions: usize = 64,
        /// Activation of the hidden units.
        pub activation: HiddenActivation = HiddenActivation::Relu,
        /// Layers that have the encoding.
        pub layers: Layers = Layers::All {},
        /// Placement of the division by `sqrt(D)`.
        pub convention: LogitScaling = LogitScaling::Listing,
    }
}

/// Perceptron of one layer, from a contextual position to a vector of `D` channels.
#[derive(Module, Debug)]
pub struct CopeNetwork {
    /// Weights `W1` of the hidden units, `[width]`.
    pub w1: Param<Tensor<1>>,
    /// Biases `b1` of the hidden units, `[width]`.
    pub b1: Param<Tensor<1>>,
    /// Output weights `W2`, `[D, width]`.
    pub w2: Param<Tensor<2>>,
    /// Output biases `b2`, `[D]`.
    pub b2: Param<Tensor<1>>,
}

/// Contextual position encoding with a perceptron in place of a table.
#[derive(Module, Debug)]
pub struct CopeMlp {
    /// Perceptrons, one per layer that has the encoding.
    pub networks: Vec<CopeNetwork>,
    #[module(skip)]
    config: CopeMlpConfig,
}

impl CopeMlpConfig {
    fn last_position(&self) -> f64 {
        (self.max_positions - 1) as f64
    }

    fn network(&self, dims: &Dims, rng: &mut ChaCha8Rng, device: &Device) -> CopeNetwork {
        let (mut w1, mut b1) = (Vec::new(), Vec::new());
        for _ in 0..self.width {
            let slope = if rng.random::<bool>() { 1.0 } else { -1.0 } / self.last_position();
            let bend = rng.random::<f64>() * self.last_position();
            w1.push(slope as f32);
            b1.push((-slope * bend) as f32);
        }
        let vector = |values| init::given(values, [self.width], device);
        CopeNetwork {
            w1: vector(w1),
            b1: vector(b1),
            w2: init::zeros([dims.head_dim, self.width], device),
            b2: init::zeros([dims.head_dim], device),
        }
    }
}

impl CopeMlp {
    fn network(&self, layer: usize) -> Option<&CopeNetwork> {
        self.networks.get(self.config.layers.slot(layer)?)
    }
}

impl PositionEncoding for CopeMlp {
    type Settings = CopeMlpConfig;

    const CARD: Card = Card {
        id: "cope-mlp",
        label: "CoPE-MLP",
        summary: "Counts positions with gates that depend on the tokens; a perceptron applied to the count gives the \
             bias.",
        parameters: "L (2 width + D width + D)",
        paper: "Golovneva et al. 2024",
        url: "https://arxiv.org/abs/2405.18719",
    };

    fn card(settings: &CopeMlpConfig) -> Card {
        let parameters = match settings.layers {
            Layers::All {} => Self::CARD.parameters,
            Layers::First {} => "2 width + D width + D",
            Layers::Every { .. } => "L / n (2 width + D width + D)",
        };
        Card { parameters, ..Self::CARD }
    }

    fn check(settings: &CopeMlpConfig, dims: &Dims) -> Result<(), PeError> {
        check_size(Self::CARD.id, "width", settings.width)?;
        check_positions(Self::CARD.id, settings.max_positions)?;
        settings.layers.check(Self::CARD.id, dims)
    }

    fn build(
        settings: &CopeMlpConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let count = settings.layers.count(dims.layers);
        let networks = (0..count).map(|_| settings.network(dims, rng, device)).collect();
        Ok(CopeMlp { networks, config: settings.clone() })
    }

    fn param_count(settings: &CopeMlpConfig, dims: &Dims) -> Option<usize> {
        let network = 2 * settings.width + dims.head_dim * settings.width + dims.head_dim;
        Some(settings.layers.count(dims.layers) * network)
    }

    fn cost(settings: &CopeMlpConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let layers = settings.layers.count(dims.layers);
        let pairs = layers * dims.heads * len * len;
        let (activation, each) = match settings.activation {
            HiddenActivation::Relu => ("ReLU", 1),
            HiddenActivation::Gelu => ("GELU", 5),
        };
        Some(
            Cost::none()
                .product(
                    "queries with W2 and b2",
                    layers * len * dims.heads_width() * (settings.width + 1),
                )
                .pair_product_kept("queries with keys", pairs * dims.head_dim)
                .pair_activation("gates", pairs, 3)
                .pair_activation(activation, pairs * settings.width, each)
                // One product and one sum before the activation, and the same after it.
                .pair_elementwise("network", 4 * pairs * settings.width)
                .pair_elementwise("running sum, clamp, sum of logits", 3 * pairs),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let Some(network) = self.network(ctx.layer.layer) else { return ScoreMod::None };
        ScoreMod::Contextual(Contextual {
            gates: GateSource::QueryKey,
            max_position: self.config.last_position(),
            function: ContextualFunction::Mlp(Perceptron {
                w1: network.w1.val(),
                b1: network.b1.val(),
                w2: network.w2.val(),
                b2: network.b2.val(),
                activation: self.config.activation,
            }),
            convention: self.config.convention,
        })
    }
}

impl ScalarReference for CopeMlp {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let Some(network) = self.network(input.layer) else { return input.plain() };
        let perceptron = cope::ScalarPerceptron {
            w1: values_f64(&network.w1),
            b1: values_f64(&network.b1),
            w2: table_f64(&network.w2),
            b2: values_f64(&network.b2),
            activation: self.config.activation,
        };
        let convention = self.config.convention;
        let positions =
            cope::positions(input, self.config.last_position(), convention, cope::GateSide::Keys);
        cope::combine(input, &positions, convention, |h, row, p| {
            dot(&input.q[h][row], &perceptron.embedding(p))
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits; content dependent, ignores positions, reads vectors, shift invariant",
        texts: &[
            "cope-mlp",
            "cope-mlp{activation=gelu,width=5}",
            "cope-mlp{layers={type=first},convention=code}",
        ],
    }];
}

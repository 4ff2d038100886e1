//! GRAPE-A: ALiBi with slopes computed from keys and queries.

use burn::module::{Module, Param};
use burn::tensor::activation::softplus;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::norm::{QkNorm, QkNorms};
use crate::card::Card;
use crate::encoding::{LayerContext, ScoreContext};
use crate::math::slopes;
use crate::reference::{Heads, ScalarInput, ScalarReference, Tokens, grape, table_f64, values_f64};
use crate::score::TokenPrice;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};

/// Lower bound of a vector's length before division by it.
const SHORTEST: f32 = 1e-6;

/// Initial value of `omega`, at which its softplus is 1, so that penalties start as ALiBi's times
/// the gates.
const OMEGA: f32 = 0.541_324_85;

/// Which of key and query determines the slope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateInput {
    /// The key determines the slope.
    #[default]
    Key,
    /// The query determines the slope.
    Query,
    /// Both determine the slope; their gates are added.
    Both,
}

impl GateInput {
    fn directions(self) -> usize {
        match self {
            Self::Key | Self::Query => 1,
            Self::Both => 2,
        }
    }
}

crate::settings! {
    /// Settings of GRAPE-A: gate and normalisation.
    pub struct AdditiveConfig {
        /// Which of key and query determines the slope.
        pub gate: GateInput = GateInput::Key,
        /// Whether queries and keys are normalised first.
        pub qk_norm: QkNorm = QkNorm::None,
    }
}

/// Distance times a learned, content-dependent slope.
#[derive(Module, Debug)]
pub struct Additive {
    /// Rate before its softplus, `[H]` per layer.
    pub omega: Vec<Param<Tensor<1>>>,
    /// Gate directions for keys, `[H, D]` per layer; empty if only queries determine the slope.
    pub key: Vec<Param<Tensor<2>>>,
    /// Gate directions for queries, `[H, D]` per layer; empty if only keys determine the slope.
    pub query: Vec<Param<Tensor<2>>>,
    /// Normalisation of queries and keys.
    pub norms: QkNorms,
    #[module(skip)]
    slopes: Vec<f64>,
}

/// Computes `softplus(u_h . x / (|u_h| sqrt(D)))`, `[B, H, T, 1]`, of `x`, `[B, H, T, D]`, in
/// direction `u`, `[H, D]`.
fn gate(x: &Tensor<4>, direction: &Param<Tensor<2>>) -> Tensor<4> {
    let direction = direction.val();
    let [heads, head_dim] = direction.dims();
    let length = direction.clone().powi_scalar(2).sum_dim(1).sqrt().clamp_min(SHORTEST);
    let unit = (direction / length).reshape([1, heads, 1, head_dim]);
    softplus((x.clone() * unit).sum_dim(3) / (head_dim as f64).sqrt(), 1.0)
}

impl PositionEncoding for Additive {
    type Settings = AdditiveConfig;

    const CARD: Card = Card {
        id: "grape",
        label: "GRAPE-A",
        summary: "Subtracts from the logits the distance times a cost computed from the key or query.",
        parameters: "L (H D + H)",
        paper: "Zhang et al. 2025",
        url: "https://arxiv.org/abs/2512.07805",
    };

    fn card(settings: &AdditiveConfig) -> Card {
        let parameters = match (settings.gate, settings.qk_norm) {
            (GateInput::Key | GateInput::Query, QkNorm::None) => "L (H D + H)",
            (GateInput::Key | GateInput::Query, QkNorm::Rms) => "L (H D + H + 2 D)",
            (GateInput::Both, QkNorm::None) => "L (2 H D + H)",
            (GateInput::Both, QkNorm::Rms) => "L (2 H D + H + 2 D)",
        };
        Card { parameters, ..Self::CARD }
    }

    fn build(
        settings: &AdditiveConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let std = (dims.head_dim as f64).powf(-0.5);
        let mut directions = |wanted: bool| {
            let layers = if wanted { dims.layers } else { 0 };
            (0..layers)
                .map(|_| init::normal(std, [dims.heads, dims.head_dim], rng, device))
                .collect()
        };
        Ok(Additive {
            omega: (0..dims.layers).map(|_| init::constant(OMEGA, [dims.heads], device)).collect(),
            key: directions(settings.gate != GateInput::Query),
            query: directions(settings.gate != GateInput::Key),
            norms: settings.qk_norm.init(dims, device),
            slopes: slopes::spliced(dims.heads),
        })
    }

    fn param_count(settings: &AdditiveConfig, dims: &Dims) -> Option<usize> {
        let directions = settings.gate.directions() * dims.heads_width();
        Some(dims.layers * (dims.heads + directions) + settings.qk_norm.param_count(dims))
    }

    fn cost(settings: &AdditiveConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let Dims { layers, heads, .. } = *dims;
        let gates = layers * len * settings.gate.directions();
        Some(
            Cost::none()
                .elementwise("gates", gates * (2 * dims.heads_width() + 5 * heads))
                .pair_elementwise("price times gate, sum of logits", 3 * layers * len * len * heads)
                .and(settings.qk_norm.cost(dims, len)),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        self.norms.apply(ctx.layer, q, k)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let layer = ctx.layer.layer;
        let slopes = init::fixed(&self.slopes, &ctx.q.device());
        let rate = softplus(self.omega[layer].val(), 1.0) * slopes;
        ScoreMod::TokenPrice(TokenPrice {
            rate,
            keys: self.key.get(layer).map(|key| gate(ctx.k, key)),
            queries: self.query.get(layer).map(|query| gate(ctx.q, query)),
        })
    }
}

impl ScalarReference for Additive {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        grape::normed(input, self.norms.scalar(input.layer).as_ref())
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let layer = input.layer;
        let table =
            |sets: &[Param<Tensor<2>>]| -> Option<Tokens> { sets.get(layer).map(table_f64) };
        let gates = grape::ScalarGates { key: table(&self.key), query: table(&self.query) };
        let omega = values_f64(&self.omega[layer]);
        let norm = self.norms.scalar(layer);
        grape::additive(input, &self.slopes, &omega, &gates, norm.as_ref())
    }
}

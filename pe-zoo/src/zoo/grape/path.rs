//! GRAPE-AP: sum of slopes over the tokens on the path from the key to the query.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use super::norm::{QkNorm, QkNorms};
use crate::card::Card;
use crate::encoding::{LayerContext, ScoreContext, StateContext};
use crate::math::slopes;
use crate::ops::{linear, rms_norm};
use crate::parts::by_head;
use crate::reference::{Heads, ScalarInput, ScalarReference, grape, table_f64};
use crate::rotary::{Pairs, Rotation};
use crate::score::StepPrices;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, TokenState, init};

/// Constant added to the mean of squares of `p`: PyTorch's default for f32.
const EPS: f64 = f32::EPSILON as f64;

crate::settings! {
    /// Settings of GRAPE-AP: channels and normalisation.
    pub struct AdditivePathConfig {
        /// Number of channels of `p` per head; even.
        pub dim: usize = 8,
        /// Whether queries and keys are normalised.
        pub qk_norm: QkNorm = QkNorm::Rms,
    }
}

/// Sum of slopes over the tokens between key and query.
#[derive(Module, Debug)]
pub struct AdditivePath {
    /// Projections to `p`, `[C, H dim]` per layer.
    pub projection: Vec<Param<Tensor<2>>>,
    /// Normalisation of queries and keys.
    pub norms: QkNorms,
    #[module(skip)]
    slopes: Vec<f64>,
}

impl PositionEncoding for AdditivePath {
    type Settings = AdditivePathConfig;

    const CARD: Card = Card {
        id: "grape",
        label: "GRAPE",
        summary: "Subtracts from each logit the learned costs of all steps between the two tokens.",
        parameters: "L (C H dim + 2 D)",
        paper: "Zhang et al. 2025",
        url: "https://arxiv.org/abs/2512.07805",
    };

    fn card(settings: &AdditivePathConfig) -> Card {
        match settings.qk_norm {
            QkNorm::Rms => Self::CARD,
            QkNorm::None => Card { parameters: "L C H dim", ..Self::CARD },
        }
    }

    fn check(settings: &AdditivePathConfig, _dims: &Dims) -> Result<(), PeError> {
        let usable = settings.dim > 0 && settings.dim.is_multiple_of(2);
        let expected = "an even number of at least 2; channels are rotated in pairs";
        PeError::require(usable, Self::CARD.id, "variant.dim", settings.dim, expected)
    }

    fn build(
        settings: &AdditivePathConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        // Standard deviation `0.5 / sqrt(inputs)`, as in all projections of the authors.
        let std = 0.5 * (dims.width as f64).powf(-0.5);
        let shape = [dims.width, dims.heads * settings.dim];
        Ok(AdditivePath {
            projection: (0..dims.layers).map(|_| init::normal(std, shape, rng, device)).collect(),
            norms: settings.qk_norm.init(dims, device),
            slopes: slopes::spliced(dims.heads),
        })
    }

    fn param_count(settings: &AdditivePathConfig, dims: &Dims) -> Option<usize> {
        Some(
            dims.layers * dims.width * dims.heads * settings.dim
                + settings.qk_norm.param_count(dims),
        )
    }

    fn cost(settings: &AdditivePathConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let Dims { layers, heads, .. } = *dims;
        let (tokens, pairs) = (layers * len, layers * len * len * heads);
        Some(
            Cost::none()
                .product("p", tokens * dims.width * heads * settings.dim)
                .elementwise("normalisation and rotation of p", 7 * tokens * heads * settings.dim)
                .pair_product("prices", pairs * settings.dim)
                .pair_elementwise("logarithms, running sum, slope, sum of logits", 8 * pairs)
                .and(settings.qk_norm.cost(dims, len)),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let heads = self.slopes.len();
        let p = linear(ctx.x.clone(), self.projection[ctx.layer].val(), None);
        TokenState { tensors: vec![by_head(p, heads)] }
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
        let at = ctx.layer.at;
        let device = ctx.q.device();
        let (rows, cols) = (ctx.layer.rows.tensors[0].clone(), ctx.layer.cols.tensors[0].clone());
        let [_batch, _heads, _rows, dim] = rows.dims();
        let rotation = at.memo(&format!("grape-path {dim}"), &device, || {
            let turn = |position: usize, _pair: usize| (-(position as f64), 1.0);
            Rotation::tabulate(at, Pairs::HalfSplit, dim / 2, &device, turn)
        });
        // Normalised in the order of the projection in memory, `[B, S, H, dim]`.
        let cols = rms_norm(cols.swap_dims(1, 2), Tensor::ones([dim], &device), EPS);
        let rotated = rotation.turn(cols.swap_dims(1, 2));
        let slopes = init::fixed(&self.slopes, &device);
        ScoreMod::StepPrices(StepPrices { queries: rows, keys: rotated, slopes })
    }
}

impl ScalarReference for AdditivePath {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        grape::normed(input, self.norms.scalar(input.layer).as_ref())
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let projection = table_f64(&self.projection[input.layer]);
        let norm = self.norms.scalar(input.layer);
        grape::path(input, &projection, &self.slopes, norm.as_ref())
    }
}

//! # RePo: each head computes the position of a token from the token
//!
//! ## What it does
//! Rotates queries and keys as RoPE does, but each head computes the position of a token from the token instead of
//! taking its index in the sequence. Tokens that belong together can thus be near each other wherever they are. The
//! order of tokens matters only through the causal mask.
//!
//! ## Formula
//! `p[t, h] = (Wz (silu(Wg x_t) * Wc x_t))_h`; `angle[t, h, m] = p[t, h] base^(-2m / D)` for the `D / 2` pairs `(m, m + D/2)`;
//! `silu(u) = u / (1 + exp(-u))`, `x` the layer's input.
//!
//! ## Shapes
//! `state: [B, H, T, 1]`, the positions; `transform_qk: [B, H, T, D], [B, H, S, D]` unchanged.
//!
//! ## Settings
//! `width`: hidden channels of the map to positions (default: `C / 8`, as in the paper's code, at least 1).
//! `base` (500000, that of the paper's model OLMo 2): base of the frequencies.
//!
//! The paper leaves the first third of the layers to RoPE: write `rope/repo/repo` for three layers. If all layers use
//! RePo, the model knows no order except that of the mask: in one layer, exchanging tokens before a row does not change
//! the row's output.
//!
//! ## Initial values
//! Maps: normal with standard deviation 0.02, as OLMo starts its projections. Positions begin near 0, where the model is NoPE.
//!
//! ## Deviations
//! OLMo cuts draws beyond three standard deviations. Its published weights were trained further from those of a model with RoPE.
//!
//! ## References
//! Li et al. 2025, "RePo: Language Models with Context Re-Positioning", arXiv 2512.14391; authors' code `SakanaAI/repo`
//! `OLMo/olmo/model.py`.

use burn::module::{Module, Param};
use burn::tensor::activation::silu;
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use crate::card::Card;
use crate::encoding::{LayerContext, StateContext};
use crate::math::frequencies::{check_base, inverse_frequencies};
use crate::ops::linear;
use crate::parts::by_head;
use crate::reference::rope::ScalarRotation;
use crate::reference::{Heads, ScalarInput, ScalarReference, dot, table_f64};
use crate::rotary::{Rotation, check_pairs};
use crate::settings::check_size;
use crate::{Cost, Dims, PeError, PositionEncoding, TokenState, init};

/// Standard deviation of the initial weights.
const STD: f64 = 0.02;

crate::settings! {
    /// Settings of the RePo encoding.
    pub struct RepoConfig {
        /// Hidden channels of the map to positions; `None`: an eighth of the model's width.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub width: Option<usize> = None,
        /// Base of the frequencies.
        pub base: f64 = 500_000.0,
    }
}

impl RepoConfig {
    fn hidden(&self, dims: &Dims) -> usize {
        self.width.unwrap_or((dims.width / 8).max(1))
    }
}

/// Map from tokens to positions, of one layer.
#[derive(Module, Debug)]
pub struct PositionMap {
    /// Map to the gates, `[C, width]`.
    pub gate: Param<Tensor<2>>,
    /// Map to what the gates multiply, `[C, width]`.
    pub content: Param<Tensor<2>>,
    /// Map to the positions of the heads, `[width, H]`.
    pub output: Param<Tensor<2>>,
}

/// Rotation of queries and keys by positions computed from the tokens.
#[derive(Module, Debug)]
pub struct Repo {
    /// Maps to positions, one per layer.
    pub layers: Vec<PositionMap>,
    #[module(skip)]
    frequencies: Vec<f64>,
    /// Cache key of the frequencies among the values stored with the positions.
    #[module(skip)]
    key: String,
}

impl PositionMap {
    fn new(width: usize, dims: &Dims, rng: &mut ChaCha8Rng, device: &Device) -> Self {
        let mut draw =
            |inputs: usize, outputs: usize| init::normal(STD, [inputs, outputs], rng, device);
        Self {
            gate: draw(dims.width, width),
            content: draw(dims.width, width),
            output: draw(width, dims.heads),
        }
    }

    /// Computes the position of a token in scalar f64, one per head.
    fn scalar(&self, x: &[f64]) -> Vec<f64> {
        let map = |x: &[f64], weights: &Param<Tensor<2>>| -> Vec<f64> {
            let rows = table_f64(weights);
            let column = |n: usize| rows.iter().map(|row| row[n]).collect::<Vec<_>>();
            (0..rows[0].len()).map(|n| dot(x, &column(n))).collect()
        };
        let gated = map(x, &self.gate).into_iter().zip(map(x, &self.content));
        let hidden = gated.map(|(gate, content)| gate / (1.0 + (-gate).exp()) * content);
        map(&hidden.collect::<Vec<_>>(), &self.output)
    }
}

impl PositionEncoding for Repo {
    type Settings = RepoConfig;

    const CARD: Card = Card {
        id: "repo",
        label: "RePo",
        summary: "Rotates queries and keys by positions that each head computes from the tokens.",
        parameters: "L (2 C + H) width",
        paper: "Li et al. 2025",
        url: "https://arxiv.org/abs/2512.14391",
    };

    fn check(settings: &RepoConfig, dims: &Dims) -> Result<(), PeError> {
        check_pairs(Self::CARD.id, dims.head_dim)?;
        check_size(Self::CARD.id, "width", settings.width.unwrap_or(1))?;
        check_base(Self::CARD.id, "base", settings.base)
    }

    fn build(
        settings: &RepoConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let width = settings.hidden(dims);
        Ok(Self {
            layers: (0..dims.layers).map(|_| PositionMap::new(width, dims, rng, device)).collect(),
            frequencies: inverse_frequencies(settings.base, dims.head_dim),
            key: format!("repo {} {}", dims.head_dim, settings.base),
        })
    }

    fn param_count(settings: &RepoConfig, dims: &Dims) -> Option<usize> {
        Some(dims.layers * (2 * dims.width + dims.heads) * settings.hidden(dims))
    }

    fn cost(settings: &RepoConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let (tokens, width) = (dims.layers * len, settings.hidden(dims));
        Some(
            Cost::none()
                .product("positions", tokens * width * (2 * dims.width + dims.heads))
                .elementwise("gates", 4 * tokens * width)
                .elementwise(
                    "angles, rotation of queries and keys",
                    8 * tokens * dims.heads_width(),
                ),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let PositionMap { gate, content, output } = &self.layers[ctx.layer];
        let of = |x: Tensor<3>, weights: &Param<Tensor<2>>| linear(x, weights.val(), None);
        let hidden = silu(of(ctx.x.clone(), gate)) * of(ctx.x.clone(), content);
        let positions = of(hidden, output);
        let [_batch, _tokens, heads] = positions.dims();
        TokenState { tensors: vec![by_head(positions, heads)] }
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        let device = q.device();
        let frequencies = ctx.at.memo(&self.key, &device, || {
            let values = self.frequencies.iter().map(|f| *f as f32).collect::<Vec<_>>();
            let shape = [1, 1, 1, values.len()];
            Tensor::<4>::from_data(TensorData::new(values, shape), &device)
        });
        let angles = ctx.cols.tensors[0].clone() * frequencies;
        Rotation::by_angles(angles).turn_both(q, k, ctx.at)
    }
}

impl ScalarReference for Repo {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        let positions = input.x.iter().map(|x| self.layers[input.layer].scalar(x));
        let positions = positions.collect::<Vec<_>>();
        let frequencies = self.frequencies.clone();
        let rotation = ScalarRotation { frequencies, factor: 1.0, interleaved: false };
        let turned = |head: usize, u: &[f64], column: usize| {
            rotation.turned(u, positions[column][head], 0.0)
        };
        input.changed(turned, turned)
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        self.scalar_transformed(input).plain()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;
    use rand_chacha::rand_core::SeedableRng;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on query, key, state; content dependent, ignores positions, shift invariant",
        texts: &["repo", "repo{width=3,base=50.0}"],
    }];

    const DIMS: Dims =
        Dims { layers: 2, width: 16, heads: 2, head_dim: 8, train_len: 8, max_len: 8 };

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let check =
            |settings: &RepoConfig, dims| Repo::check(settings, dims).unwrap_err().to_string();
        let of = |width, base| RepoConfig { width, base };
        assert!(check(&of(Some(0), 10.0), &DIMS).contains("width is 0"));
        assert!(check(&of(None, 1.0), &DIMS).contains("base is 1"));
        let odd = Dims { width: 14, head_dim: 7, ..DIMS };
        assert!(check(&RepoConfig::default(), &odd).contains("model.head_dim is 7"));
    }

    /// A gate of 2 and a content of 3 in each of two hidden channels, which the heads weigh by 1 and -1, and by 1 and 1.
    #[test]
    fn positions_are_gated_contents_summed_for_each_head() {
        let device = Device::flex();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut repo =
            Repo::build(&RepoConfig { width: Some(2), base: 10.0 }, &DIMS, &mut rng, &device)
                .unwrap();
        let weights = |first: f32, rows: usize| {
            let values = (0..2 * rows).map(|n| if n < 2 { first } else { 0.0 }).collect();
            init::given(values, [rows, 2], &device)
        };
        let (gate, content) = (weights(2.0, 16), weights(3.0, 16));
        let output = init::given(vec![1.0, 1.0, -1.0, 1.0], [2, 2], &device);
        repo.layers[0] = PositionMap { gate, content, output };
        let mut x = vec![0.0; 16];
        x[0] = 1.0;
        let silu = 2.0 / (1.0 + (-2f64).exp());
        let found = repo.layers[0].scalar(&x);
        assert!(found[0].abs() < 1e-12 && (found[1] - 6.0 * silu).abs() < 1e-12, "{found:?}");
    }
}

//! # PaTH: keys changed by every token on the way
//!
//! ## What it does
//! Each token applies a Householder-like transformation to all keys before it, along a direction
//! computed from its content: a reflection, a projection, or the identity. A query is compared with a
//! key after the transformations of the tokens in between.
//!
//! ## Formula
//! `H_t = I - beta_t w_t w_t^T`, `logit[i, j] = q_i . H_i H_{i-1} ... H_{j+1} k_j / sqrt(D)`,
//! `w_t = L2norm(SiLU(conv(W_up W_down x_t)))`, `beta_t = 2 sigma(w_h . x_t + b_h)`;
//! with forgetting, `+ (sum over j < l <= i of ln f_l) / sqrt(D)`
//!
//! ## Shapes
//! `state: [B, H, T, D]` (before the convolution), `[B, H, T, 1]` (`beta`), and with forgetting
//! `[B, H, T, 1]` (`ln f`); `score: Reflected`, and with forgetting `Decay`.
//!
//! ## Settings
//! `rank` (32, the authors'): rank of the projection to `w`. `kernel` (3, the authors'): tokens that the
//! causal convolution sees, per channel and without bias; 1 sees the token alone.
//! `forget`: `{ type = "none" }` (default) or `{ type = "gate", bias = 0.0 }` (PaTH-FoX; the bias at
//! the start).
//!
//! ## Initial values
//! Projections: normal with deviation 0.02, and biases 0, as in flash-linear-attention. Convolution: as PyTorch starts one
//! (see Deviations).
//!
//! ## Deviations
//! The convolution is initialised as in `PyTorch` (uniformly in `+-1 / sqrt(kernel)`), not with
//! standard deviation 0.02, which at small widths would make `w` as small as the epsilon of the norm. The authors'
//! code divides the sum of `ln f` by `sqrt(D)`, unlike plain FoX; so does this implementation.
//!
//! ## References
//! Yang et al. 2025, "PaTH Attention", arXiv 2505.16381; authors' code
//! `fla-org/flash-linear-attention` `fla/layers/path_attn.py` at bc3b101dcb.

use burn::module::{Module, Param};
use burn::tensor::activation::{log_sigmoid, sigmoid};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::{ScoreContext, StateContext};
use crate::ops::{causal_convolution, linear, unit_norm};
use crate::parts::{HeadProjection, by_head, forget_decay, householder};
use crate::reference::{Heads, ScalarInput, ScalarReference, decay, path, table_f64};
use crate::score::Reflected;
use crate::settings::check_size;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, TokenState, init};

/// Constant inside the square root of the norm of `w`, as in the authors' code.
const NORM_EPSILON: f64 = 1e-6;

/// Whether earlier tokens are also forgotten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Forget {
    /// Tokens are not forgotten.
    #[default]
    None,
    /// Forgetting by a learned gate per head and layer, as in FoX (PaTH-FoX).
    Gate {
        /// Initial value of every bias.
        #[serde(default)]
        bias: f64,
    },
}

crate::settings! {
    /// Settings of PaTH: directions and forgetting.
    pub struct PathConfig {
        /// Rank of the projection to `w`.
        pub rank: usize = 32,
        /// Number of tokens that the convolution sees.
        pub kernel: usize = 3,
        /// Whether earlier tokens are also forgotten.
        pub forget: Forget = Forget::None,
    }
}

/// Householder-like maps of keys, chosen by the tokens.
#[derive(Module, Debug)]
pub struct Path {
    layers: Vec<Layer>,
    #[module(skip)]
    heads: usize,
}

/// Learned parameters of one layer.
#[derive(Module, Debug)]
struct Layer {
    /// First factor of the projection, `[C, rank]`.
    down: Param<Tensor<2>>,
    /// Second factor of the projection, `[rank, C]`.
    up: Param<Tensor<2>>,
    /// Weights of the convolution, `[kernel, C]`, the last row for the token itself.
    kernel: Param<Tensor<2>>,
    strength: HeadProjection,
    forget: Option<HeadProjection>,
}

impl PathConfig {
    /// Number of projections to one number per head: for the strengths, and for the gates if there
    /// are any.
    fn head_projections(&self) -> usize {
        match self.forget {
            Forget::None => 1,
            Forget::Gate { .. } => 2,
        }
    }

    /// Number of learned weights for the directions of one layer, each used once per token.
    fn direction_params(&self, dims: &Dims) -> usize {
        dims.width * self.rank + dims.heads_width() * (self.rank + self.kernel)
    }
}

impl Layer {
    /// Computes directions of unit length, `[B, H, S, D]`, from the projected tokens of the same
    /// shape.
    fn directions(&self, projected: &Tensor<4>) -> Tensor<4> {
        let [batch, heads, tokens, head_dim] = projected.dims();
        let by_token = projected.clone().swap_dims(1, 2);
        let active = causal_convolution(
            by_token.reshape([batch, tokens, heads * head_dim]),
            self.kernel.val(),
            true,
        );
        unit_norm(active.reshape([batch, tokens, heads, head_dim]), NORM_EPSILON).swap_dims(1, 2)
    }
}

impl PositionEncoding for Path {
    type Settings = PathConfig;

    const CARD: Card = Card {
        id: "path",
        label: "PaTH",
        summary: "Reflects keys along directions chosen by the tokens between key and query.",
        parameters: "L (C rank + H D (rank + kernel) + C H + H)",
        paper: "Yang et al. 2025",
        url: "https://arxiv.org/abs/2505.16381",
    };

    fn card(settings: &PathConfig) -> Card {
        let parameters = match settings.forget {
            Forget::None => Self::CARD.parameters,
            Forget::Gate { .. } => "L (C rank + H D (rank + kernel) + 2 C H + 2 H)",
        };
        Card { parameters, ..Self::CARD }
    }

    fn check(settings: &PathConfig, _dims: &Dims) -> Result<(), PeError> {
        let pe = Self::CARD.id;
        check_size(pe, "rank", settings.rank)?;
        check_size(pe, "kernel", settings.kernel)?;
        match settings.forget {
            Forget::None => Ok(()),
            Forget::Gate { bias } => {
                PeError::require(bias.is_finite(), pe, "forget.bias", bias, "a finite number")
            }
        }
    }

    fn build(
        settings: &PathConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let (width, channels) = (dims.width, dims.heads_width());
        let layers = (0..dims.layers)
            .map(|_| Layer {
                down: init::normal(0.02, [width, settings.rank], rng, device),
                up: init::normal(0.02, [settings.rank, channels], rng, device),
                kernel: {
                    let bound = 1.0 / (settings.kernel as f64).sqrt();
                    init::uniform(bound, [settings.kernel, channels], rng, device)
                },
                strength: HeadProjection::init(dims, 0.0, rng, device),
                forget: match settings.forget {
                    Forget::None => None,
                    Forget::Gate { bias } => Some(HeadProjection::init(dims, bias, rng, device)),
                },
            })
            .collect();
        Ok(Path { layers, heads: dims.heads })
    }

    fn param_count(settings: &PathConfig, dims: &Dims) -> Option<usize> {
        let per_head = settings.head_projections() * HeadProjection::param_count(dims);
        Some(dims.layers * (settings.direction_params(dims) + per_head))
    }

    fn cost(settings: &PathConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let tokens = dims.layers * len;
        let (channels, heads) = (dims.heads_width(), dims.heads);
        let projections = dims.width * (settings.rank + settings.head_projections() * heads)
            + settings.rank * channels;
        let pairs = dims.layers * heads * len * len;
        let cost = Cost::none()
            .product("directions, strengths, gates", tokens * projections)
            .elementwise(
                "convolution, SiLU, lengths of directions",
                tokens * channels * (2 * settings.kernel + 8),
            )
            .product(
                "keys along the path",
                dims.layers * heads * householder::macs(len, dims.head_dim),
            )
            .pair_product_spared("queries with keys", dims.layers * len * len * channels);
        Some(match settings.forget {
            Forget::None => cost,
            Forget::Gate { .. } => cost.pair_elementwise("differences, sum of logits", 4 * pairs),
        })
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let layer = &self.layers[ctx.layer];
        let narrow = linear(ctx.x.clone(), layer.down.val(), None);
        let projected = by_head(linear(narrow, layer.up.val(), None), self.heads);
        let strength = sigmoid(layer.strength.forward(ctx.x)) * 2.0;
        let mut tensors = vec![projected, strength];
        tensors.extend(layer.forget.as_ref().map(|gate| log_sigmoid(gate.forward(ctx.x))));
        TokenState { tensors }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let LayerState { projected, strength, log_forget } = LayerState::of(ctx.layer.cols);
        let products = ScoreMod::Reflected(Reflected {
            directions: self.layers[ctx.layer.layer].directions(projected),
            strengths: strength.clone(),
        });
        let Some(log_forget) = log_forget else { return products };
        let [_batch, _heads, _rows, head_dim] = ctx.q.dims();
        let decay = forget_decay(log_forget.clone(), 1.0 / (head_dim as f64).sqrt());
        ScoreMod::Sum(vec![products, decay])
    }
}

/// Tensors of [`TokenState`] by name.
struct LayerState<'a> {
    projected: &'a Tensor<4>,
    strength: &'a Tensor<4>,
    log_forget: Option<&'a Tensor<4>>,
}

impl<'a> LayerState<'a> {
    fn of(state: &'a TokenState) -> Self {
        Self {
            projected: &state.tensors[0],
            strength: &state.tensors[1],
            log_forget: state.tensors.get(2),
        }
    }
}

impl ScalarReference for Path {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let layer = &self.layers[input.layer];
        let (down, up) = (table_f64(&layer.down), table_f64(&layer.up));
        let w = path::directions(&input.x, &down, &up, &table_f64(&layer.kernel), self.heads);
        let (weight, bias) = layer.strength.scalars();
        let beta = path::strengths(&input.x, &weight, &bias);
        match &layer.forget {
            None => path::logits(input, &w, &beta),
            Some(gate) => {
                let (weight, bias) = gate.scalars();
                let log_forget = decay::log_forget(&input.x, &weight, &bias);
                path::logits_with_forgetting(input, &w, &beta, &log_forget)
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits, state; content dependent, ignores positions, reads vectors, replaces products, shift invariant; dense on GPUs in f32",
        texts: &[
            "path",
            "path{forget={type=gate,bias=1.0}}",
            "path{rank=1,kernel=1}",
            "path{kernel=5}",
        ],
    }];

    #[test]
    fn a_rank_or_kernel_of_zero_is_refused_by_name() {
        let dims = Dims { layers: 1, width: 8, heads: 1, head_dim: 8, train_len: 8, max_len: 8 };
        for (config, field) in [
            (PathConfig { rank: 0, ..PathConfig::default() }, "rank is 0"),
            (PathConfig { kernel: 0, ..PathConfig::default() }, "kernel is 0"),
        ] {
            let error = Path::check(&config, &dims).unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
    }
}

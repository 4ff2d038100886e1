//! # TAPE: rotations that attention and feed-forward parts update from layer to layer
//!
//! ## What it does
//! Starts as RoPE, but carries each token's rotation from layer to layer: attention mixes the
//! rotations of the attended tokens, and the feed-forward block changes them depending on the
//! token. Updates commute with rotations, so that a shift of all positions changes nothing.
//!
//! ## Formula
//! `z = cos(n f_m) + i sin(n f_m)` per head and channel, `f_m = base^(-2m / D)`; queries and keys are
//! turned by `z` as in RoPE;
//! after the attention with weights `A`: `z_h += (sum over e of W_A[h, e]) (A z)_h` (`code`) or
//! `z_h += sum over e of W_A[h, e] (A z)_e` (`full-mix`);
//! after the feed-forward part with output `x`, before the residual sum:
//! `z_h += sum over a of W_D[h, a] silu(W_X x)_a (sum over e of W_U[a, e] z_e)`
//!
//! ## Shapes
//! `state: [B, H, T, 2 E]`, cosine then sine, `E = D / 2` (both halves of the channels stay equal) or
//! `D` (forms `vector*`); `mixed_values` the same; `transform_qk: [B, H, T, D], [B, H, S, D]`
//! unchanged; `D` even.
//!
//! ## Settings
//! `base` (10000).
//! `attention_update`: `code` (default: as the authors' code computes it), `full-mix` (the mixing that
//! the code probably intends), `none`.
//! `feed_forward_update`: `{ type = "on", position_size = I }` (default; `I` without a value is
//! four times the heads, 48 for the paper's 12) or `{ type = "off" }`.
//! `form`: `tensor` (default), `vector`, `tensor-not-equivariant`, `vector-not-equivariant` (the
//! paper's ablations).
//! `scaling`: as in RoPE, `{ rope_type = "default" }` (default), `linear`, `ntk`, `yarn` (the authors' `adayarn.py`),
//! `llama3`, `proportional`; see [`Scaling`]. Scalings that depend on the length are refused. In an expression, write
//! `tape(yarn)` and the like.
//! `training_shift`: `{ type = "random" }` (default: all positions of a training pass later by 0 to
//! twice the training length), `{ type = "random", max = k }`, or `{ type = "none" }`.
//!
//! ## Initial values
//! Those of the authors' code: `W_U = W_A = 0`, so that the model is RoPE at step 0, `W_X` and `W_D` normal with
//! deviation 0.02.
//!
//! ## Deviations
//! The authors recompute YaRN for each length; here its factor is fixed, since tokens in the cache
//! keep their state. Their file for `vector-not-equivariant` shares "one pair of maps"; here these are
//! `W_U` and `W_D`. As in their code, the last layer's update is computed although no layer reads
//! it.
//!
//! ## References
//! Zhu et al. 2025, "Rethinking Addressing in Language Models via Contextualized Equivariant
//! Positional Encoding", arXiv 2501.00712; authors' code `VITA-Group/TAPE` `models/llama/adape.py`,
//! `adamlp.py`, `adattention.py`, `adavector.py`, `adatensor.py`, `adawoeq.py`, `adayarn.py` at
//! 466d9e61e5; YaRN: Peng et al. 2023, arXiv 2309.00071.

mod maps;
mod mixing;
mod settings;

use burn::module::Module;
use burn::tensor::activation::silu;
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

pub use maps::Maps;
pub use mixing::Mixing;
pub use settings::{AttentionUpdate, FeedForwardUpdate, TapeConfig, TrainingShift};

use crate::card::{Card, Composition};
use crate::cost::InTable3;
use crate::encoding::{LayerContext, PositionRequest, StateContext, Update};
use crate::ops::{linear, turn_by_waves};
use crate::reference::attention::softmax;
use crate::reference::{Heads, ScalarInput, ScalarLayer, ScalarReference, tape};
pub use crate::rotary::Scaling;
use crate::rotary::Spectrum;
use crate::{Cost, Dims, PeError, PositionEncoding, Positions, TokenState};

/// Rotations that attention and feed-forward blocks update from layer to layer.
#[derive(Module, Debug)]
pub struct Tape {
    /// Learned maps, one set per layer.
    pub layers: Vec<Maps>,
    #[module(skip)]
    config: TapeConfig,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    frequencies: Vec<f64>,
    #[module(skip)]
    attention_factor: f64,
    #[module(skip)]
    train_len: usize,
}

impl Tape {
    /// State at the input of layer 0, `[1, 1, T, 2 E]`: RoPE's angles at the rows.
    fn initial(&self, at: &Positions, device: &Device) -> Tensor<4> {
        let pairs = self.frequencies.len();
        let channels = self.config.form.state_dim(2 * pairs);
        let key = format!("tape {channels} {} {:?}", self.attention_factor, self.frequencies);
        at.memo(&key, device, || {
            let mut values = Vec::with_capacity(at.rows().len() * 2 * channels);
            for position in at.rows() {
                let angles = || self.frequencies.iter().map(|f| *position as f64 * f);
                let waves = |wave: fn(f64) -> f64| {
                    let half = angles().map(move |a| (self.attention_factor * wave(a)) as f32);
                    half.collect::<Vec<_>>().into_iter().cycle().take(channels)
                };
                values.extend(waves(f64::cos));
                values.extend(waves(f64::sin));
            }
            Tensor::from_data(
                TensorData::new(values, [1, 1, at.rows().len(), 2 * channels]),
                device,
            )
        })
    }

    /// State with an axis for heads, `[B, H, T, 2 E]`.
    fn with_heads(&self, z: Tensor<4>) -> Tensor<4> {
        let [batch, _heads, tokens, both] = z.dims();
        z.expand([batch, self.heads, tokens, both])
    }

    fn after_attention(&self, z: Tensor<4>, mixed: Tensor<4>, maps: &Maps) -> Tensor<4> {
        let form = self.config.form;
        if self.config.attention_update == AttentionUpdate::FullMix {
            let mixed = mixing::through(&maps.attention, &form.unfold(mixed));
            return z + form.fold(mixed, self.heads);
        }
        let [_batch, heads, _tokens, both] = mixed.dims();
        let rest = heads * both / form.mixed(heads, 2 * self.frequencies.len());
        z + mixed * form.fold(mixing::row_sums(&maps.attention, rest), heads)
    }

    fn after_feed_forward(&self, z: Tensor<4>, x: &Tensor<3>, maps: &Maps) -> Tensor<4> {
        let Some(gate) = &maps.gate else { return z };
        let gate = silu(linear(x.clone(), gate.val().transpose(), None));
        let form = self.config.form;
        let z = self.with_heads(z);
        if form == Mixing::Tensor {
            return mixing::through_gate(z, maps.up[0].val(), gate, maps.down[0].val());
        }
        let gate = gate.unsqueeze_dim::<4>(2);
        let inside = mixing::through(&maps.up, &form.unfold(z.clone())) * gate;
        z + form.fold(mixing::through(&maps.down, &inside), self.heads)
    }
}

impl PositionEncoding for Tape {
    type Settings = TapeConfig;

    const CARD: Card = Card {
        id: "tape",
        label: "TAPE",
        summary: "Rotates queries and keys by angles that attention and feed-forward blocks update.",
        parameters: "L (2 I H + I C + H^2)",
        paper: "Zhu et al. 2025",
        url: "https://arxiv.org/abs/2501.00712",
    };

    fn card(settings: &TapeConfig) -> Card {
        let [of_both, of_attention, of_feed_forward] = match settings.form {
            Mixing::Tensor => [Self::CARD.parameters, "L H^2", "L (2 I H + I C)"],
            Mixing::Vector => ["L (2 I D + I C + D^2)", "L D^2", "L (2 I D + I C)"],
            Mixing::TensorNotEquivariant => {
                ["L (4 I H + I C + 2 H^2)", "2 L H^2", "L (4 I H + I C)"]
            }
            Mixing::VectorNotEquivariant => ["L (3 I C + 2 C^2)", "2 L C^2", "3 L I C"],
        };
        let parameters = match (settings.attention_update, settings.feed_forward_update) {
            (AttentionUpdate::None, _) => of_feed_forward,
            (_, FeedForwardUpdate::Off {}) => of_attention,
            (_, FeedForwardUpdate::On { .. }) => of_both,
        };
        Card { parameters, ..Self::CARD }
    }

    fn composition(_settings: &TapeConfig) -> Composition {
        Composition::Setting { field: "scaling", tag: "rope_type" }
    }

    fn dims_beside(settings: &TapeConfig, dims: &Dims) -> Dims {
        let shifted = dims.train_len + settings.training_shift.longest(dims.train_len);
        Dims { max_len: dims.max_len.max(shifted), ..*dims }
    }

    fn check(settings: &TapeConfig, dims: &Dims) -> Result<(), PeError> {
        settings.refuse_what_cannot_work(dims)
    }

    fn build(
        settings: &TapeConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let Spectrum { frequencies, attention_factor } = settings.scaling.resolved(dims).spectrum(
            settings.base,
            dims.head_dim,
            dims.train_len,
            dims.train_len,
        );
        Ok(Tape {
            layers: (0..dims.layers).map(|_| Maps::new(settings, dims, rng, device)).collect(),
            config: settings.clone(),
            heads: dims.heads,
            frequencies,
            attention_factor,
            train_len: dims.train_len,
        })
    }

    fn param_count(settings: &TapeConfig, dims: &Dims) -> Option<usize> {
        Some(dims.layers * Maps::count(settings, dims))
    }

    fn cost(settings: &TapeConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let Dims { layers, .. } = *dims;
        let (tokens, pairs) = (layers * len, layers * len * len);
        let mixed = settings.form.mixed(dims.heads, dims.head_dim);
        let state = 2 * dims.heads * settings.form.state_dim(dims.head_dim);
        let size = settings.position_size(dims).unwrap_or(0);
        let in_table = match dims.head_dim / settings.form.state_dim(dims.head_dim) {
            1 => InTable3::Once,
            times => InTable3::AsDoneThere {
                times: times as u64,
                why: "the authors keep both halves of the channels, which stay equal",
            },
        };
        let mut cost = Cost::none()
            .elementwise("rotation of queries and keys", 6 * tokens * dims.heads_width())
            .elementwise("sums of state", 2 * tokens * state);
        if settings.attention_update != AttentionUpdate::None {
            cost = cost.pair_product("cosines and sines mixed", pairs * state).in_table_3(in_table);
        }
        if settings.attention_update == AttentionUpdate::FullMix {
            cost = cost.contraction("W_A", tokens * mixed * state).in_table_3(in_table);
        }
        if size > 0 {
            cost = cost
                .product("W_X", tokens * size * dims.width)
                .in_table_3(InTable3::Fitted { times: 2 })
                .contraction("W_U and W_D", tokens * 2 * size * state)
                .in_table_3(in_table)
                .activation("SiLU", tokens * size, 4)
                .elementwise("gating", tokens * size * state / mixed);
        }
        Some(cost)
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
        let at = request.contiguous()?;
        let longest = self.config.training_shift.longest(self.train_len);
        let fits = at.cols().len() <= self.train_len;
        match request.training_rng {
            Some(rng) if fits && longest > 0 => Ok(at.shifted(rng.random_range(0..=longest))),
            _ => Ok(at),
        }
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        if !ctx.carried.tensors.is_empty() {
            return ctx.carried.clone();
        }
        let [batch, tokens, _width] = ctx.x.dims();
        let z = self.initial(ctx.at, &ctx.x.device());
        TokenState { tensors: vec![z.expand([batch as i64, 1, tokens as i64, -1])] }
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        let [rows, cols] = [ctx.rows, ctx.cols].map(|state| state.tensors[0].clone());
        (turn_by_waves(q, rows), turn_by_waves(k, cols))
    }

    fn mixed_values(&self, ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
        let maps = self.layers.get(ctx.layer)?;
        (!maps.attention.is_empty()).then(|| self.with_heads(ctx.cols.tensors[0].clone()))
    }

    fn update(&self, rows: TokenState, layer: usize, update: Update<'_>) -> TokenState {
        let Some(maps) = self.layers.get(layer) else { return rows };
        let z = rows.tensors[0].clone();
        let z = match update {
            Update::Attention(Some(mixed)) => self.after_attention(z, mixed.clone(), maps),
            Update::Attention(None) => z,
            Update::FeedForward(x) => self.after_feed_forward(z, x, maps),
        };
        TokenState { tensors: vec![z] }
    }
}

impl Tape {
    fn scalar_initial(&self, input: &ScalarInput) -> tape::ScalarState {
        tape::initial(&input.positions, input.q.len(), &self.frequencies, self.attention_factor)
    }
}

impl ScalarReference for Tape {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        tape::transformed(input, &self.scalar_initial(input))
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        self.scalar_transformed(input).plain()
    }

    fn scalar_stack(&self, layers: &[ScalarLayer]) -> Vec<Heads> {
        self.scalar_stack_beside(layers, &|_, logits| softmax(&logits))
    }

    fn scalar_stack_beside(
        &self,
        layers: &[ScalarLayer],
        weigh: &dyn Fn(&ScalarInput, Heads) -> Heads,
    ) -> Vec<Heads> {
        let maps = self.layers.iter().map(|maps| maps.scalar(&self.config)).collect::<Vec<_>>();
        tape::stack(layers, &maps, self.scalar_initial(&layers[0].input), weigh)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples {
            facts: "acts on query, key, positions, state; content dependent, mixes values, shift invariant",
            texts: &[
                "tape",
                "tape{attention_update=full-mix,base=500.0}",
                "tape{feed_forward_update={type=off}}",
                "tape{feed_forward_update={type=on,position_size=5}}",
                "tape{scaling={rope_type=linear,factor=2.0}}",
                "tape{scaling={rope_type=yarn,factor=4.0}}",
                "tape{scaling={rope_type=yarn}}",
            ],
        },
        Examples {
            facts: "acts on query, key, state; content dependent, shift invariant",
            texts: &["tape{attention_update=none,training_shift={type=none}}"],
        },
        Examples {
            facts: "acts on query, key, positions, state; content dependent, mixes values",
            texts: &[
                "tape{form=vector}",
                "tape{form=vector,attention_update=full-mix}",
                "tape{form=tensor-not-equivariant}",
                "tape{form=tensor-not-equivariant,attention_update=full-mix}",
                "tape{form=vector-not-equivariant}",
                "tape{form=vector-not-equivariant,attention_update=full-mix}",
            ],
        },
        Examples {
            facts: "acts on query, key, state; content dependent, mixes values",
            texts: &["tape{training_shift={type=none},form=vector}"],
        },
    ];
}

//! # FoX: attention that forgets
//!
//! ## What it does
//! Each token computes from its content a gate that decides how much of everything before the token is forgotten. The
//! logarithms of the gates between two tokens add up to a penalty on their logit.
//!
//! ## Formula
//! `f_t = sigma(w_h . x_t + b_h)`,
//! `logit[h, i, j] = q_i . k_j / sqrt(D) + sum over j < l <= i of ln f_l`.
//! Gates `per-row`: `f_il = sigma((A_h x_i) . (B_h x_l) / sqrt(dim))`, with `sum over j <= l < i of ln f_il`.
//!
//! ## Shapes
//! `state: [B, H, T, 1]`, `ln f` of each token; `score: Decay([B, H, S])`, its running sum over all
//! columns, and for more than 256 columns a second one with the rounding error of the first. Gates `per-row`:
//! `state: [B, H, T, dim]` twice, `score: StepPrices`.
//!
//! ## Settings
//! `gates`: `{ type = "full", bias = 5.0 }` (default; the initial bias: 5, `f` near 0.993, as in x-transformers; 0, `f`
//! near 1/2, as in the authors' code), `{ type = "per-row", dim = 8 }` (gates of pairs, x-transformers'
//! `PerRowDataDependentAlibi`), `{ type = "bias-only", tau_min = 2.0, tau_max =
//! 128.0 }` (one learned number per head, the same for all tokens), `{ type = "fixed", tau_min, tau_max }`
//! (the same, not learned). In the last two, heads forget with time constants of `tau_min` to
//! `tau_max` tokens, evenly spaced in their logarithm: `ln f = -1 / tau`. The authors' code has no
//! defaults for these; 2 and 128 are this project's.
//!
//! ## Initial values
//! Gate weights: normal with deviation 0.02, as in the authors' code. Gate bias: 5, as in `DataDependentAlibi` of
//! x-transformers; 0 in the authors' code (see Deviations). Projections of gates `per-row`: uniform in `+-1 / sqrt(C)`, as
//! in x-transformers.
//!
//! ## Deviations
//! The authors' "Pro" block (norms of query and key, output gate, shifts of keys and values) is not
//! part of the encoding. Distances are counted in tokens, whatever positions the tokens have. A window is written
//! `fox+window`.
//! The authors' code starts the bias at 0. A key 33 tokens back then has a weight of about 1e-10, and trainings of some
//! thousand steps do not recover what was forgotten at the start; the default is that of x-transformers.
//!
//! ## References
//! Lin et al. 2025, "Forgetting Transformer", arXiv 2503.02130; authors' code
//! `zhixuan-lin/forgetting-transformer` at 883f260c63; initial bias as in `DataDependentAlibi` of
//! `lucidrains/x-transformers` at 9252ed7838.

mod per_row;
mod settings;

use burn::module::{Module, Param};
use burn::tensor::activation::log_sigmoid;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

pub use per_row::PerRow;
pub use settings::{DecayTimes, ForgetGate, FoxConfig};

use crate::card::Card;
use crate::encoding::{ScoreContext, StateContext};
use crate::parts::{HeadProjection, forget_decay};
use crate::reference::{Heads, ScalarInput, ScalarReference, Tokens, decay, values_f64};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, TokenState, init};

/// Forgetting attention: a decay of the logits by forget gates.
#[derive(Module, Debug)]
pub struct Fox {
    gates: GateParams,
}

/// Parameters of the forget gates.
#[derive(Module, Debug)]
enum GateParams {
    /// Projections from tokens to gate logits, one per layer.
    Full(Vec<HeadProjection>),
    /// Projections to gates of pairs.
    PerRow(PerRow),
    /// Gate logits of the heads, `[H]` per layer.
    BiasOnly(Vec<Param<Tensor<1>>>),
    /// Constant gates, the same in all layers.
    Fixed(Fixed),
}

/// Constant forget gates of the heads.
#[derive(Module, Debug)]
struct Fixed {
    #[module(skip)]
    log_forget: Vec<f64>,
}

impl PositionEncoding for Fox {
    type Settings = FoxConfig;

    const CARD: Card = Card {
        id: "fox",
        label: "FoX",
        summary: "Adds to each logit the sum of the log forget gates of the tokens in between.",
        parameters: "L (C H + H)",
        paper: "Lin et al. 2025",
        url: "https://arxiv.org/abs/2503.02130",
    };

    fn card(settings: &FoxConfig) -> Card {
        match settings.gates {
            ForgetGate::Full { .. } => Self::CARD,
            ForgetGate::PerRow { .. } => Card { parameters: "2 L C H dim", ..Self::CARD },
            ForgetGate::BiasOnly(_) => Card { parameters: "L H", ..Self::CARD },
            ForgetGate::Fixed(_) => Card { parameters: "0", ..Self::CARD },
        }
    }

    fn check(settings: &FoxConfig, _dims: &Dims) -> Result<(), PeError> {
        settings.checked()
    }

    fn build(
        settings: &FoxConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let gates = match settings.gates {
            ForgetGate::Full { bias } => {
                let projection = |_| HeadProjection::init(dims, bias, rng, device);
                GateParams::Full((0..dims.layers).map(projection).collect())
            }
            ForgetGate::PerRow { dim } => GateParams::PerRow(PerRow::init(dims, dim, rng, device)),
            ForgetGate::BiasOnly(times) => {
                // ln sigma(bias) = -1 / tau. `expm1` overflows for small tau, where its logarithm is 1 / tau.
                let bias = |tau: f64| {
                    let inverse = 1.0 / tau;
                    -(if inverse > 40.0 { inverse } else { inverse.exp_m1().ln() }) as f32
                };
                let start = times.values(dims.heads).into_iter().map(bias).collect::<Vec<_>>();
                let vector = |_| init::given(start.clone(), [dims.heads], device);
                GateParams::BiasOnly((0..dims.layers).map(vector).collect())
            }
            ForgetGate::Fixed(times) => {
                let log_forget = times.values(dims.heads).into_iter().map(|tau| -1.0 / tau);
                GateParams::Fixed(Fixed { log_forget: log_forget.collect() })
            }
        };
        Ok(Fox { gates })
    }

    fn param_count(settings: &FoxConfig, dims: &Dims) -> Option<usize> {
        Some(match settings.gates {
            ForgetGate::Full { .. } => dims.layers * HeadProjection::param_count(dims),
            ForgetGate::PerRow { dim } => 2 * dims.layers * dims.width * dims.heads * dim,
            ForgetGate::BiasOnly(_) => dims.layers * dims.heads,
            ForgetGate::Fixed(_) => 0,
        })
    }

    fn cost(settings: &FoxConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let Dims { layers, heads, .. } = *dims;
        let pairs = layers * len * len * heads;
        if let ForgetGate::PerRow { dim } = settings.gates {
            let projections = 2 * layers * len * dims.width * heads * dim;
            return Some(
                Cost::none()
                    .product("projections of the gates", projections)
                    .pair_product("gates", pairs * dim)
                    .pair_elementwise("logarithms, running sum, sum of logits", 7 * pairs),
            );
        }
        let cost = Cost::none()
            .elementwise("logarithms of gates, running sums", 5 * layers * len * heads)
            .pair_elementwise("differences, sum of logits", 4 * pairs);
        Some(match settings.gates {
            ForgetGate::Full { .. } => cost.product("gates", layers * len * dims.width * heads),
            _ => cost,
        })
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let [batch, tokens, _width] = ctx.x.dims();
        let for_all = |log_forget: Tensor<1>| {
            let [heads] = log_forget.dims();
            log_forget.reshape([1, heads, 1, 1]).expand([batch, heads, tokens, 1])
        };
        let log_forget = match &self.gates {
            GateParams::PerRow(gates) => return TokenState { tensors: gates.state(ctx) },
            GateParams::Full(layers) => log_sigmoid(layers[ctx.layer].forward(ctx.x)),
            GateParams::BiasOnly(layers) => for_all(log_sigmoid(layers[ctx.layer].val())),
            GateParams::Fixed(fixed) => for_all(init::fixed(&fixed.log_forget, &ctx.x.device())),
        };
        TokenState { tensors: vec![log_forget] }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        match &self.gates {
            GateParams::PerRow(_) => PerRow::score(ctx),
            _ => forget_decay(ctx.layer.cols.tensors[0].clone(), 1.0),
        }
    }
}

impl ScalarReference for Fox {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let without_content = |bias: &[f64]| -> Tokens {
            let weight = vec![vec![0.0; bias.len()]; input.x[0].len()];
            decay::log_forget(&input.x, &weight, bias)
        };
        let log_forget = match &self.gates {
            GateParams::PerRow(gates) => {
                return input.biased(&gates.scalar_bias(input));
            }
            GateParams::Full(layers) => {
                let (weight, bias) = layers[input.layer].scalars();
                decay::log_forget(&input.x, &weight, &bias)
            }
            GateParams::BiasOnly(layers) => without_content(&values_f64(&layers[input.layer])),
            GateParams::Fixed(fixed) => {
                fixed.log_forget.iter().map(|x| vec![*x; input.x.len()]).collect()
            }
        };
        decay::forgetting(input, &log_forget)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::attention::{Weights, attend};
    use crate::encoding::LayerContext;
    use crate::testkit::close::{self, Tolerance, numbers};
    use crate::testkit::problem::{Problem, tensor3};
    use crate::testkit::randomise;
    use crate::zoo::tests::Examples;
    use crate::{Positions, Registry};

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples {
            facts: "acts on logits, state; content dependent, ignores positions, shift invariant",
            texts: &["fox", "fox{gates={type=full,bias=5.0}}"],
        },
        Examples {
            facts: "acts on logits, state; content dependent, ignores positions, shift invariant; dense on GPUs in f32",
            texts: &["fox{gates={type=per-row,dim=3}}"],
        },
        Examples {
            facts: "acts on logits, state; ignores positions, shift invariant; biases gates.BiasOnly",
            texts: &["fox{gates={type=bias-only,tau_max=30.0}}"],
        },
        Examples {
            facts: "acts on logits, state; ignores positions, shift invariant",
            texts: &["fox{gates={type=fixed,tau_min=0.5,tau_max=1000.0}}"],
        },
    ];

    const DIMS: Dims =
        Dims { layers: 1, width: 6, heads: 3, head_dim: 2, train_len: 8, max_len: 8 };

    fn build(gates: ForgetGate) -> Fox {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        Fox::build(&FoxConfig { gates }, &DIMS, &mut rng, &Device::flex()).unwrap()
    }

    #[test]
    fn time_constants_are_log_spaced_and_learned_gates_start_there() {
        let times = DecayTimes { tau_min: 2.0, tau_max: 32.0 };
        let expected = [-0.5, -0.125, -0.03125];
        let values = times.values(3).into_iter().map(|tau| -1.0 / tau).collect::<Vec<_>>();
        assert!(values.iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-15), "{values:?}");
        let GateParams::BiasOnly(layers) = build(ForgetGate::BiasOnly(times)).gates else {
            unreachable!()
        };
        let start = numbers(log_sigmoid(layers[0].val()));
        assert!(start.iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-6), "{start:?}");
        assert_eq!(times.values(1), [2.0]);
    }

    /// `exp(1 / tau)` overflows for times below 1/709.
    #[test]
    fn short_times_start_with_finite_gates() {
        let times = DecayTimes { tau_min: 1e-3, tau_max: 1e-2 };
        let GateParams::BiasOnly(layers) = build(ForgetGate::BiasOnly(times)).gates else {
            unreachable!()
        };
        let products = numbers(log_sigmoid(layers[0].val())).into_iter().zip(times.values(3));
        let products = products.map(|(log_forget, tau)| log_forget * tau).collect::<Vec<_>>();
        assert!(products.iter().all(|product| (product + 1.0).abs() < 1e-6), "{products:?}");
    }

    #[test]
    fn time_constants_that_cannot_be_are_refused_by_name() {
        for (tau_min, tau_max, field) in [
            (0.0, 5.0, "gates.tau_min"),
            (8.0, 5.0, "gates.tau_max"),
            (1.0, f64::NAN, "gates.tau_max"),
        ] {
            let gates = ForgetGate::Fixed(DecayTimes { tau_min, tau_max });
            let error = Fox::check(&FoxConfig { gates }, &DIMS).unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
    }

    #[test]
    fn empty_gates_are_refused_by_name() {
        let no_gates = FoxConfig { gates: ForgetGate::PerRow { dim: 0 } };
        let error = Fox::check(&no_gates, &DIMS).unwrap_err().to_string();
        assert!(error.contains("gates.dim is 0"), "{error}");
    }

    /// Attention weight of the key 33 tokens back among 64, at initialisation, with equal queries and keys.
    fn weight_33_tokens_back(gates: ForgetGate) -> f64 {
        const TOKENS: usize = 64;
        let (device, pe) = (Device::flex(), build(gates));
        let x = tensor3(&Problem::random(1, TOKENS, &DIMS, 3).x, &device);
        let (at, carried) = (Positions::contiguous(0, TOKENS), TokenState::default());
        let state = pe.state(&StateContext { layer: 0, at: &at, x: &x, carried: &carried });
        let layer = LayerContext { layer: 0, at: &at, rows: &state, cols: &state };
        let q = Tensor::<4>::zeros([1, 3, TOKENS, 2], &device);
        let modifier = pe.score(&ScoreContext { layer: &layer, q: &q, k: &q });
        let attended = attend(&q, &q, &q, q.clone(), &modifier, &at, 1.0, Weights::Return);
        let weights = numbers(attended.weights.unwrap().slice_dim(2, TOKENS - 1..TOKENS));
        weights.chunks(TOKENS).map(|row| row[TOKENS - 34]).fold(1.0, f64::min)
    }

    /// Selective copy needs keys that far back from the first step on.
    #[test]
    fn a_key_33_tokens_back_has_weight_at_initialisation() {
        let default = weight_33_tokens_back(FoxConfig::default().gates);
        assert!(default > 0.5 / 64.0, "{default}");
        let authors = weight_33_tokens_back(ForgetGate::Full { bias: 0.0 });
        assert!(authors < 1e-9, "{authors}");
    }

    #[test]
    fn a_key_of_another_kind_of_gate_is_refused() {
        let fields = serde_json::json!({ "gates": { "type": "fixed", "bias": 1.0 } });
        let serde_json::Value::Object(fields) = fields else { unreachable!() };
        let error = Registry::builtin().configured("fox", fields).unwrap_err().to_string();
        assert!(error.contains("bias"), "{error}");
    }

    /// Returns the attention weights of the last of 32768 rows over the last 300 columns: by the
    /// encoding, by a plain running sum, and in f64.
    fn far_weights(gates: ForgetGate) -> [Vec<f64>; 3] {
        const TOKENS: usize = 32_768;
        let device = Device::flex();
        let pe = randomise(build(gates), 2);
        let x = &Problem::random(1, TOKENS, &DIMS, 3).x;
        let whole = Positions::contiguous(0, TOKENS);
        let carried = TokenState::default();
        let cols = pe.state(&StateContext {
            layer: 0,
            at: &whole,
            x: &tensor3(x, &device),
            carried: &carried,
        });

        let at = Positions::contiguous(TOKENS - 1, 1);
        let layer = LayerContext { layer: 0, at: &at, rows: &carried, cols: &cols };
        let q = Tensor::<4>::zeros([1, 3, 1, 2], &device);
        let k = Tensor::<4>::zeros([1, 3, TOKENS, 2], &device);
        let weights = |modifier: &ScoreMod| {
            let weights =
                attend(&q, &k, &k, k.clone(), modifier, &at, 1.0, Weights::Return).weights;
            numbers(weights.unwrap().slice_dim(3, TOKENS - 300..TOKENS))
        };
        let decayed = weights(&pe.score(&ScoreContext { layer: &layer, q: &q, k: &k }));
        let log_forget = cols.tensors[0].clone();
        let cumulative = log_forget.clone().squeeze_dim::<3>(3).cumsum(2);
        let plain = weights(&ScoreMod::Decay { cumulative });

        let log_forget = numbers(log_forget);
        let exact = log_forget.chunks(TOKENS).flat_map(|head| {
            let mut between = vec![0.0; TOKENS];
            for j in (0..TOKENS - 1).rev() {
                between[j] = between[j + 1] + head[j + 1];
            }
            let total = between.iter().map(|x| x.exp()).sum::<f64>();
            between.into_iter().skip(TOKENS - 300).map(|x| x.exp() / total).collect::<Vec<_>>()
        });
        [decayed, plain, exact.collect()]
    }

    #[test]
    fn weights_at_32768_tokens_are_those_of_f64() {
        // Tolerance for sums of 300 terms near 1 in f32.
        const FAR: Tolerance = Tolerance { absolute: 1e-9, relative: 1e-4 };
        let fixed = ForgetGate::Fixed(DecayTimes { tau_min: 1.5, tau_max: 100.0 });
        for gates in [fixed, ForgetGate::Full { bias: 0.0 }] {
            let [own, plain, exact] = far_weights(gates);
            close::compare(&own, &exact, FAR).unwrap_or_else(|e| panic!("{gates:?}: {e}"));
            assert!(close::compare(&plain, &exact, FAR).is_err(), "{gates:?}: nothing to mend");
        }
    }
}

//! # KERPLE: a learned kernel of distance
//!
//! ## What it does
//! Subtracts from each logit a function of distance with two learned numbers per head: a scale and
//! a shape. The logarithmic kernel flattens out at large distances, the power kernel ranges from
//! nearly flat to a parabola. The weight form multiplies the content of the logit by a second kernel.
//!
//! ## Formula
//! `logarithmic`: `logit[h, i, j] = q_i . k_j / sqrt(D) - p_h ln(1 + a_h (i - j))`
//! `power`: `logit[h, i, j] = q_i . k_j / sqrt(D) - a_h (i - j)^p_h`
//! `generalized-gaussian`: `logit[h, i, j] = q_i . k_j / sqrt(D) - exp(a_h) (|j - i - mu_h| + 1e-5)^p_h`,
//! `mu_h = exp(m_h) - exp(-m_h)`
//! With `weight = "power"` the first term is `q_i . k_j / sqrt(D) exp(-wa_h (i - j)^wp_h)`.
//! Parameters are clamped to at least 0.01, `p_h` of the power kernel and `wp_h` to at most 2; those of `generalized-gaussian`
//! are not clamped, and with an exponent below 0 tokens nearer to the centre are penalised more.
//!
//! ## Shapes
//! `score: Distance([H, N])`, `N` one more than the longest distance of the pass, after a `Term` with `[H, 2]` for the
//! weight.
//!
//! ## Settings
//! `kernel`: `logarithmic` (default, the better in the paper), `power`, `none` (the weight alone) or `generalized-gaussian` (the
//! prior of the Bayesian Attention Mechanism, BAM).
//! `mean`: `zero` (default) or `learned`, the offset `mu_h` of the penalty's centre from the row in `generalized-gaussian`; earlier
//! tokens are at negative offsets.
//! `weight`: `none` (default) or `power`, the authors' weight form. The authors' code has this form together with the
//! power kernel and alone.
//! `sharing`: `all-layers` (default, as in the paper) or `per-layer` (as in DAPE's code).
//!
//! ## Initial values
//! `p` and `wp` uniform in 0..2, `a` and `wa` uniform in 0..1, as in the authors' code. In `generalized-gaussian`, `p` is 1,
//! `a` the logarithm of ALiBi's slopes and `m` 0, as in the code of BAM, so training starts from ALiBi.
//!
//! ## Deviations
//! The authors' code writes the clamped values back into the parameters before each use, which does
//! not zero their gradients. Here the gradient passes the clamp in the same way, but the parameter
//! itself may move past the limit, and then takes as many steps to return.
//!
//! ## References
//! Chi et al. 2022, "KERPLE", arXiv 2205.09921; `chijames/KERPLE` at 25be3d712e,
//! `megatron/mpu/layers.py`. `generalized-gaussian`: Bianchessi et al. 2025, "Bayesian Attention Mechanism", arXiv 2505.22842;
//! `ArthurSBianchessi/BAM` at 5a6579d, `models/bam_ssmax.py`.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::math::slopes;
use crate::reference::{Heads, ScalarInput, ScalarReference, distance, values_f64};
use crate::score::{Beyond, Number, Pair, PairTerm, Term};
use crate::settings::{Sharing, is_default, learned, of_layer};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, card, init};

/// Lower bound of both parameters.
const SMALLEST: f32 = 0.01;

/// Largest exponent at which the power kernel is conditionally positive definite.
const LARGEST_EXPONENT: f32 = 2.0;

/// Number added to the distance from the mean of the generalised Gaussian kernel, as in the code of BAM.
const OFFSET: f64 = 1e-5;

/// Kernel: the bias as a function of the distance `n`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Logarithmic kernel, `-p ln(1 + a n)`.
    #[default]
    Logarithmic,
    /// Power kernel, `-a n^p`.
    Power,
    /// No bias; only together with a weight.
    None,
    /// Logarithm of a generalised Gaussian, `-exp(a) (|n + mu| + 1e-5)^p`.
    GeneralizedGaussian,
}

/// Offset of the centre of the generalised Gaussian kernel from the row's token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelMean {
    /// The token itself, at offset 0.
    #[default]
    Zero,
    /// One learned offset per head.
    Learned,
}

/// Factor of the content logit as a function of the distance `n`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentWeight {
    /// The content logit is not multiplied.
    #[default]
    None,
    /// Power kernel in the exponent, `exp(-wa n^wp)`.
    Power,
}

crate::settings! {
    /// Settings of the KERPLE encoding.
    pub struct KerpleConfig {
        /// Kernel: the bias as a function of distance.
        pub kernel: Kernel = Kernel::default(),
        /// Factor of the content logit as a function of distance.
        #[serde(skip_serializing_if = "is_default")]
        pub weight: ContentWeight = ContentWeight::None,
        /// Which layers share parameters.
        pub sharing: Sharing = Sharing::AllLayers,
        /// Offset of the centre of the generalised Gaussian kernel from the row's token.
        #[serde(skip_serializing_if = "is_default")]
        pub mean: KernelMean = KernelMean::Zero,
    }
}

/// Bias by a learned kernel of distance per head.
#[derive(Module, Debug)]
pub struct Kerple {
    /// Parameter `a`, `[H]` each: one tensor, or one per layer; empty without a bias.
    pub a: Vec<Param<Tensor<1>>>,
    /// Parameter `p`, `[H]` each: one tensor, or one per layer; empty without a bias.
    pub p: Vec<Param<Tensor<1>>>,
    /// Parameter `m` of a learned mean, `[H]` each; empty without one.
    pub m: Vec<Param<Tensor<1>>>,
    /// Parameter `wa` of the weight, `[H]` each; empty without a weight.
    pub weight_a: Vec<Param<Tensor<1>>>,
    /// Parameter `wp` of the weight, `[H]` each; empty without a weight.
    pub weight_p: Vec<Param<Tensor<1>>>,
    #[module(skip)]
    kernel: Kernel,
}

/// Content logit times the weight, with parameters `wa` and `wp`.
#[derive(Debug, Clone)]
struct WeightedContent;

impl PairTerm<2> for WeightedContent {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 2>) -> N {
        let [a, p] = pair.params;
        pair.content * (-(a * pair.distance.pow(p))).exp()
    }
}

impl KerpleConfig {
    /// Number of learned numbers per head.
    fn params_per_head(&self) -> usize {
        let of_bias = if self.kernel == Kernel::None { 0 } else { 2 };
        let of_mean = usize::from(self.mean != KernelMean::Zero);
        of_bias + of_mean + if self.weight == ContentWeight::None { 0 } else { 2 }
    }
}

/// Clamps `x` to `low..=high` with a gradient of 1 everywhere.
fn clamp_straight_through(x: Tensor<1>, low: f32, high: f32) -> Tensor<1> {
    let clamped = x.clone().detach().clamp(low, high);
    clamped + (x.clone() - x.detach())
}

impl Kerple {
    /// Evaluates the kernel at distances `[1, N]`, given with their logarithms (0 for distance 0);
    /// returns `[H, N]`.
    fn kernel(&self, layer: usize, distances: Tensor<2>, logs: Tensor<2>) -> Tensor<2> {
        let column = |x: Tensor<1>| x.unsqueeze_dim::<2>(1);
        let (a, p) = (of_layer(&self.a, layer).val(), of_layer(&self.p, layer).val());
        if self.kernel == Kernel::GeneralizedGaussian {
            let far = match learned(&self.m, layer) {
                Some(m) => (distances + column(m.val().exp() - m.val().neg().exp())).abs(),
                None => distances,
            };
            return ((far + OFFSET).log() * column(p)).exp() * column(a.exp()).neg();
        }
        let a = column(clamp_straight_through(a, SMALLEST, f32::MAX));
        match self.kernel {
            Kernel::Logarithmic => {
                let p = column(clamp_straight_through(p, SMALLEST, f32::MAX));
                (a * distances).log1p() * p.neg()
            }
            Kernel::Power => {
                let p = column(clamp_straight_through(p, SMALLEST, LARGEST_EXPONENT));
                // The gradient of 0^p computed through its logarithm is NaN.
                let apart = distances.greater_elem(0).float();
                (p * logs).exp() * apart * a.neg()
            }
            Kernel::None | Kernel::GeneralizedGaussian => {
                unreachable!("a layer without a bias has no table")
            }
        }
    }

    /// Clamped parameters of the weight, `[H, 2]`; `None` without a weight.
    fn weight(&self, layer: usize) -> Option<Tensor<2>> {
        if self.weight_a.is_empty() {
            return None;
        }
        let clamped = |params: &[Param<Tensor<1>>], high: f32| {
            clamp_straight_through(of_layer(params, layer).val(), SMALLEST, high)
        };
        let (a, p) = (clamped(&self.weight_a, f32::MAX), clamped(&self.weight_p, LARGEST_EXPONENT));
        Some(Tensor::stack(vec![a, p], 1))
    }

    /// Computes the bias of every pair in scalar f64.
    pub(super) fn scalar_bias(&self, input: &ScalarInput) -> Heads {
        let params = |sets: &[Param<Tensor<1>>]| values_f64(of_layer(sets, input.layer));
        match self.kernel {
            Kernel::Logarithmic => {
                distance::kerple_logarithmic(input, &params(&self.a), &params(&self.p))
            }
            Kernel::Power => distance::kerple_power(input, &params(&self.a), &params(&self.p)),
            Kernel::None => input.map(|_, _, _, _| 0.0),
            Kernel::GeneralizedGaussian => {
                let m = learned(&self.m, input.layer).map(values_f64);
                distance::generalized_gaussian(
                    input,
                    &params(&self.a),
                    &params(&self.p),
                    m.as_deref(),
                )
            }
        }
    }
}

impl PositionEncoding for Kerple {
    type Settings = KerpleConfig;

    const CARD: Card = Card {
        id: "kerple",
        label: "KERPLE",
        summary: "Subtracts from the logits a learned function of distance with two parameters per head.",
        parameters: "2 H",
        paper: "Chi et al. 2022",
        url: "https://arxiv.org/abs/2205.09921",
    };

    fn card(settings: &KerpleConfig) -> Card {
        let of_head = settings.params_per_head();
        let parameters = match settings.sharing {
            Sharing::AllLayers => card::text(format!("{of_head} H")),
            Sharing::PerLayer => card::text(format!("{of_head} L H")),
        };
        if settings.kernel == Kernel::GeneralizedGaussian {
            return Card {
                label: "BAM",
                summary: "Subtracts from the logits a learned power of the distance to a learned centre.",
                parameters,
                paper: "Bianchessi et al. 2025",
                url: "https://arxiv.org/abs/2505.22842",
                ..Self::CARD
            };
        }
        Card { parameters, ..Self::CARD }
    }

    fn check(settings: &KerpleConfig, _dims: &Dims) -> Result<(), PeError> {
        let KerpleConfig { kernel, weight, mean, .. } = *settings;
        let pe = Self::CARD.id;
        let expected = "`zero`, because `kernel` is not `generalized-gaussian`";
        let centred = mean == KernelMean::Zero || kernel == Kernel::GeneralizedGaussian;
        PeError::require(centred, pe, "mean", "learned", expected)?;
        let expected =
            "`logarithmic`, `power` or `generalized-gaussian`, because `weight` is `none`";
        let acts = kernel != Kernel::None || weight != ContentWeight::None;
        PeError::require(acts, pe, "kernel", "none", expected)
    }

    fn build(
        settings: &KerpleConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let mut draw = |top: f64| {
            let values = (0..dims.heads).map(|_| (top * rng.random::<f64>()) as f32).collect();
            init::given(values, [dims.heads], device)
        };
        let sets = settings.sharing.sets(dims.layers);
        let zeros = |count: usize| -> Vec<Param<Tensor<1>>> {
            (0..count).map(|_| init::zeros([dims.heads], device)).collect()
        };
        let gaussian = settings.kernel == Kernel::GeneralizedGaussian;
        let mut draw_sets = |count: usize| (0..count).map(|_| (draw(2.0), draw(1.0))).unzip();
        let (p, a) = match settings.kernel {
            Kernel::None => (Vec::new(), Vec::new()),
            Kernel::GeneralizedGaussian => {
                let given = |values: Vec<f64>| {
                    let values = values.into_iter().map(|value| value as f32).collect::<Vec<_>>();
                    (0..sets).map(|_| init::given(values.clone(), [dims.heads], device)).collect()
                };
                let slopes = slopes::spliced(dims.heads);
                (given(vec![1.0; dims.heads]), given(slopes.into_iter().map(f64::ln).collect()))
            }
            Kernel::Logarithmic | Kernel::Power => draw_sets(sets),
        };
        let m = zeros(if gaussian && settings.mean == KernelMean::Learned { sets } else { 0 });
        let (weight_p, weight_a) =
            draw_sets(if settings.weight == ContentWeight::None { 0 } else { sets });
        Ok(Kerple { a, p, m, weight_a, weight_p, kernel: settings.kernel })
    }

    fn param_count(settings: &KerpleConfig, dims: &Dims) -> Option<usize> {
        Some(settings.params_per_head() * settings.sharing.sets(dims.layers) * dims.heads)
    }

    fn cost(settings: &KerpleConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let Dims { layers, heads, .. } = *dims;
        let pairs = layers * len * len * heads;
        let mut cost = Cost::none();
        if settings.kernel != Kernel::None {
            cost = cost
                .elementwise("kernel at each distance", 5 * layers * heads * len)
                .pair_elementwise("sum of logits", pairs);
        }
        if settings.weight != ContentWeight::None {
            // A power, a product, an exponential function and a product with the logit.
            cost = cost.pair_elementwise("weight of the content", 5 * pairs);
        }
        Some(cost)
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let weight = self
            .weight(ctx.layer.layer)
            .map(|params| ScoreMod::Term(Term::new(WeightedContent).head_params(params)));
        match (weight, self.kernel) {
            (Some(weight), Kernel::None) => weight,
            (Some(weight), _) => ScoreMod::Sum(vec![weight, self.bias(ctx)]),
            (None, _) => self.bias(ctx),
        }
    }
}

impl Kerple {
    /// Returns the bias of one layer as a table by distance.
    fn bias(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let at = ctx.layer.at;
        let device = ctx.q.device();
        let (distances, logs) = at.memo("kerple-distances", &device, || {
            let row = |f: fn(f64) -> f64| {
                let values =
                    (0..=at.longest_distance()).map(|n| f(n as f64) as f32).collect::<Vec<_>>();
                Tensor::<1>::from_data(values.as_slice(), &device).unsqueeze::<2>()
            };
            (row(|n| n), row(|n| n.max(1.0).ln()))
        });
        let table = self.kernel(ctx.layer.layer, distances, logs);
        ScoreMod::Distance { table, beyond: Beyond::Last }
    }
}

impl ScalarReference for Kerple {
    /// False beyond a bound of the clamp, where gradients pass straight through.
    fn differentiable_at(&self, parameter: usize, value: f64) -> bool {
        let (low, high) = (f64::from(SMALLEST), f64::from(LARGEST_EXPONENT));
        // In the visitor's order: `a`, `p`, `m`, `wa`, `wp`.
        let sets = [&self.a, &self.p, &self.m, &self.weight_a, &self.weight_p].map(Vec::len);
        let mut first = 0;
        let kind = sets.iter().position(|count| {
            first += count;
            parameter < first
        });
        let is_exponent = match kind {
            Some(0..=2) if self.kernel == Kernel::GeneralizedGaussian => return true,
            Some(1) => self.kernel == Kernel::Power,
            Some(kind) => kind == 4,
            None => return true,
        };
        value > low && (!is_exponent || value < high)
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let bias = self.scalar_bias(input);
        if self.weight_a.is_empty() {
            return input.biased(&bias);
        }
        let params = |sets: &[Param<Tensor<1>>]| values_f64(of_layer(sets, input.layer));
        distance::kerple_weighted(input, &bias, &params(&self.weight_a), &params(&self.weight_p))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testkit::close::numbers;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples {
            facts: "acts on logits; shift invariant; biases a, p",
            texts: &[
                "kerple",
                "kerple{kernel=power}",
                "kerple{sharing=per-layer}",
                "kerple{kernel=generalized-gaussian}",
                "kerple{kernel=generalized-gaussian,sharing=per-layer}",
            ],
        },
        Examples {
            facts: "acts on logits; shift invariant; biases a, m, p",
            texts: &["kerple{kernel=generalized-gaussian,mean=learned,sharing=per-layer}"],
        },
        Examples {
            facts: "acts on logits; has terms, scales content, shift invariant; biases a, p; dense on GPUs in f32",
            texts: &["kerple{weight=power}", "kerple{kernel=power,weight=power,sharing=per-layer}"],
        },
        Examples {
            facts: "acts on logits; has terms, scales content, shift invariant; dense on GPUs in f32",
            texts: &["kerple{kernel=none,weight=power}"],
        },
    ];

    #[test]
    fn a_kernel_without_bias_and_weight_is_refused() {
        let dims = Dims { layers: 1, width: 8, heads: 2, head_dim: 4, train_len: 8, max_len: 8 };
        let config = KerpleConfig { kernel: Kernel::None, ..KerpleConfig::default() };
        let error = Kerple::check(&config, &dims).unwrap_err().to_string();
        assert!(error.contains("kernel is none") && error.contains("`weight`"), "{error}");
        let weight = ContentWeight::Power;
        Kerple::check(&KerpleConfig { weight, ..config }, &dims).unwrap();
        let config = KerpleConfig { mean: KernelMean::Learned, ..KerpleConfig::default() };
        let error = Kerple::check(&config, &dims).unwrap_err().to_string();
        assert!(error.contains("mean is learned, expected `zero`"), "{error}");
    }

    /// The code of BAM with a scale, a shape and a location of ln 2, -1 and ln 3: `2 / (|-n - 8/3| + 1e-5)`.
    #[test]
    fn a_negative_exponent_penalises_the_distances_around_the_mean() {
        let one = |x: f64| vec![init::given(vec![x as f32], [1], &Device::flex())];
        let (a, p, m) = (one(2f64.ln()), one(-1.0), one(3f64.ln()));
        let kernel = Kernel::GeneralizedGaussian;
        let pe = Kerple { a, p, m, weight_a: vec![], weight_p: vec![], kernel };
        let distances = Tensor::<2>::from_floats([[0.0, 1.0, 3.0, 9.0]], &Device::flex());
        let logs = distances.zeros_like();
        let expected = [-0.75, -0.545_453, -0.352_941, -0.171_428];
        for (found, expected) in numbers(pe.kernel(0, distances, logs)).into_iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-4, "{found} {expected}");
        }
    }

    #[test]
    fn the_gradient_passes_the_clamp_and_the_value_does_not() {
        let x = Tensor::<1>::from_data([-1.0f32, 0.5, 3.0], &Device::flex().autodiff());
        let x = x.require_grad();
        let clamped = clamp_straight_through(x.clone(), SMALLEST, LARGEST_EXPONENT);
        assert_eq!(numbers(clamped.clone()), [f64::from(SMALLEST), 0.5, 2.0]);
        let gradients = clamped.sum().backward();
        assert_eq!(numbers(x.grad(&gradients).unwrap()), [1.0, 1.0, 1.0]);
    }
}

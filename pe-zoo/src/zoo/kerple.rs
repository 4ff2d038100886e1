//! # KERPLE: a learned kernel of distance
//!
//! ## What it does
//! Subtracts from each logit a function of distance with two learned numbers per head: a scale and
//! a shape. The logarithmic kernel flattens out at large distances, the power kernel ranges from
//! nearly flat to a parabola.
//!
//! ## Formula
//! `logarithmic`: `logit[h, i, j] = q_i . k_j / sqrt(D) - p_h ln(1 + a_h (i - j))`
//! `power`: `logit[h, i, j] = q_i . k_j / sqrt(D) - a_h (i - j)^p_h`
//! `a_h` and `p_h` are clamped to at least 0.01, `p_h` of the power kernel to at most 2.
//!
//! ## Shapes
//! `score: Distance([H, N])`, `N` one more than the longest distance of the pass.
//!
//! ## Settings
//! `kernel`: `logarithmic` (default, the better in the paper) or `power`.
//! `sharing`: `all-layers` (default, as in the paper) or `per-layer` (as in DAPE's code).
//!
//! ## Initial values
//! `p` uniform in 0..2 and `a` uniform in 0..1, as in the authors' code.
//!
//! ## Deviations
//! The authors' code writes the clamped values back into the parameters before each use, which does
//! not zero their gradients. Here the gradient passes the clamp in the same way, but the parameter
//! itself may move past the limit, and then takes as many steps to return.
//!
//! ## References
//! Chi et al. 2022, "KERPLE", arXiv 2205.09921; `chijames/KERPLE` at 25be3d712e,
//! `megatron/mpu/layers.py`.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference, kerple, values_f64};
use crate::score::Beyond;
use crate::settings::{Sharing, of_layer};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};

/// Lower bound of both parameters.
const SMALLEST: f32 = 0.01;

/// Largest exponent at which the power kernel is conditionally positive definite.
const LARGEST_EXPONENT: f32 = 2.0;

/// Kernel: the bias as a function of the distance `n`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Logarithmic kernel, `-p ln(1 + a n)`.
    #[default]
    Logarithmic,
    /// Power kernel, `-a n^p`.
    Power,
}

/// Settings of the KERPLE encoding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KerpleConfig {
    /// Kernel: the bias as a function of distance.
    pub kernel: Kernel,
    /// Which layers share parameters.
    pub sharing: Sharing,
}

impl Default for KerpleConfig {
    fn default() -> Self {
        Self { kernel: Kernel::default(), sharing: Sharing::AllLayers }
    }
}

/// Bias by a learned kernel of distance per head.
#[derive(Module, Debug)]
pub struct Kerple {
    /// Parameter `a`, `[H]` each: one tensor, or one per layer.
    pub a: Vec<Param<Tensor<1>>>,
    /// Parameter `p`, `[H]` each: one tensor, or one per layer.
    pub p: Vec<Param<Tensor<1>>>,
    #[module(skip)]
    kernel: Kernel,
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
        let a = of_layer(&self.a, layer).val();
        let a = column(clamp_straight_through(a, SMALLEST, f32::MAX));
        let p = of_layer(&self.p, layer).val();
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
        }
    }

    /// Computes the bias of every pair in scalar f64.
    pub(super) fn scalar_bias(&self, input: &ScalarInput) -> Heads {
        let a = values_f64(of_layer(&self.a, input.layer));
        let p = values_f64(of_layer(&self.p, input.layer));
        match self.kernel {
            Kernel::Logarithmic => kerple::logarithmic(input, &a, &p),
            Kernel::Power => kerple::power(input, &a, &p),
        }
    }
}

impl PositionEncoding for Kerple {
    type Settings = KerpleConfig;

    const CARD: Card = Card {
        id: "kerple",
        label: "KERPLE",
        summary: "Subtracts from the logits a learned kernel of distance, two numbers per head.",
        parameters: "2 H",
        paper: "Chi et al. 2022",
        url: "https://arxiv.org/abs/2205.09921",
    };

    fn card(settings: &KerpleConfig) -> Card {
        match settings.sharing {
            Sharing::AllLayers => Self::CARD,
            Sharing::PerLayer => Card { parameters: "2 L H", ..Self::CARD },
        }
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
        let (p, a) =
            (0..settings.sharing.sets(dims.layers)).map(|_| (draw(2.0), draw(1.0))).unzip();
        Ok(Kerple { a, p, kernel: settings.kernel })
    }

    fn param_count(settings: &KerpleConfig, dims: &Dims) -> Option<usize> {
        Some(2 * settings.sharing.sets(dims.layers) * dims.heads)
    }

    fn cost(_settings: &KerpleConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let Dims { layers, heads, .. } = *dims;
        Some(
            Cost::none()
                .elementwise("kernel at each distance", 5 * layers * heads * len)
                .pair_elementwise("sum of logits", layers * len * len * heads),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
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
        let exponent = self.kernel == Kernel::Power && parameter >= self.a.len();
        let ours = parameter < self.a.len() + self.p.len();
        !ours || (value > low && (!exponent || value < high))
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        input.biased(&self.scalar_bias(input))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::close::numbers;

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

//! Activations of sums, which become bf16: fewer instructions than for f32.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use crate::kernels::gpu::mma::approximate::{LOG2_E, power_of_two, reciprocal};

/// Coefficients of a polynomial in `1 / (1 + SLOPE |x|)`, which is half of the complementary error function of `|x| / sqrt(2)` divided by
/// `exp(-x x / 2)`, with an error of at most `1e-7` of the whole: equation 7.1.26 of Abramowitz and Stegun, Handbook of
/// Mathematical Functions.
const TERMS: [f32; 5] = [0.127_414_8, -0.142_248_37, 0.710_706_9, -0.726_576_03, 0.530_702_7];
/// `0.3275911 / sqrt(2)`.
const SLOPE: f32 = 0.231_641_9;

/// Distribution function of the normal distribution, and `exp(-x x / 2)`.
#[derive(CubeType)]
struct Normal {
    below: f32,
    bell: f32,
}

#[cube]
fn normal(x: f32, #[comptime] native: bool) -> Normal {
    let bell = power_of_two(x * x * comptime![-0.5 * LOG2_E], native);
    let t = reciprocal(fma(x.abs(), SLOPE, 1.0f32), native);
    let mut sum = f32::new(comptime![TERMS[4]]);
    #[unroll]
    for n in 0..4usize {
        sum = fma(sum, t, f32::new(comptime![TERMS[3 - n]]));
    }
    let tail = sum * t * bell;
    Normal { below: select(x < 0.0, tail, 1.0 - tail), bell }
}

/// GELU.
#[cube]
pub(super) fn gelu<N: Size>(x: Vector<f32, N>, #[comptime] native: bool) -> Vector<f32, N> {
    let mut results = x;
    #[unroll]
    for n in 0..N::value() {
        let x = x.extract(n);
        results.insert(n, x * normal(x, native).below);
    }
    results
}

/// Derivative of GELU.
#[cube]
pub(super) fn gelu_derivative<N: Size>(
    x: Vector<f32, N>,
    #[comptime] native: bool,
) -> Vector<f32, N> {
    let mut results = x;
    #[unroll]
    for n in 0..N::value() {
        let x = x.extract(n);
        let normal = normal(x, native);
        // 1 / sqrt(2 pi)
        results.insert(n, fma(x * 0.398_942_3f32, normal.bell, normal.below));
    }
    results
}

/// `numbers` where `x` is positive or NaN, and zeros elsewhere.
#[cube]
pub(super) fn where_above<N: Size>(x: Vector<f32, N>, numbers: Vector<f32, N>) -> Vector<f32, N> {
    let below = x.less_equal(&Vector::new(0.0));
    select_many(below, Vector::new(0.0), numbers)
}

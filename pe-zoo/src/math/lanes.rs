//! Arithmetic on a row of SIMD lanes, in plain Rust that the compiler vectorises.
//!
//! Every function is `#[inline(always)]` and free of branches and library calls. Inlined below
//! [`pulp::Arch::dispatch`], the loops over lanes become AVX-512, AVX2, NEON or scalar code, from
//! one source.

/// One number for each query row of a block.
pub(crate) type Lanes<const R: usize> = [f32; R];

/// Number of lanes of a block if there are enough query rows.
pub(crate) const WIDE: usize = 64;
/// Number of lanes of a block in decoding, where there are few query rows.
pub(crate) const NARROW: usize = 16;

/// Logarithm below which weights and gates are set to 0 (`exp(-46)` is 1e-20). Gradients from
/// smaller ones would be denormal, which slows products tenfold, and no sum in f32 would change.
const NEGLIGIBLE: f32 = -46.0;

/// Constant whose addition rounds to an integer and leaves that integer in the low bits.
const ROUND: f32 = 12_582_912.0;

/// Leading bits of ln 2, so few that products with small integers are exact.
const LN_2_HIGH: f32 = 355.0 / 512.0;

/// Computes `exp(x)` for `-87 <= x <= 88`; outside, the value at the limit. Relative error below
/// 2e-7. NaN propagates, so that divergence stays visible.
#[inline(always)]
pub(crate) fn exp(of: f32) -> f32 {
    let x = of.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    // ln 2 is split in two parts, the first with few bits, so that the difference is exact.
    let rest = x - whole * LN_2_HIGH - whole * -2.121_944_4e-4;
    let poly = 1.987_569_1e-4;
    let poly = poly * rest + 1.398_199_9e-3;
    let poly = poly * rest + 8.333_452e-3;
    let poly = poly * rest + 4.166_579_6e-2;
    let poly = poly * rest + 1.666_666_5e-1;
    let poly = poly * rest + 0.5;
    let poly = (poly * rest * rest + rest) + 1.0;
    let value = f32::from_bits(poly.to_bits().wrapping_add(shifted.to_bits() << 23));
    if of.is_nan() { of } else { value }
}

/// Natural logarithm: minus infinity at 0, NaN below. Relative error below 2e-7 (absolute near 1).
#[inline(always)]
pub(crate) fn ln(of: f32) -> f32 {
    // Subnormal numbers are scaled by 2^23 first.
    let tiny = of < f32::MIN_POSITIVE;
    let x = if tiny { of * 8_388_608.0 } else { of };
    // x = m 2^e with m between sqrt(1/2) and sqrt(2).
    let e = x.to_bits().wrapping_sub(0x3f35_04f3) as i32 >> 23;
    let m = f32::from_bits(x.to_bits().wrapping_sub((e as u32) << 23));
    let exponent = e as f32 - if tiny { 23.0 } else { 0.0 };
    // The polynomial of logf in Moshier's Cephes library.
    let f = m - 1.0;
    let square = f * f;
    let poly = 7.037_683_6e-2;
    let poly = poly * f - 1.151_461e-1;
    let poly = poly * f + 1.167_699_87e-1;
    let poly = poly * f - 1.242_014_1e-1;
    let poly = poly * f + 1.424_932_3e-1;
    let poly = poly * f - 1.666_805_8e-1;
    let poly = poly * f + 2.000_071_5e-1;
    let poly = poly * f - 2.499_999_4e-1;
    let poly = poly * f + 3.333_333e-1;
    let rest = poly * f * square - 2.121_944_4e-4 * exponent - 0.5 * square;
    let value = f + rest + LN_2_HIGH * exponent;
    let value = if of > f32::MAX || of.is_nan() { of } else { value };
    let value = if of < 0.0 { f32::NAN } else { value };
    if of == 0.0 { f32::NEG_INFINITY } else { value }
}

/// Computes `exp(x)` of a logit relative to its row's largest; exactly 0 where negligible.
#[inline(always)]
pub(crate) fn weight(x: f32) -> f32 {
    let value = exp(x);
    if x < NEGLIGIBLE { 0.0 } else { value }
}

/// Computes `1 / (1 + exp(-x))`; exactly 0 where negligible.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    let value = 1.0 / (1.0 + exp(-x));
    if x < NEGLIGIBLE { 0.0 } else { value }
}

/// Computes `1 - exp(-x)` for `x >= 0`. Relative error below 4e-7. NaN propagates.
#[inline(always)]
pub(crate) fn one_minus_exp(x: f32) -> f32 {
    // The difference would cancel the digits of a small result.
    let series = 1.0 - x / 8.0;
    let series = 1.0 - x / 7.0 * series;
    let series = 1.0 - x / 6.0 * series;
    let series = 1.0 - x / 5.0 * series;
    let series = 1.0 - x / 4.0 * series;
    let series = 1.0 - x / 3.0 * series;
    let series = 1.0 - x / 2.0 * series;
    let far = 1.0 - exp(-x);
    if x < 0.5 { x * series } else { far }
}

/// Computes `ln(sigmoid(x))`, accurate for large `|x|`.
#[inline(always)]
pub(crate) fn log_sigmoid(x: f32) -> f32 {
    // ln(1 + e) = 2 artanh(e / (2 + e)), whose series converges fast for 0 < e <= 1.
    let e = exp(-x.abs());
    let t = e / (2.0 + e);
    let square = t * t;
    let series = 1.0 / 13.0;
    let series = series * square + 1.0 / 11.0;
    let series = series * square + 1.0 / 9.0;
    let series = series * square + 1.0 / 7.0;
    let series = series * square + 0.2;
    let series = series * square + 1.0 / 3.0;
    let series = series * square + 1.0;
    x.min(0.0) - 2.0 * t * series
}

/// Computes [`log_sigmoid`] and its derivative `sigmoid(-x)`.
#[inline(always)]
pub(crate) fn log_sigmoid_and_slope(x: f32) -> (f32, f32) {
    let e = exp(-x.abs());
    let smaller = e / (1.0 + e);
    (log_sigmoid(x), if x > 0.0 { smaller } else { 1.0 - smaller })
}

/// Normal distribution at `x`: distribution function and density. Absolute error below 2e-7.
#[inline(always)]
pub(crate) fn normal(x: f32) -> (f32, f32) {
    // Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26, of |x| / sqrt(2).
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let bell = exp(-z * z);
    let poly = 1.061_405_4 * t - 1.453_152_1;
    let poly = poly * t + 1.421_413_8;
    let poly = poly * t - 0.284_496_72;
    let poly = poly * t + 0.254_829_6;
    let upper = 0.5 * poly * t * bell;
    let below = if x < 0.0 { upper } else { 1.0 - upper };
    (below, bell * 0.398_942_3)
}

/// Computes `cos(x)` and `sin(x)`. Absolute error below 2e-7 for `|x|` up to a million; NaN for infinities and NaN.
#[inline(always)]
pub(crate) fn cos_sin(x: f32) -> (f32, f32) {
    // The constant rounds to an integer, the number of quarter turns, and leaves it in the low bits. In f64 the rest is
    // exact to 1e-9.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let shifted = f64::from(x) * std::f64::consts::FRAC_2_PI + ROUND;
    let quarter = shifted.to_bits() as u32;
    let rest = (f64::from(x) - (shifted - ROUND) * std::f64::consts::FRAC_PI_2) as f32;
    // The polynomials of cosf and sinf in Moshier's Cephes library.
    let square = rest * rest;
    let poly = -1.951_529_6e-4 * square + 8.332_161e-3;
    let poly = poly * square - 1.666_665_5e-1;
    let sine = poly * square * rest + rest;
    let poly = 2.443_315_7e-5 * square - 1.388_731_6e-3;
    let poly = poly * square + 4.166_664_6e-2;
    let cosine = poly * square * square - 0.5 * square + 1.0;
    let (cos, sin) = if quarter & 1 == 0 { (cosine, sine) } else { (sine, cosine) };
    // Bit 1 of the number of quarter turns is the sign of the sine, and that of the next number the sign of the cosine.
    let sign = |value: f32, quarter: u32| f32::from_bits(value.to_bits() ^ (quarter & 2) << 30);
    (sign(cos, quarter.wrapping_add(1)), sign(sin, quarter))
}

/// Returns the smaller of `x` and `limit`. NaN propagates, which `f32::min` would replace by the
/// limit.
#[inline(always)]
pub(crate) fn at_most(x: f32, limit: f32) -> f32 {
    if x > limit { limit } else { x }
}

/// Returns the largest integer not above `x`, for `0 <= x < 2^22`, as a number and as an index.
#[inline(always)]
pub(crate) fn floor(x: f32) -> (f32, u32) {
    let shifted = x + ROUND;
    let nearest = shifted - ROUND;
    let above = nearest > x;
    let bits = shifted.to_bits() & 0x003f_ffff;
    // Wrapping, because a test of overflow in each lane would keep loops from being vectorised.
    (nearest - if above { 1.0 } else { 0.0 }, bits.wrapping_sub(u32::from(above)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(from: f64, to: f64) -> impl Iterator<Item = f64> {
        (0..=20_000).map(move |n| f64::from((from + (to - from) * f64::from(n) / 20_000.0) as f32))
    }

    #[test]
    fn exp_is_right_to_two_units_in_the_last_place() {
        for x in grid(-87.0, 88.0) {
            let relative = f64::from(exp(x as f32)) / x.exp() - 1.0;
            assert!(relative.abs() < 2e-7, "exp({x}) is off by {relative}");
        }
    }

    #[test]
    fn one_minus_exp_keeps_the_digits_of_small_results() {
        for x in grid(0.0, 40.0).chain(grid(0.0, 1e-3)).skip(1).chain([1e-9, 1e4]) {
            let (found, expected) = (f64::from(one_minus_exp(x as f32)), -(-x).exp_m1());
            assert!((found - expected).abs() <= 4e-7 * expected, "{x}: {found}, not {expected}");
        }
        assert!(one_minus_exp(0.0) == 0.0 && one_minus_exp(f32::NAN).is_nan());
    }

    #[test]
    fn ln_is_right_from_the_smallest_number_to_the_largest() {
        for exponent in -148..=127 {
            for step in 0..64 {
                let x = (f64::from(exponent).exp2() * (1.0 + f64::from(step) / 64.0)) as f32;
                let (found, expected) = (f64::from(ln(x)), f64::from(x).ln());
                assert!(
                    (found - expected).abs() <= 2e-7 * expected.abs().max(0.7),
                    "ln({x}): {found}"
                );
            }
        }
        assert_eq!((ln(0.0), ln(-0.0)), (f32::NEG_INFINITY, f32::NEG_INFINITY));
        assert_eq!((ln(1.0), ln(f32::INFINITY)), (0.0, f32::INFINITY));
        assert!(ln(f32::NAN).is_nan() && ln(-1.0).is_nan() && ln(f32::NEG_INFINITY).is_nan());
    }

    #[test]
    fn cosines_and_sines_are_right_up_to_a_million() {
        for (from, to) in [(-7.0, 7.0), (-300.0, 300.0), (-1e6, 1e6)] {
            for x in grid(from, to) {
                let (cos, sin) = cos_sin(x as f32);
                let off = (f64::from(cos) - x.cos()).abs().max((f64::from(sin) - x.sin()).abs());
                assert!(off < 2e-7, "{x}: {cos}, {sin} are off by {off}");
            }
        }
        assert_eq!(cos_sin(0.0), (1.0, 0.0));
        assert!([f32::NAN, f32::INFINITY].iter().all(|x| cos_sin(*x).0.is_nan()));
    }

    #[test]
    fn weights_are_never_denormal() {
        assert!(weight(-45.9) > 0.0);
        for x in [-46.1, -87.5, -1e4, f32::MIN, f32::NEG_INFINITY] {
            assert_eq!(weight(x).to_bits(), 0, "weight({x})");
        }
        assert!((weight(0.0) - 1.0).abs() < 1e-7);
    }

    #[test]
    fn sigmoid_and_its_logarithm_are_right_from_one_end_to_the_other() {
        for x in grid(-45.0, 80.0) {
            let expected = 1.0 / (1.0 + (-x).exp());
            let relative = f64::from(sigmoid(x as f32)) / expected - 1.0;
            assert!(relative.abs() < 4e-7, "sigmoid({x}) is off by {relative}");
            let expected = -(-x).exp().ln_1p();
            let value = f64::from(log_sigmoid(x as f32));
            assert!((value - expected).abs() <= 3e-7 * expected.abs().max(1e-30), "{x}: {value}");
        }
        for x in grid(-80.0, 45.0) {
            let (value, slope) = log_sigmoid_and_slope(x as f32);
            assert_eq!(value.to_bits(), log_sigmoid(x as f32).to_bits());
            let relative = f64::from(slope) * (1.0 + x.exp()) - 1.0;
            assert!(relative.abs() < 4e-7, "slope at {x} is off by {relative}");
        }
        assert!((log_sigmoid(-1e4) + 1e4).abs() < 1e-3);
        assert!(sigmoid(200.0) >= 1.0 && sigmoid(-200.0) <= 0.0);
        assert!(at_most(f32::NAN, 3.0).is_nan() && log_sigmoid(f32::NAN).is_nan());
        assert!(exp(f32::NAN).is_nan() && sigmoid(f32::NAN).is_nan() && weight(f32::NAN).is_nan());
    }

    #[test]
    fn floor_and_its_index_agree_with_the_library() {
        for x in grid(0.0, 70.0).chain((0..4_000_000).step_by(9_973).map(f64::from)) {
            let (whole, index) = floor(x as f32);
            assert_eq!((f64::from(whole), f64::from(index)), (x.floor(), x.floor()), "{x}");
        }
    }
}

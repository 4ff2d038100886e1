//! Frequencies of waves and rotations, and the ramps that rescale them.

use std::f64::consts::TAU;

use crate::PeError;

/// Computes `base^(-2m / dim)` for `m` in `0..dim / 2`, in radians per position.
pub(crate) fn inverse_frequencies(base: f64, dim: usize) -> Vec<f64> {
    (0..dim / 2).map(|m| base.powf(-2.0 * m as f64 / dim as f64)).collect()
}

/// Refuses a base whose powers are not frequencies that decrease from pair to pair.
pub(crate) fn check_base(pe: &str, field: &str, base: f64) -> Result<(), PeError> {
    PeError::require(base.is_finite() && base > 1.0, pe, field, base, "a number above 1")
}

/// Computes the base of NTK-aware scaling, `base * factor^(dim / (dim - 2))`.
pub(crate) fn ntk_base(base: f64, factor: f64, dim: usize) -> f64 {
    base * factor.powf(dim as f64 / (dim as f64 - 2.0))
}

/// Computes the factor of dynamic NTK scaling for a length above the original one.
pub(crate) fn dynamic_factor(factor: f64, len: usize, original: usize) -> f64 {
    factor * len.max(original) as f64 / original as f64 - (factor - 1.0)
}

/// Computes the index, as a fraction, of the pair that completes `rotations` turns within
/// `original` positions.
pub(crate) fn pair_of_rotations(rotations: f64, base: f64, dim: usize, original: usize) -> f64 {
    dim as f64 * (original as f64 / (rotations * TAU)).ln() / (2.0 * base.ln())
}

/// Computes the index, as a fraction, of the pair that completes `rotations` turns within `original` positions, among
/// frequencies that descend in any way: between two pairs, and beyond the first and the last, the logarithm of the
/// frequency is taken as linear. It lies within `0..=2 * pairs`.
pub(crate) fn nearest_pair(frequencies: &[f64], rotations: f64, original: usize) -> f64 {
    let last = frequencies.len() - 1;
    let limit = 2.0 * frequencies.len() as f64;
    let log_frequency = (rotations * TAU / original as f64).ln();
    let slower = frequencies.iter().position(|f| f.ln() <= log_frequency).unwrap_or(last);
    let (left, right) = (slower.max(1) - 1, slower.max(1).min(last));
    let [from, to] = [frequencies[left].ln(), frequencies[right].ln()];
    if from <= to || !to.is_finite() {
        return slower as f64;
    }
    (left as f64 + (from - log_frequency) / (from - to)).clamp(0.0, limit)
}

/// Rounds the two pairs between which a ramp runs outward to whole pairs, if `truncate` is set, and limits them to the
/// channels.
pub(crate) fn ramp_bounds(low: f64, high: f64, dim: usize, truncate: bool) -> [f64; 2] {
    let (low, high) = if truncate { (low.floor(), high.ceil()) } else { (low, high) };
    let last = dim as f64 - 1.0;
    [low.clamp(0.0, last), high.clamp(0.0, last)]
}

/// Ramp that is 0 up to `low`, 1 from `high` on and linear in between; a step if the two are equal.
pub(crate) fn ramp(low: f64, high: f64, at: f64) -> f64 {
    let width = if high > low { high - low } else { 0.001 };
    ((at - low) / width).clamp(0.0, 1.0)
}

/// Computes YaRN's attention factor, `0.1 mscale ln(factor) + 1`, and 1 for factors up to 1.
pub(crate) fn yarn_magnitude(factor: f64, mscale: f64) -> f64 {
    if factor <= 1.0 { 1.0 } else { 0.1 * mscale * factor.ln() + 1.0 }
}

/// Computes the share of a frequency that Llama 3's rule leaves undivided, by comparing `original /
/// wavelength` with the two factors.
pub(crate) fn llama3_kept(frequency: f64, original: usize, low: f64, high: f64) -> f64 {
    ramp(low, high, original as f64 * frequency / TAU)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Expected bases of static NTK scaling for D 128 and 64 at factors 2, 4, 8.
    #[test]
    fn ntk_bases_are_those_of_the_specification() {
        for (dim, factor, expected) in [
            (128, 2.0, 20_221.261_7),
            (128, 4.0, 40_889.942_4),
            (128, 8.0, 82_684.622_6),
            (64, 2.0, 20_452.228_7),
            (64, 4.0, 41_829.365_9),
            (64, 8.0, 85_550.375_9),
        ] {
            assert!((ntk_base(1e4, factor, dim) - expected).abs() < 1e-4, "{dim} {factor}");
        }
    }

    /// Expected bases for D 64, L 1024, original length 512; at factor 1 the base still grows.
    #[test]
    fn dynamic_ntk_bases_are_those_of_the_specification() {
        for (factor, expected) in [(2.0, 31_082.236_7), (1.0, 20_452.228_7)] {
            let base = ntk_base(1e4, dynamic_factor(factor, 1024, 512), 64);
            assert!((base - expected).abs() < 1e-4, "{factor}: {base}");
        }
    }

    fn bounds(turns: [f64; 2], base: f64, dim: usize, original: usize, truncate: bool) -> [f64; 2] {
        let [low, high] = turns.map(|turns| pair_of_rotations(turns, base, dim, original));
        ramp_bounds(low, high, dim, truncate)
    }

    /// Expected bounds of YaRN's ramp, with the special case of a small head.
    #[test]
    fn yarn_bounds_are_those_of_the_specification() {
        let betas = [32.0, 1.0];
        for (dim, original, expected) in
            [(128, 2048, [16, 41]), (128, 4096, [20, 46]), (64, 512, [3, 16]), (16, 64, [0, 3])]
        {
            let bounds = bounds(betas, 1e4, dim, original, true);
            for (bound, expected) in bounds.into_iter().zip(expected) {
                assert!(
                    (bound - f64::from(expected)).abs() < 1e-12,
                    "{dim} {original}: {bounds:?}"
                );
            }
        }
        let [low, high] = bounds(betas, 1e4, 64, 512, false);
        assert!(low > 3.0 && low < 4.0 && high > 15.0 && high < 16.0, "{low} {high}");
    }

    /// Expected attention factors for factors 2 to 64.
    #[test]
    fn yarn_magnitudes_are_those_of_the_specification() {
        let table = [1.069_315, 1.138_629, 1.207_944, 1.277_259, 1.346_574, 1.415_888];
        for (power, expected) in (1i32..).zip(table) {
            let magnitude = yarn_magnitude(2f64.powi(power), 1.0);
            assert!((magnitude - expected).abs() < 5e-7, "{power}: {magnitude}");
        }
        assert!((yarn_magnitude(0.5, 1.0) - 1.0).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn frequencies_descend_from_one_to_nearly_the_inverse_of_the_base(
            half in 1usize..80, base in 1.5f64..1e6,
        ) {
            let f = inverse_frequencies(base, 2 * half);
            prop_assert_eq!(f.len(), half);
            prop_assert!((f[0] - 1.0).abs() < 1e-15);
            prop_assert!(f.windows(2).all(|pair| pair[0] > pair[1]));
            prop_assert!(f.iter().all(|f| *f > 1.0 / base));
        }

        #[test]
        fn a_ramp_rises_from_zero_to_one(
            low in -5.0f64..50.0, width in 0.0f64..50.0, a in -100.0f64..150.0, b in 0.0f64..50.0,
        ) {
            let [before, after] = [a, a + b].map(|at| ramp(low, low + width, at));
            prop_assert!((0.0..=1.0).contains(&before) && before <= after);
            prop_assert!(ramp(low, low + width, low - 1e-9) <= 0.0);
            prop_assert!((ramp(low, low + width, low + width + 0.0011) - 1.0).abs() < 1e-12);
        }

        #[test]
        fn the_pair_of_a_number_of_rotations_turns_that_often(
            rotations in 0.5f64..64.0, base in 2.0f64..1e6, half in 2usize..80, original in 8usize..9000,
        ) {
            let m = pair_of_rotations(rotations, base, 2 * half, original);
            let turns = original as f64 * base.powf(-m / half as f64) / TAU;
            prop_assert!((turns / rotations - 1.0).abs() < 1e-9, "{}", turns);
        }

        #[test]
        fn the_nearest_pair_of_unscaled_frequencies_is_that_of_the_formula(
            rotations in 0.5f64..64.0, base in 2.0f64..1e6, half in 2usize..80, original in 8usize..9000,
        ) {
            let exact = pair_of_rotations(rotations, base, 2 * half, original);
            let pair = nearest_pair(&inverse_frequencies(base, 2 * half), rotations, original);
            prop_assert!((pair - exact.clamp(0.0, 2.0 * half as f64)).abs() < 1e-6, "{} {}", pair, exact);
        }

        #[test]
        fn bounds_lie_in_order_within_the_channels(
            slow in 0.5f64..8.0, more in 0.0f64..60.0, base in 2.0f64..1e6, half in 1usize..80,
            original in 1usize..9000, truncate: bool,
        ) {
            let [low, high] = bounds([slow + more, slow], base, 2 * half, original, truncate);
            prop_assert!(0.0 <= low && low <= high && high <= 2.0 * half as f64 - 1.0);
        }

        #[test]
        fn dynamic_scaling_begins_past_the_original_length_and_never_falls(
            factor in 1.0f64..32.0, original in 1usize..5000, len in 1usize..20_000,
        ) {
            let now = dynamic_factor(factor, len, original);
            prop_assert!(now <= dynamic_factor(factor, len + 1, original));
            prop_assert_eq!(len > original, now > 1.0 + 1e-9, "{}", now);
        }
    }
}

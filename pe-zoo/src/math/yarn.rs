//! YaRN: slow waves are stretched, fast ones kept, with a ramp between them.

use std::f64::consts::TAU;

use super::frequencies::inverse_frequencies;

/// Frequencies of the `dim / 2` pairs in radians per position, and what cosine and sine are
/// multiplied by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Yarn {
    pub(crate) frequencies: Vec<f64>,
    pub(crate) attention_factor: f64,
}

/// Rotations within the original length above which a wave is kept, and below which it is
/// stretched in full.
const KEPT: f64 = 32.0;
const STRETCHED: f64 = 1.0;

/// Peng et al. 2023, arXiv 2309.00071, section 3.2 and eq. 22.
pub(crate) fn yarn(base: f64, factor: f64, original_len: usize, dim: usize) -> Yarn {
    let pair_of = |rotations: f64| {
        dim as f64 * (original_len as f64 / (rotations * TAU)).ln() / (2.0 * base.ln())
    };
    let last = dim as f64 - 1.0;
    let low = pair_of(KEPT).floor().clamp(0.0, last);
    let high = pair_of(STRETCHED).ceil().clamp(0.0, last);
    // A width of zero would divide by zero; the least width is the authors' code's.
    let width = (high - low).max(0.001);
    let frequencies = inverse_frequencies(base, dim)
        .into_iter()
        .enumerate()
        .map(|(m, f)| {
            let ramp = ((m as f64 - low) / width).clamp(0.0, 1.0);
            f / factor * ramp + f * (1.0 - ramp)
        })
        .collect();
    let attention_factor = if factor <= 1.0 { 1.0 } else { 0.1 * factor.ln() + 1.0 };
    Yarn { frequencies, attention_factor }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HuggingFace transformers, tests/utils/test_modeling_rope_utils.py at 087e80025: dim 128, base
    /// 1e4, factor 10, original length 2048.
    #[test]
    fn frequencies_are_those_of_the_published_tests() {
        let Yarn { frequencies: f, attention_factor } = yarn(1e4, 10.0, 2048, 128);
        for (m, expected, within) in [
            (16, 1.0e-1, 5e-6),
            (17, 8.3479e-2, 5e-7),
            (19, 5.7925e-2, 5e-7),
            (40, 4.3007e-4, 5e-9),
            (41, 2.7384e-4, 5e-9),
            (63, 1.1548e-5, 5e-10),
        ] {
            assert!((f[m] - expected).abs() < within, "{m}: {} for {expected}", f[m]);
        }
        assert!((attention_factor - 1.230_259).abs() < 5e-7, "{attention_factor}");
    }

    /// `fixtures/vectors.json`, `meta.yarn`: dim 4, factor 4, original length 64.
    #[test]
    fn a_small_dimension_clamps_its_ramp() {
        let Yarn { frequencies, attention_factor } = yarn(1e4, 4.0, 64, 4);
        assert!((frequencies[0] - 1.0).abs() < 1e-12, "{frequencies:?}");
        assert!((frequencies[1] - 0.0025).abs() < 1e-12, "{frequencies:?}");
        assert!((attention_factor - 1.138_629_436_111_989).abs() < 1e-12, "{attention_factor}");
    }

    #[test]
    fn a_factor_of_one_changes_nothing() {
        let Yarn { frequencies, attention_factor } = yarn(1e4, 1.0, 64, 16);
        for (got, plain) in frequencies.iter().zip(inverse_frequencies(1e4, 16)) {
            assert!((got - plain).abs() < 1e-15);
        }
        assert!((attention_factor - 1.0).abs() < 1e-15);
    }
}

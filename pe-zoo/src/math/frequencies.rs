//! Frequencies of waves and rotations.

/// `base^(-2m / dim)` for `m` in `0..dim / 2`, in radians per position.
pub(crate) fn inverse_frequencies(base: f64, dim: usize) -> Vec<f64> {
    (0..dim / 2).map(|m| base.powf(-2.0 * m as f64 / dim as f64)).collect()
}

/// The base of NTK-aware scaling, `base * factor^(dim / (dim - 2))`.
pub(crate) fn ntk_base(base: f64, factor: f64, dim: usize) -> f64 {
    base * factor.powf(dim as f64 / (dim as f64 - 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HuggingFace transformers, tests/utils/test_modeling_rope_utils.py at 087e80025: D 128, base 1e4.
    #[test]
    fn default_frequencies_are_those_of_the_published_tests() {
        let f = inverse_frequencies(1e4, 128);
        assert!((f[1] - 8.6596e-1).abs() < 5e-6 && (f[63] - 1.1548e-4).abs() < 5e-9, "{f:?}");
    }

    /// `spec/encodings.md` section 5: static NTK bases for D 128 and 64 at factors 2, 4, 8.
    #[test]
    fn ntk_bases_are_those_of_the_specification() {
        for (dim, factor, expected) in [
            (128, 2.0, 20_221.261_7),
            (128, 4.0, 40_889.942_4),
            (128, 8.0, 82_684.622_6),
            (64, 2.0, 20_452.228_7),
            (64, 8.0, 85_550.375_9),
        ] {
            assert!((ntk_base(1e4, factor, dim) - expected).abs() < 1e-4, "{dim} {factor}");
        }
    }
}

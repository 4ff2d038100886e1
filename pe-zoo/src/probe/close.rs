//! Comparison of numbers: finite, then equal within a named tolerance.

use burn::tensor::Tensor;

/// Largest accepted difference of two numbers, `absolute + relative * |expected|`.
#[derive(Debug, Clone, Copy)]
pub struct Tolerance {
    /// Absolute part, in the unit of the numbers.
    pub absolute: f64,
    /// Relative part, as a fraction of the expected number.
    pub relative: f64,
}

/// Tolerance of f32 against f64 for sums of a few hundred products of numbers near 1.
pub const F32: Tolerance = Tolerance { absolute: 3e-5, relative: 3e-5 };

/// Tolerance of f32 against f32 with another order of summation.
pub const F32_REORDERED: Tolerance = Tolerance { absolute: 1e-5, relative: 1e-5 };

/// Step of central differences in f64. It is so small that an interval rarely contains a kink of a ReLU, and large compared
/// with the precision of f64.
pub const DERIVATIVE_STEP: f64 = 4e-6;

/// Tolerance of gradients in f32 against such differences: for forward and backward sums of a few dozen products, and for the
/// error of a difference, the square of the step times a third derivative.
pub const DERIVATIVE: Tolerance = Tolerance { absolute: 5e-4, relative: 1e-3 };

/// Tolerance of f64 against numbers printed with twelve digits.
pub const PRINTED: Tolerance = Tolerance { absolute: 2e-11, relative: 2e-11 };

/// Compares two sequences of numbers, which must be finite.
///
/// # Errors
///
/// The first index at which they differ, with both numbers.
pub fn compare(actual: &[f64], expected: &[f64], tolerance: Tolerance) -> Result<(), String> {
    if actual.len() != expected.len() {
        return Err(format!("{} elements, expected {}", actual.len(), expected.len()));
    }
    for (at, (a, e)) in actual.iter().zip(expected).enumerate() {
        compare_one(*a, *e, tolerance)
            .map_err(|found| format!("element {at} (counted from 0) is {found}"))?;
    }
    Ok(())
}

/// Compares two numbers, which must be finite. The error gives both.
pub(crate) fn compare_one(actual: f64, expected: f64, tolerance: Tolerance) -> Result<(), String> {
    if !actual.is_finite() || !expected.is_finite() {
        return Err(format!("{actual}, expected {expected}; both must be finite"));
    }
    let limit = tolerance.absolute + tolerance.relative * expected.abs();
    if (actual - expected).abs() > limit {
        return Err(format!("{actual}, expected {expected} ± {limit:.1e}"));
    }
    Ok(())
}

/// Converts a tensor to f64 numbers.
///
/// # Panics
///
/// If the tensor cannot be read back.
pub fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().convert::<f64>().try_into_vec::<f64>().expect("a float tensor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_close_to_nothing() {
        assert!(compare(&[f64::NAN], &[f64::NAN], F32).is_err());
        assert!(compare(&[f64::INFINITY], &[f64::INFINITY], F32).is_err());
    }

    #[test]
    fn a_difference_is_named_with_its_place() {
        let error = compare(&[1.0, 2.1], &[1.0, 2.0], F32).unwrap_err();
        assert!(error.contains("element 1 (counted from 0) is 2.1"), "{error}");
        assert!(compare(&[1.0], &[1.0, 2.0], F32).is_err());
    }
}

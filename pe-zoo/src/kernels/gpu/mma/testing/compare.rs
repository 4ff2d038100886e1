//! Comparison of simulated results with those in f64.

/// Tolerance relative to the norm of a tensor: weights and their gradients are rounded to eight bits.
pub(super) const ROUNDED: f64 = 6e-3;

/// Compares two tensors by the norm of their difference.
pub(super) fn close(name: &str, simulated: &[f32], expected: &[f64], off: f64) {
    assert_eq!(simulated.len(), expected.len(), "{name}");
    let norm = |numbers: &mut dyn Iterator<Item = f64>| numbers.map(|x| x * x).sum::<f64>().sqrt();
    let apart = norm(&mut simulated.iter().zip(expected).map(|(a, b)| f64::from(*a) - b));
    let whole = norm(&mut expected.iter().copied());
    // `<=` is false for NaN.
    assert!(apart <= off * whole.max(1.0), "{name} is {apart:.2e} off, of {whole:.2e}");
}

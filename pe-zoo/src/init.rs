//! Initial values of parameters, drawn on the host, so that a seed gives the same numbers on every
//! backend.

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Creates a tensor of constants, `[N]` for `N` values, which is not learned.
pub fn fixed(values: &[f64], device: &Device) -> Tensor<1> {
    let values = values.iter().map(|value| *value as f32).collect::<Vec<_>>();
    Tensor::from_data(values.as_slice(), device)
}

/// Creates a learned tensor of zeros.
pub fn zeros<const D: usize>(shape: [usize; D], device: &Device) -> Param<Tensor<D>> {
    constant(0.0, shape, device)
}

/// Creates a learned tensor with every entry equal to `value`.
pub fn constant<const D: usize>(
    value: f32,
    shape: [usize; D],
    device: &Device,
) -> Param<Tensor<D>> {
    given(vec![value; shape.iter().product()], shape, device)
}

/// Creates a learned tensor with the given initial values, in row-major order.
///
/// # Panics
///
/// If the number of values is not that of the shape.
pub fn given<const D: usize>(
    values: Vec<f32>,
    shape: [usize; D],
    device: &Device,
) -> Param<Tensor<D>> {
    Param::from_data(TensorData::new(values, shape), device)
}

/// Creates a learned tensor drawn from the normal distribution with mean 0 and the given standard
/// deviation.
pub fn normal<const D: usize>(
    std: f64,
    shape: [usize; D],
    rng: &mut ChaCha8Rng,
    device: &Device,
) -> Param<Tensor<D>> {
    let values = (0..shape.iter().product()).map(|_| (std * standard_normal(rng)) as f32).collect();
    given(values, shape, device)
}

/// Creates a learned tensor drawn uniformly from `-bound..bound`.
pub fn uniform<const D: usize>(
    bound: f64,
    shape: [usize; D],
    rng: &mut ChaCha8Rng,
    device: &Device,
) -> Param<Tensor<D>> {
    let values = (0..shape.iter().product())
        .map(|_| ((2.0 * rng.random::<f64>() - 1.0) * bound) as f32)
        .collect();
    given(values, shape, device)
}

/// Creates a learned tensor drawn uniformly from a range.
pub fn uniform_between<const D: usize>(
    range: std::ops::Range<f64>,
    shape: [usize; D],
    rng: &mut ChaCha8Rng,
    device: &Device,
) -> Param<Tensor<D>> {
    let width = range.end - range.start;
    let values = (0..shape.iter().product())
        .map(|_| (range.start + width * rng.random::<f64>()) as f32)
        .collect();
    given(values, shape, device)
}

/// Draws from the standard normal distribution (Box-Muller, cosine branch).
pub fn standard_normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn normal_draws_have_the_stated_moments() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let draws = (0..100_000).map(|_| standard_normal(&mut rng)).collect::<Vec<_>>();
        let n = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let kurtosis = draws.iter().map(|x| (x - mean).powi(4)).sum::<f64>() / n / variance.powi(2);
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
        assert!((kurtosis - 3.0).abs() < 0.15, "{kurtosis}");
    }
}

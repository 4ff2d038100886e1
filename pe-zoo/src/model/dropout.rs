//! Dropout with masks from the run's generator, so that a seed gives the same bits.

use burn::tensor::{Tensor, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Dropout of activations in training; no effect in evaluation.
#[derive(Debug)]
pub struct Dropout<'a> {
    /// Share of activations dropped.
    pub rate: f64,
    /// Generator of the masks; `None` in evaluation.
    pub rng: Option<&'a mut ChaCha8Rng>,
}

impl Dropout<'_> {
    /// Creates a dropout that drops nothing.
    pub fn off() -> Self {
        Self { rate: 0.0, rng: None }
    }

    /// Whether activations are dropped.
    pub fn is_active(&self) -> bool {
        self.rng.is_some() && self.rate > 0.0
    }

    /// Sets a share of the entries to 0 and scales the others up to preserve the mean.
    pub fn apply<const D: usize>(&mut self, x: Tensor<D>) -> Tensor<D> {
        let Some(rng) = self.rng.as_mut().filter(|_| self.rate > 0.0) else { return x };
        let shape = x.dims();
        let kept = (1.0 / (1.0 - self.rate)) as f32;
        let threshold = (self.rate * f64::from(u32::MAX)) as u32;
        let mask = (0..shape.iter().product())
            .map(|_| if rng.random::<u32>() < threshold { 0.0 } else { kept })
            .collect::<Vec<f32>>();
        let mask = Tensor::from_data(TensorData::new(mask, shape), &x.device());
        x * mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn the_stated_share_is_dropped_and_the_mean_is_kept() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let x = Tensor::<1>::ones([100_000], &Device::flex());
        let dropped = Dropout { rate: 0.25, rng: Some(&mut rng) }.apply(x);
        let values = dropped.into_data().try_to_vec::<f32>().unwrap();
        let zeros = values.iter().filter(|v| **v == 0.0).count() as f64 / 1e5;
        let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / 1e5;
        assert!((zeros - 0.25).abs() < 0.01 && (mean - 1.0).abs() < 0.01, "{zeros} {mean}");
    }
}

//! Means with intervals, for curves and slices.

use super::estimate::half_width_factor;

/// Mean over seeds with its 95% interval by Student's t.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// Arithmetic mean, `sum(x_i) / n`.
    pub mean: f64,
    /// 95% confidence interval as in [`super::Estimate`]; `None` for n = 1 or values that are not finite.
    pub ci95: Option<(f64, f64)>,
    /// Number of values, at least 1.
    pub n: u32,
}

impl Mean {
    /// Computes the mean of `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = u32::try_from(values.len()).ok().filter(|n| *n > 0)?;
        let mean = values.iter().sum::<f64>() / f64::from(n);
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        let half = half_width_factor(n)
            .map(|factor| factor * (squares / f64::from(n - 1)).sqrt())
            .filter(|half| half.is_finite());
        Some(Self { mean, ci95: half.map(|half| (mean - half, mean + half)), n })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Estimate;

    #[test]
    fn it_is_the_mean_and_the_interval_of_an_estimate() {
        for values in [&[0.3][..], &[0.2, 0.5, 0.4], &[1.0, f64::NAN]] {
            let (mean, estimate) = (Mean::of(values).unwrap(), Estimate::of(values).unwrap());
            assert_eq!(mean.mean.to_bits(), estimate.mean.to_bits());
            assert_eq!((mean.ci95, mean.n), (estimate.ci95, estimate.n));
        }
        assert_eq!(Mean::of(&[]), None);
    }
}

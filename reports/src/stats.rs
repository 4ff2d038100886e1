//! Statistics over seeds: Student's t intervals and differences paired by seed.
//!
//! Seeds are few (1 to 10), so intervals use the t distribution, not the normal one: with two seeds
//! the factor is 12.7, with three 4.3. All intervals are two-sided at 95 %. They assume that the
//! values of the seeds scatter roughly normally around their mean.

mod student;

pub use student::{t_cdf, t_quantile};

/// A mean over seeds, with what is known about its spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// `mean = sum(x_i) / n`.
    pub mean: f64,
    /// Sample standard deviation, `sqrt(sum((x_i - mean)^2) / (n - 1))`; `None` for n = 1.
    pub std: Option<f64>,
    /// `mean -+ t(0.975, n - 1) * std / sqrt(n)`; `None` for n = 1 or values that are not finite.
    pub ci95: Option<(f64, f64)>,
    /// Number of values.
    pub n: u32,
}

impl Estimate {
    /// The estimate from `values`; `None` when there are none.
    ///
    /// ```
    /// # use reports::stats::Estimate;
    /// let estimate = Estimate::of(&[0.9, 1.0]).expect("two values");
    /// let (low, high) = estimate.ci95.expect("two values have an interval");
    /// assert!((estimate.mean - 0.95).abs() < 1e-12);
    /// // 12.706 * 0.0707 / sqrt(2) = 0.635: two seeds say very little.
    /// assert!((low - 0.315).abs() < 1e-3 && (high - 1.585).abs() < 1e-3);
    /// ```
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = u32::try_from(values.len()).ok().filter(|n| *n > 0)?;
        let mean = values.iter().sum::<f64>() / f64::from(n);
        if n == 1 || !mean.is_finite() {
            return Some(Self { mean, std: None, ci95: None, n });
        }
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        let std = (squares / f64::from(n - 1)).sqrt();
        let half = half_width_factor(n).map(|factor| factor * std);
        Some(Self { mean, std: Some(std), ci95: half.map(|half| (mean - half, mean + half)), n })
    }

    /// The same estimate through a monotone increasing `map` of the values' scale. The mean and the
    /// ends of the interval are mapped; the standard deviation has no counterpart and becomes `None`.
    #[must_use]
    pub fn map(&self, map: impl Fn(f64) -> f64) -> Self {
        Self {
            mean: map(self.mean),
            std: None,
            ci95: self.ci95.map(|(low, high)| (map(low), map(high))),
            n: self.n,
        }
    }
}

/// `t(0.975, n - 1) / sqrt(n)`: times a standard deviation, half of a 95 % interval. `None` below
/// n = 2, where there is no interval.
pub fn half_width_factor(n: u32) -> Option<f64> {
    (n >= 2).then(|| t_quantile(0.975, f64::from(n - 1)) / f64::from(n).sqrt())
}

/// A difference between two encodings, paired by seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Mean of `a_s - b_s` over the seeds `s` that both have.
    pub mean_difference: f64,
    /// 95 % interval of the mean difference: `mean -+ t(0.975, n - 1) * std / sqrt(n)` over the
    /// differences; `None` for n = 1.
    pub ci95: Option<(f64, f64)>,
    /// Number of seeds that both have.
    pub n: u32,
    /// Whether the difference is more than noise: n >= 2 and the interval excludes 0; see
    /// [`paired_difference`] for seeds that all agree.
    pub separable: bool,
}

/// Differences below this share of the largest value are rounding, not spread.
const ROUNDING: f64 = 1e-9;

/// Compares `a` with `b`, pairing values of equal seed. `None` when they have no seed in common or a
/// paired value is not finite. A seed that occurs twice counts once, with its last value.
///
/// Pairing removes what a seed does to both (same data, same initialisation), so it finds
/// differences that two separate intervals would hide.
///
/// When all seeds give the same non-zero difference (typical: both encodings at a bound, such as 0
/// and 100 %), the interval has no width. Two equal differences can be chance, so the two are then
/// separable only from n = 3 on. Equal up to rounding counts as equal.
pub fn paired_difference(a: &[(u64, f64)], b: &[(u64, f64)]) -> Option<Comparison> {
    use std::collections::BTreeMap;
    let b: BTreeMap<u64, f64> = b.iter().copied().collect();
    let a: BTreeMap<u64, f64> = a.iter().copied().collect();
    let pairs: Vec<(f64, f64)> =
        a.iter().filter_map(|(seed, x)| b.get(seed).map(|y| (*x, *y))).collect();
    let differences: Vec<f64> = pairs.iter().map(|(x, y)| x - y).collect();
    let estimate = Estimate::of(&differences).filter(|e| e.mean.is_finite())?;
    let scale = pairs.iter().fold(0.0, |s: f64, (x, y)| s.max(x.abs()).max(y.abs()));
    let rounding = ROUNDING * scale;
    let mean = estimate.mean;
    let separable = match (estimate.std, estimate.ci95) {
        _ if mean.abs() <= rounding => false,
        (Some(std), _) if std <= rounding => estimate.n >= 3,
        (Some(_), Some((low, high))) => low > 0.0 || high < 0.0,
        _ => false,
    };
    Some(Comparison { mean_difference: mean, ci95: estimate.ci95, n: estimate.n, separable })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!(a.is_finite() && (a - b).abs() <= tolerance, "{a} is not {b} within {tolerance}");
    }

    #[test]
    fn an_estimate_equals_the_one_by_hand() {
        // Mean 5, squares 9 + 1 + 1 + 9 = 20, std sqrt(20/3), t(3) = 3.182446.
        let estimate = Estimate::of(&[2.0, 4.0, 6.0, 8.0]).unwrap();
        assert_eq!((estimate.mean, estimate.n), (5.0, 4));
        close(estimate.std.unwrap(), 2.581_988_897, 1e-9);
        let (low, high) = estimate.ci95.unwrap();
        close(high - 5.0, 3.182_446_305 * 2.581_988_897 / 2.0, 1e-7);
        close(5.0 - low, high - 5.0, 1e-12);
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_estimate() {
        let one = Estimate::of(&[0.5]).unwrap();
        assert_eq!(one, Estimate { mean: 0.5, std: None, ci95: None, n: 1 });
        assert_eq!(Estimate::of(&[]), None);
        let nan = Estimate::of(&[0.5, f64::NAN]).unwrap();
        assert!(nan.mean.is_nan() && nan.ci95.is_none() && nan.n == 2);
    }

    #[test]
    fn differences_are_paired_by_seed_and_not_by_place() {
        let a = [(2, 0.9), (0, 0.5), (1, 0.7), (9, 0.0)];
        let b = [(0, 0.4), (1, 0.61), (2, 0.79), (8, 1.0)];
        let c = paired_difference(&a, &b).unwrap();
        // Differences .1, .09, .11: mean .1, std .01, half .01 * 4.302653 / sqrt(3).
        assert_eq!(c.n, 3);
        close(c.mean_difference, 0.1, 1e-12);
        let (low, high) = c.ci95.unwrap();
        close(low, 0.1 - 0.024_841_38, 1e-7);
        close(high, 0.1 + 0.024_841_38, 1e-7);
        assert!(c.separable);
    }

    #[test]
    fn an_interval_across_zero_is_not_separable() {
        let c = paired_difference(&[(0, 0.9), (1, 0.8)], &[(0, 0.5), (1, 0.75)]).unwrap();
        let (low, high) = c.ci95.unwrap();
        assert!(low < 0.0 && high > 0.0 && !c.separable);
    }

    #[test]
    fn a_worse_a_is_separable_too() {
        let c = paired_difference(&[(0, 0.0), (1, 0.1)], &[(0, 0.9), (1, 0.99)]).unwrap();
        assert!(c.mean_difference < 0.0 && c.separable);
    }

    #[test]
    fn one_common_seed_gives_a_difference_but_no_claim() {
        let c = paired_difference(&[(0, 0.9)], &[(0, 0.1), (1, 0.1)]).unwrap();
        assert_eq!((c.n, c.ci95, c.separable), (1, None, false));
        assert_eq!(paired_difference(&[(0, 0.9)], &[(1, 0.1)]), None);
        assert_eq!(paired_difference(&[(0, f64::NAN)], &[(0, 0.1)]), None);
    }

    #[test]
    fn equal_differences_need_three_seeds() {
        let all = |n: u64, value: f64| (0..n).map(|seed| (seed, value)).collect::<Vec<_>>();
        let separable = |n, x, y| paired_difference(&all(n, x), &all(n, y)).unwrap().separable;
        assert!(!separable(2, 1.0, 0.0));
        assert!(separable(3, 1.0, 0.0));
        assert!(!separable(3, 1.0, 1.0));
        // .3 - .1 and .4 - .2 differ by rounding only; that is no spread.
        let c = paired_difference(&[(0, 0.3), (1, 0.4)], &[(0, 0.1), (1, 0.2)]).unwrap();
        assert!(!c.separable);
    }
}

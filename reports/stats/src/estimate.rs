//! Estimates over seeds: mean, median and their intervals.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::bootstrap::{self, Bootstrap, Resamples, sorted_median};
use super::questions::QuestionError;
use super::student::t_quantile;

/// Seed of every bootstrap, so that the same values give the same interval in every report.
const BOOTSTRAP_SEED: u64 = 0x7065_2d7a_6f6f;

/// Mean and median over seeds with measures of their spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Arithmetic mean, `sum(x_i) / n`.
    pub mean: f64,
    /// Sample standard deviation, `sqrt(sum((x_i - mean)^2) / (n - 1))`; `None` for n = 1.
    pub std: Option<f64>,
    /// 95% interval of the mean, `mean -+ t(0.975, n - 1) * std / sqrt(n)`; `None` for n = 1 or values that are not
    /// finite. Exact at any n if seeds are normally distributed. With [`Estimate::with_questions`] it includes the
    /// error of the questions.
    pub ci95: Option<(f64, f64)>,
    /// Median: the middle value, or the mean of the two in the middle.
    pub median: f64,
    /// Percentile bootstrap of mean and median; `None` for n = 1 or values that are not finite. Too narrow for few
    /// seeds: see [`bootstrap`].
    pub bootstrap: Option<Bootstrap>,
    /// Standard error of the mean due to the questions; `None` if the answers to questions are not known.
    pub question_error: Option<f64>,
    /// Number of values, at least 1.
    pub n: u32,
}

impl Estimate {
    /// Computes the estimate from `values`; `None` if there are none.
    ///
    /// ```
    /// # use stats::Estimate;
    /// let estimate = Estimate::of(&[0.9, 1.0]).expect("two values");
    /// let (low, high) = estimate.ci95.expect("two values have an interval");
    /// assert!((estimate.mean - 0.95).abs() < 1e-12);
    /// // 12.706 * 0.0707 / sqrt(2) = 0.635: two seeds say very little.
    /// assert!((low - 0.315).abs() < 1e-3 && (high - 1.585).abs() < 1e-3);
    /// ```
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = u32::try_from(values.len()).ok().filter(|n| *n > 0)?;
        let mean = values.iter().sum::<f64>() / f64::from(n);
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = if mean.is_finite() { sorted_median(&sorted) } else { f64::NAN };
        let point =
            Self { mean, std: None, ci95: None, median, bootstrap: None, question_error: None, n };
        if n == 1 || !mean.is_finite() {
            return Some(point);
        }
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        let std = (squares / f64::from(n - 1)).sqrt();
        let half = half_width_factor(n).map(|factor| factor * std);
        Some(Self {
            std: Some(std),
            ci95: half.map(|half| (mean - half, mean + half)),
            bootstrap: bootstrap::percentile(values, resamples),
            ..point
        })
    }

    /// Adds the error of the questions, if it is known, to the interval of the mean, which does not get narrower. The
    /// bootstrap intervals are unchanged.
    #[must_use]
    pub fn with_questions(self, questions: impl Into<Option<QuestionError>>) -> Self {
        let (Some(questions), Some(std), Some((low, high))) =
            (questions.into(), self.std, self.ci95)
        else {
            return self;
        };
        let half = questions.half_width(std, self.n, f64::midpoint(high, -low));
        Self {
            ci95: Some((self.mean - half, self.mean + half)),
            question_error: Some(questions.standard_error()),
            ..self
        }
    }

    /// Maps the estimate by a monotonically increasing function. Mean, median and the ends of the intervals are
    /// mapped; the standard deviation has no counterpart and becomes `None`.
    #[must_use]
    pub fn map(&self, map: impl Fn(f64) -> f64) -> Self {
        let both = |(low, high): (f64, f64)| (map(low), map(high));
        Self {
            mean: map(self.mean),
            std: None,
            ci95: self.ci95.map(both),
            median: map(self.median),
            bootstrap: self
                .bootstrap
                .map(|b| Bootstrap { mean95: both(b.mean95), median95: both(b.median95) }),
            question_error: None,
            n: self.n,
        }
    }
}

/// Returns the draws for `n` values, which are made once.
fn resamples(n: usize) -> Arc<Resamples> {
    static MADE: Mutex<BTreeMap<usize, Arc<Resamples>>> = Mutex::new(BTreeMap::new());
    // The map is valid even after a panic, because draws are inserted complete.
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let draw = || Arc::new(Resamples::draw(n, &mut ChaCha8Rng::seed_from_u64(BOOTSTRAP_SEED)));
    made.entry(n).or_insert_with(draw).clone()
}

/// Returns `t(0.975, n - 1) / sqrt(n)`, which multiplied by a standard deviation is half of a 95% interval. `None`
/// below n = 2, where there is no interval.
pub fn half_width_factor(n: u32) -> Option<f64> {
    // A large report asks for a few of these a hundred thousand times.
    static MADE: [OnceLock<f64>; 128] = [const { OnceLock::new() }; 128];
    let make = || t_quantile(0.975, f64::from(n - 1)) / f64::from(n).sqrt();
    (n >= 2).then(|| MADE.get(n as usize).map_or_else(make, |made| *made.get_or_init(make)))
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
        let estimate = Estimate::of(&[2.0, 8.0, 6.0, 4.0]).unwrap();
        assert_eq!((estimate.mean, estimate.median, estimate.n), (5.0, 5.0, 4));
        close(estimate.std.unwrap(), 2.581_988_897, 1e-9);
        let (low, high) = estimate.ci95.unwrap();
        close(high - 5.0, 3.182_446_305 * 2.581_988_897 / 2.0, 1e-7);
        close(5.0 - low, high - 5.0, 1e-12);
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_estimate() {
        let one = Estimate::of(&[0.5]).unwrap();
        assert_eq!((one.mean, one.median, one.n), (0.5, 0.5, 1));
        assert_eq!((one.std, one.ci95, one.bootstrap), (None, None, None));
        assert_eq!(Estimate::of(&[]), None);
        let nan = Estimate::of(&[0.5, f64::NAN]).unwrap();
        assert!(nan.mean.is_nan() && nan.median.is_nan() && nan.n == 2);
        assert_eq!((nan.ci95, nan.bootstrap), (None, None));
    }

    #[test]
    fn a_median_does_not_see_how_far_the_outlier_is() {
        close(Estimate::of(&[0.9, 1.0, 0.0]).unwrap().median, 0.9, 0.0);
        close(Estimate::of(&[0.9, 1.0, -50.0]).unwrap().median, 0.9, 0.0);
    }

    #[test]
    fn a_mapped_estimate_keeps_the_order() {
        let nll = Estimate::of(&[1.0, 1.5, 3.0]).unwrap();
        let perplexity = nll.map(f64::exp);
        close(perplexity.median, 1.5_f64.exp(), 0.0);
        let (low, high) = perplexity.bootstrap.unwrap().median95;
        assert!(low < perplexity.median && perplexity.median < high);
    }
}

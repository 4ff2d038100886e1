//! Comparison of two encodings by differences paired by seed.

use std::collections::BTreeMap;

use super::effect::hedges_g;
use super::estimate::half_width_factor;
use super::lottery::lottery;
use super::questions::QuestionError;
use super::sign_flip::sign_flip;
use super::student::{t_test, two_sided};

/// Lower bound of the standard deviation of differences: 0.1 points of a share, 0.001 nats.
///
/// Shares are shown to a tenth of a point, and evaluations have some hundred questions, so that three differences
/// that agree more closely agree because of their resolution. Without the bound, two encodings at 100 and 0% in
/// every seed would have an interval of width 0 and a p-value of 0.
pub const RESOLUTION: f64 = 0.001;

/// Share of the largest value below which differences are rounding errors.
const ROUNDING: f64 = 1e-9;

/// Statistics of the differences `a_s - b_s` over the seeds `s` that both encodings have, without a verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// Mean of the differences.
    pub mean_difference: f64,
    /// Observed standard deviation of the differences; `None` for n = 1.
    pub std: Option<f64>,
    /// 95% interval of the mean difference, `mean -+ t(0.975, n - 1) * max(std, RESOLUTION) /
    /// sqrt(n)`, not corrected for the number of comparisons; `None` for n = 1.
    pub ci95: Option<(f64, f64)>,
    /// Two-sided p-value of the paired t test, with the same spread; `None` for n = 1.
    pub p_t: Option<f64>,
    /// Two-sided p-value of the sign-flip test; see [`sign_flip`].
    pub p_sign_flip: f64,
    /// p-value for seeds that solve the task or fail at random; see [`lottery`].
    pub p_lottery: f64,
    /// Hedges' g of the differences; see [`hedges_g`].
    pub effect: Option<f64>,
    /// Standard error of the mean difference due to the questions, if known; interval and `p_t` then include both
    /// sources of variance.
    pub question_error: Option<f64>,
    /// Number of seeds that both encodings have.
    pub n: u32,
}

impl Paired {
    /// Reports whether all seeds have the same difference, up to rounding.
    pub fn is_the_same_in_every_seed(&self) -> bool {
        self.std.is_some_and(|std| std <= ROUNDING)
    }

    /// Statistics of the differences `b_s - a_s`.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            mean_difference: -self.mean_difference,
            ci95: self.ci95.map(|(low, high)| (-high, -low)),
            effect: self.effect.map(|effect| -effect),
            ..self
        }
    }

    /// Adds the error of the questions, if it is known, to the interval and to the p-value of the t test; neither gets
    /// smaller. With one seed there is neither.
    #[must_use]
    pub fn with_questions(self, questions: impl Into<Option<QuestionError>>) -> Self {
        let (Some(questions), Some(std), Some(p)) = (questions.into(), self.std, self.p_t) else {
            return self;
        };
        let spread = std.max(RESOLUTION);
        let (error, df) = questions.with_seeds(spread, self.n);
        let both = two_sided(self.mean_difference / error, df);
        let widened = self.ci95.map(|(low, high)| {
            let half = questions.half_width(spread, self.n, f64::midpoint(high, -low));
            (self.mean_difference - half, self.mean_difference + half)
        });
        Self {
            ci95: widened,
            p_t: Some(p.max(both)),
            question_error: Some(questions.standard_error()),
            ..self
        }
    }
}

/// Compares `a` with `b` by pairing values of equal seed. `None` if they have no seed in common or a paired value is
/// not finite. A seed that occurs twice is used once, with its last value.
///
/// Pairing removes effects of the seed that both encodings share (data and initialisation), so it finds differences
/// that two separate intervals would hide.
pub fn paired(a: &[(u64, f64)], b: &[(u64, f64)]) -> Option<Paired> {
    let b: BTreeMap<u64, f64> = b.iter().copied().collect();
    let a: BTreeMap<u64, f64> = a.iter().copied().collect();
    let pairs: Vec<(f64, f64)> =
        a.iter().filter_map(|(seed, x)| b.get(seed).map(|y| (*x, *y))).collect();
    let scale = pairs.iter().fold(0.0, |s: f64, (x, y)| s.max(x.abs()).max(y.abs()));
    let differences: Vec<f64> = pairs
        .iter()
        .map(|(x, y)| x - y)
        .map(|d| if d.abs() <= ROUNDING * scale { 0.0 } else { d })
        .collect();
    let p_sign_flip = sign_flip(&differences)?;
    let p_lottery = lottery(&differences);
    let n = u32::try_from(differences.len()).ok()?;
    let mean = differences.iter().sum::<f64>() / f64::from(n);
    let one = Paired {
        mean_difference: mean,
        std: None,
        ci95: None,
        p_t: None,
        p_sign_flip,
        p_lottery,
        effect: None,
        question_error: None,
        n,
    };
    if n == 1 {
        return Some(one);
    }
    let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
    let std = (squares / f64::from(n - 1)).sqrt();
    let spread = std.max(RESOLUTION);
    let half = half_width_factor(n).map(|factor| factor * spread);
    Some(Paired {
        std: Some(std),
        ci95: half.map(|half| (mean - half, mean + half)),
        p_t: Some(t_test(mean, spread, n)),
        effect: (std > ROUNDING * scale).then(|| hedges_g(mean, std, n)).flatten(),
        ..one
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!(a.is_finite() && (a - b).abs() <= tolerance, "{a} is not {b} within {tolerance}");
    }

    fn all(n: u64, value: f64) -> Vec<(u64, f64)> {
        (0..n).map(|seed| (seed, value)).collect()
    }

    #[test]
    fn differences_are_paired_by_seed_and_not_by_place() {
        let a = [(2, 0.9), (0, 0.5), (1, 0.7), (9, 0.0)];
        let b = [(0, 0.4), (1, 0.61), (2, 0.79), (8, 1.0)];
        let c = paired(&a, &b).unwrap();
        // Differences .1, .09, .11: mean .1, std .01, half .01 * 4.302653 / sqrt(3).
        assert_eq!(c.n, 3);
        close(c.mean_difference, 0.1, 1e-12);
        let (low, high) = c.ci95.unwrap();
        close(low, 0.1 - 0.024_841_38, 1e-7);
        close(high, 0.1 + 0.024_841_38, 1e-7);
        close(c.p_sign_flip, 0.25, 0.0);
        // d = 10, J(2) = 1 / Gamma(1/2) = 0.5641896.
        close(c.effect.unwrap(), 5.641_896, 1e-6);
    }

    #[test]
    fn one_common_seed_gives_a_difference_and_nothing_else() {
        let c = paired(&[(0, 0.9)], &[(0, 0.1), (1, 0.1)]).unwrap();
        assert_eq!((c.n, c.ci95, c.p_t, c.effect, c.p_sign_flip), (1, None, None, None, 1.0));
        assert_eq!(paired(&[(0, 0.9)], &[(1, 0.1)]), None);
        assert_eq!(paired(&[(0, f64::NAN)], &[(0, 0.1)]), None);
    }

    #[test]
    fn a_spread_below_the_resolution_is_the_resolution() {
        let c = paired(&all(3, 1.0), &all(3, 0.0)).unwrap();
        assert!(c.is_the_same_in_every_seed());
        let (low, high) = c.ci95.unwrap();
        close(high - low, 2.0 * 4.302_653 * RESOLUTION / 3.0_f64.sqrt(), 1e-8);
        assert!(c.p_t.unwrap() < 1e-6 && c.effect.is_none());
        // A tenth of a point in each seed is no difference.
        assert!(paired(&all(3, 1.0), &all(3, 0.999)).unwrap().p_t.unwrap() > 0.2);
        assert_eq!(paired(&all(3, 1.0), &all(3, 1.0)).unwrap().p_t, Some(1.0));
    }

    #[test]
    fn rounding_is_no_difference() {
        let c = paired(&[(0, 0.3), (1, 0.4), (2, 0.1)], &[(0, 0.1 + 0.2), (1, 0.4), (2, 0.1)]);
        let c = c.unwrap();
        assert_eq!((c.mean_difference, c.p_t, c.p_sign_flip), (0.0, Some(1.0), 1.0));
    }
}

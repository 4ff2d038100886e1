//! Mean ranks over several tasks, with Friedman's test and Nemenyi's critical difference (Demšar 2006, "Statistical
//! comparisons of classifiers over multiple data sets").
//!
//! The unit is the task: every task gives each encoding one rank, by its mean over seeds, and tasks are taken as a random
//! sample of independent tasks. Friedman's p-value is that of the permutation test, which holds for any number of tasks
//! and with ties; the critical difference assumes many tasks, as Nemenyi's test does.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::family::LEVEL;
use super::student::normal_cdf;

/// Number of random permutations for the p-value.
const DRAWS: u32 = 9999;
/// Seed of the permutations.
const SEED: u64 = 0x7065_2d7a_6f6f;

/// Mean ranks of encodings over tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct MeanRanks {
    /// Mean rank of each encoding, in the order of the scores; 1 is best, ties get the mean of their ranks.
    pub ranks: Vec<f64>,
    /// p-value of Friedman's test that all encodings have the same ranks.
    pub p: f64,
    /// Smallest difference of two mean ranks that is significant at 5% for all pairs together.
    pub critical_difference: f64,
    /// Number of tasks ranked.
    pub tasks: u32,
}

impl MeanRanks {
    /// Ranks encodings by `scores[task][encoding]`, where higher is better. `None` with fewer than two tasks or
    /// encodings, or if a score is not finite.
    pub fn of(scores: &[Vec<f64>]) -> Option<Self> {
        let count = scores.first()?.len();
        let whole = |task: &Vec<f64>| task.len() == count && task.iter().all(|x| x.is_finite());
        if scores.len() < 2 || count < 2 || !scores.iter().all(whole) {
            return None;
        }
        let mut ranked: Vec<Vec<f64>> = scores.iter().map(|task| ranks(task)).collect();
        let tasks = ranked.len() as f64;
        let sums = sums(&ranked);
        let observed = scatter(&sums) - 1e-9;
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let far = (0..DRAWS).filter(|_| {
            for task in &mut ranked {
                task.shuffle(&mut rng);
            }
            scatter(&self::sums(&ranked)) >= observed
        });
        let p = f64::from(far.count() as u32 + 1) / f64::from(DRAWS + 1);
        let k = count as f64;
        let critical_difference = range_quantile(1.0 - LEVEL, count) / std::f64::consts::SQRT_2
            * (k * (k + 1.0) / (6.0 * tasks)).sqrt();
        let ranks = sums.into_iter().map(|sum| sum / tasks).collect();
        Some(Self { ranks, p, critical_difference, tasks: scores.len() as u32 })
    }

    /// Reports whether no permutation scattered as much as the data, so that the p-value is the least possible one.
    pub fn is_least(&self) -> bool {
        self.p <= 1.5 / f64::from(DRAWS + 1)
    }

    /// Reports whether Friedman's test finds a difference between any two encodings at 5%. Otherwise no pair is
    /// significant.
    pub fn differ(&self) -> bool {
        self.p <= LEVEL
    }
}

/// Returns the ranks of scores, 1 for the highest; ties get the mean of their ranks.
fn ranks(scores: &[f64]) -> Vec<f64> {
    let rank = |own: &f64| {
        let above = scores.iter().filter(|other| *other > own).count() as f64;
        let level = scores.iter().filter(|other| other.total_cmp(own).is_eq()).count() as f64;
        above + f64::midpoint(level, 1.0)
    };
    scores.iter().map(rank).collect()
}

fn sums(ranked: &[Vec<f64>]) -> Vec<f64> {
    let mut sums = vec![0.0; ranked[0].len()];
    for task in ranked {
        sums.iter_mut().zip(task).for_each(|(sum, rank)| *sum += rank);
    }
    sums
}

/// Returns the sum of squared deviations of rank sums from their mean: Friedman's statistic up to a factor that
/// permutations do not change.
fn scatter(sums: &[f64]) -> f64 {
    let mean = sums.iter().sum::<f64>() / sums.len() as f64;
    sums.iter().map(|sum| (sum - mean).powi(2)).sum()
}

/// Returns a quantile of the studentized range of `count` values with infinite degrees of freedom: `P(range <= q) = k
/// int phi(z) (Phi(z) - Phi(z - q))^(k - 1) dz`, inverted by bisection.
fn range_quantile(level: f64, count: usize) -> f64 {
    const STEPS: u32 = 400;
    let k = count as f64;
    let step = 16.0 / f64::from(STEPS);
    // Equally spaced sums are exact to all digits here: the integrand and its slopes vanish at both ends.
    let below = |q: f64| -> f64 {
        let inner = |i: u32| {
            let z = -8.0 + step * f64::from(i);
            let density = (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
            density * (normal_cdf(z) - normal_cdf(z - q)).max(0.0).powf(k - 1.0)
        };
        k * step * (0..=STEPS).map(inner).sum::<f64>()
    };
    let (mut low, mut high) = (0.0, 20.0);
    while high - low > 1e-9 {
        let middle = f64::midpoint(low, high);
        if below(middle) < level { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_critical_values_are_those_of_the_table() {
        // Demšar 2006, Table 5 (a), alpha = 0.05: quantiles over the root of 2, for 2 to 10 classifiers.
        let table = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164];
        for (count, printed) in (2..).zip(table) {
            let found = range_quantile(0.95, count) / std::f64::consts::SQRT_2;
            assert!((found - printed).abs() < 1.1e-3, "{count}: {found}");
        }
        // scipy.stats.studentized_range.ppf(0.95, k, 1e9)
        assert!((range_quantile(0.95, 20) - 5.011_688_79).abs() < 1e-6);
        assert!((range_quantile(0.95, 50) - 5.646_026_03).abs() < 1e-6);
    }

    #[test]
    fn ranks_are_averaged_over_ties() {
        assert_eq!(ranks(&[0.5, 0.9, 0.5, 0.1]), [2.5, 1.0, 2.5, 4.0]);
        assert_eq!(ranks(&[1.0; 3]), [2.0; 3]);
    }

    #[test]
    fn the_same_order_on_six_tasks_is_a_difference_and_on_two_is_not() {
        let task = vec![0.9, 0.5, 0.1];
        let six = MeanRanks::of(&vec![task.clone(); 6]).unwrap();
        assert_eq!(six.ranks, [1.0, 2.0, 3.0]);
        // 6 of the 6^6 orders are as far out: p = 0.00013, within the resolution of the draws.
        assert!(six.p < 0.002 && six.differ());
        assert!((six.critical_difference - 2.3437 * (12.0_f64 / 36.0).sqrt()).abs() < 1e-3);
        let two = MeanRanks::of(&[task.clone(), task]).unwrap();
        // 1 in 6 orders of the second task agrees with the first.
        assert!((two.p - 1.0 / 6.0).abs() < 0.015 && !two.differ(), "{}", two.p);
    }

    #[test]
    fn one_task_and_missing_scores_have_no_mean_ranks() {
        assert_eq!(MeanRanks::of(&[vec![0.1, 0.2]]), None);
        assert_eq!(MeanRanks::of(&[vec![0.1], vec![0.2]]), None);
        assert_eq!(MeanRanks::of(&[vec![0.1, 0.2], vec![0.2, f64::NAN]]), None);
        assert_eq!(MeanRanks::of(&[vec![0.1, 0.2], vec![0.2]]), None);
        let level = MeanRanks::of(&vec![vec![0.5; 4]; 5]).unwrap();
        assert!(level.p > 0.99 && level.ranks == [2.5; 4]);
    }
}

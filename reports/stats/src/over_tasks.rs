//! Aggregates of runs over several tasks: interquartile mean, performance profile, probability of improvement, each with
//! a stratified bootstrap interval (Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical
//! precipice", arXiv 2108.13264).
//!
//! Tasks are treated as fixed: an interval covers other seeds and other questions on these tasks, not other tasks. A
//! draw takes n of the n seeds of each task with replacement and shifts each task by a normal error of its questions.
//! Percentile intervals of such draws are too narrow for few seeds and never leave the range of the data (with 3 seeds
//! they contained the true value in 88% of simulated reports), so the interval is a multiple of the standard deviation
//! of the draws.

mod draws;

use std::ops::RangeInclusive;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub use self::draws::normal;
use self::draws::{DrawnPair, DrawnScores};
use super::auc::auc;
use super::student::t_quantile;

/// Number of bootstrap draws of an interval.
const DRAWS: usize = 2000;
/// Number of draws of a probability of improvement; fewer, because there are many pairs.
const PAIR_DRAWS: usize = DRAWS / 4;
/// Seed of the draws, so that the same scores give the same interval.
const SEED: u64 = 0x7065_2d7a_6f6f;

/// Scores of one encoding on one task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskScores {
    /// Score of each seed, finite.
    pub seeds: Vec<f64>,
    /// Standard error of their mean due to the questions; 0 if unknown.
    pub question_error: f64,
}

/// A number with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaskEstimate {
    /// Value of the aggregate.
    pub value: f64,
    /// 95% interval; `None` if a task has one seed.
    pub ci95: Option<(f64, f64)>,
}

/// Mean of the middle half of the values: a quarter of them, rounded down, is cut at either end. NaN without values.
///
/// ```
/// # use stats::over_tasks::interquartile_mean;
/// assert_eq!(interquartile_mean(&mut [9.0, 1.0, 2.0, -50.0]), 1.5);
/// ```
pub fn interquartile_mean(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let cut = values.len() / 4;
    let middle = &values[cut..values.len() - cut];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// Returns the share of the values above a threshold.
fn share_above(values: &[f64], threshold: f64) -> f64 {
    values.iter().filter(|value| **value > threshold).count() as f64 / values.len() as f64
}

/// Returns the interquartile mean over all runs of all tasks, and the performance profile: for each threshold the
/// share of runs with a higher score, with pointwise intervals.
pub fn aggregate(tasks: &[TaskScores], thresholds: &[f64]) -> (TaskEstimate, Vec<TaskEstimate>) {
    let mut all: Vec<f64> = tasks.iter().flat_map(|task| task.seeds.iter().copied()).collect();
    let shares: Vec<f64> = thresholds.iter().map(|at| share_above(&all, *at)).collect();
    let mut together = DrawnScores::new(&all);
    let places: Vec<usize> = thresholds.iter().map(|at| together.place(*at)).collect();
    let fixed = !tasks.iter().any(|task| task.question_error > 0.0);
    let mean = interquartile_mean(&mut all);
    let (mut means, mut profiles) = (Vec::new(), vec![Vec::new(); thresholds.len()]);
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    for _ in 0..DRAWS {
        all.clear();
        let mut first = 0;
        for task in tasks {
            let shift = task.shift(&mut rng);
            let picks = task.picks(&mut rng);
            if fixed {
                together.add(picks, first);
                first += task.seeds.len();
            } else {
                all.extend(picks.map(|pick| task.seeds[pick] + shift));
            }
        }
        // Without shifts, scores are counted and need not be listed.
        let (mean, shares) = if fixed {
            together.summarize(&places)
        } else {
            let mean = interquartile_mean(&mut all);
            (mean, thresholds.iter().map(|at| share_above(&all, *at)).collect())
        };
        means.push(mean);
        profiles.iter_mut().zip(shares).for_each(|(profile, share)| profile.push(share));
    }
    let factor = half_width(tasks);
    let interval = |value, draws: Vec<f64>, bounds: &RangeInclusive<f64>| {
        TaskEstimate::of(value, &draws, factor, bounds)
    };
    let profile = shares.into_iter().zip(profiles);
    let profile = profile.map(|(share, draws)| interval(share, draws, &(0.0..=1.0)));
    let profile = profile.collect();
    (interval(mean, means, &(f64::NEG_INFINITY..=1.0)), profile)
}

/// Returns the mean over the tasks of the probability that a random run of `a` has a higher score than a random run
/// of `b`, where ties count half ([`auc`]). Both must have the same tasks in the same order.
pub fn probability_of_improvement(a: &[TaskScores], b: &[TaskScores]) -> Option<TaskEstimate> {
    let won: Option<Vec<f64>> = a.iter().zip(b).map(|(a, b)| auc(&a.seeds, &b.seeds)).collect();
    let won = won?;
    let mean = |won: &[f64]| won.iter().sum::<f64>() / won.len() as f64;
    let value = Some(mean(&won)).filter(|mean| mean.is_finite())?;
    let mut tasks: Vec<DrawnPair<'_>> =
        a.iter().zip(b).map(|(a, b)| DrawnPair::new(a, b)).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let draws = (0..PAIR_DRAWS)
        .map(|_| mean(&tasks.iter_mut().map(|task| task.draw(&mut rng)).collect::<Vec<_>>()));
    let draws: Vec<f64> = draws.collect();
    let factor = half_width(a).zip(half_width(b)).map(|(a, b)| a.max(b));
    let mut found = TaskEstimate::of(value, &draws, factor, &(0.0..=1.0));
    // Draws of a task whose runs are all won, all lost, or all tied have no spread.
    let unseen = |decided: &dyn Fn(&TaskScores, &TaskScores, f64) -> bool| {
        let own = || a.iter().zip(b).zip(&won).filter(|((a, b), won)| decided(a, b, **won));
        let pairs: usize = own().map(|((a, b), _)| a.seeds.len().min(b.seeds.len())).sum();
        own().count() as f64 / won.len() as f64 * largest_share_unseen(pairs)
    };
    // Pairs that do not tie may all be won, or all be lost: each is half a win more or less than a tie.
    let tied = 0.5 * unseen(&are_tied);
    if let Some((low, high)) = &mut found.ci95 {
        *low = low.min((value - unseen(&|_, _, won| won >= 1.0) - tied).max(0.0));
        *high = high.max((value + unseen(&|_, _, won| won <= 0.0) + tied).min(1.0));
    }
    Some(found)
}

/// Reports whether all runs of both have one score.
fn are_tied(a: &TaskScores, b: &TaskScores, _won: f64) -> bool {
    let mut scores = a.seeds.iter().chain(&b.seeds);
    scores.next().is_some_and(|first| scores.all(|score| score.total_cmp(first).is_eq()))
}

/// Returns the largest mean probability to lose over several tasks that all of `pairs` disjoint pairs of runs being won
/// leaves in a 95% interval: a mean probability p to win makes that no more likely than `p^pairs`, which is 2.5% at the
/// end. 0 without pairs. The same holds for pairs that tie.
fn largest_share_unseen(pairs: usize) -> f64 {
    if pairs == 0 { 0.0 } else { 1.0 - 0.025_f64.powf(1.0 / pairs as f64) }
}

impl TaskEstimate {
    /// Returns `value` with an interval of `factor` standard deviations of the draws on either side, within `bounds`.
    fn of(value: f64, draws: &[f64], factor: Option<f64>, bounds: &RangeInclusive<f64>) -> Self {
        let count = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let squares: f64 = draws.iter().map(|draw| (draw - mean).powi(2)).sum();
        let half = factor.map(|factor| factor * (squares / count).sqrt());
        let ends =
            |half: f64| ((value - half).max(*bounds.start()), (value + half).min(*bounds.end()));
        Self { value, ci95: half.filter(|half: &f64| half.is_finite()).map(ends) }
    }
}

/// Returns half of a 95% interval in standard deviations of the draws, `sqrt(n / (n - 1)) t(0.975, sum(n - 1) / 2)`
/// with the smallest n of a task. The first factor corrects the variance of the draws, which is too small by (n - 1)
/// / n (Hesterberg 2015, "What teachers should know about the bootstrap"); the degrees of freedom are halved because
/// an interquartile mean uses half of the runs. `None` if a task has one seed.
fn half_width(tasks: &[TaskScores]) -> Option<f64> {
    let n = tasks.iter().map(|task| task.seeds.len()).min().filter(|n| *n > 1)? as f64;
    let df: usize = tasks.iter().map(|task| task.seeds.len() - 1).sum();
    Some((n / (n - 1.0)).sqrt() * t_quantile(0.975, 0.5 * df as f64))
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    fn scores(seeds: &[f64]) -> TaskScores {
        TaskScores { seeds: seeds.to_vec(), question_error: 0.0 }
    }

    #[test]
    fn the_interquartile_mean_cuts_a_quarter_at_either_end() {
        // scipy.stats.trim_mean([...], 0.25)
        assert!((interquartile_mean(&mut [1.0, 2.0, 3.0]) - 2.0).abs() < 1e-12);
        let ten = &mut [0.0, 9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 50.0];
        assert!((interquartile_mean(ten) - 5.0).abs() < 1e-12, "2 of 10 at either end");
        assert!(interquartile_mean(&mut []).is_nan());
    }

    #[test]
    fn a_profile_falls_and_one_seed_has_no_interval() {
        let tasks = [scores(&[0.1, 0.2, 0.3]), scores(&[0.9, 1.0, 0.8])];
        let (mean, profile) = aggregate(&tasks, &[0.0, 0.25, 0.5, 0.95]);
        let shares: Vec<f64> = profile.iter().map(|at| at.value).collect();
        assert_eq!(shares, [1.0, 4.0 / 6.0, 0.5, 1.0 / 6.0]);
        // One of six is cut at either end: 0.2, 0.3, 0.8, 0.9.
        assert!((mean.value - 0.55).abs() < 1e-12);
        let (low, high) = mean.ci95.unwrap();
        assert!(0.3 < low && low < 0.5 && 0.6 < high && high < 0.8, "{low} {high}");
        assert_eq!(aggregate(&[scores(&[0.1]), scores(&[0.2, 0.3])], &[]).0.ci95, None);
        assert_eq!(aggregate(&tasks, &[0.5]), aggregate(&tasks, &[0.5]), "the same bits");
    }

    #[test]
    fn the_error_of_questions_widens_an_interval() {
        let tasks = |question_error| vec![TaskScores { seeds: vec![0.5; 5], question_error }; 4];
        assert_eq!(aggregate(&tasks(0.0), &[]).0.ci95, Some((0.5, 0.5)));
        let (low, high) = aggregate(&tasks(0.02), &[]).0.ci95.unwrap();
        assert!(high - low > 0.03, "four tasks: 0.01 each way and more, {low} {high}");
    }

    #[test]
    fn who_is_always_better_may_lose_as_often_as_the_pairs_allow() {
        let (a, b) = (vec![scores(&[0.8, 0.9, 1.0]); 3], vec![scores(&[0.1, 0.2, 0.3]); 3]);
        let found = probability_of_improvement(&a, &b).unwrap();
        // Nine wins in a row have a probability of 2.5% if each has one of 66.4%.
        let (low, high) = found.ci95.unwrap();
        assert!((found.value, high) == (1.0, 1.0) && (low.powi(9) - 0.025).abs() < 1e-12, "{low}");
        let lost = probability_of_improvement(&b, &a).unwrap();
        let (none_won, most) = lost.ci95.unwrap();
        assert!((lost.value, none_won) == (0.0, 0.0) && (most + low - 1.0).abs() < 1e-12);
        // Of two workloads one is won and one is lost outright: each may be wrong by what its three pairs allow.
        let [won, lost] = [scores(&[0.8, 0.9, 1.0]), scores(&[0.1, 0.2, 0.3])];
        let mixed = probability_of_improvement(&[won.clone(), lost.clone()], &[lost, won]).unwrap();
        let (low, high) = mixed.ci95.unwrap();
        let half = (1.0 - 0.025_f64.cbrt()) / 2.0;
        assert!((mixed.value - 0.5).abs() < 1e-12);
        assert!(
            (low - 0.5 + half).abs() < 1e-12 && (high - 0.5 - half).abs() < 1e-12,
            "{low} {high}"
        );
        // Six ties in a row have a probability of 2.5% if each has one of 54.1%.
        let tied = vec![scores(&[1.0; 3]); 2];
        let found = probability_of_improvement(&tied, &tied).unwrap();
        let half = (1.0 - 0.025_f64.powf(1.0 / 6.0)) / 2.0;
        let (low, high) = found.ci95.unwrap();
        assert!((found.value - 0.5).abs() < 1e-12);
        assert!((low - 0.5 + half).abs() < 1e-12 && (high - 0.5 - half).abs() < 1e-12);
        let level = probability_of_improvement(&a, &a).unwrap();
        let (low, high) = level.ci95.unwrap();
        assert!((level.value - 0.5).abs() < 1e-12 && low < 0.4 && high > 0.6);
        assert_eq!(probability_of_improvement(&[], &[]), None);
    }

    /// Draws one task of `probability_of_improvement` as its definition says.
    fn drawn(task: &TaskScores, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let n = task.seeds.len();
        let shift = if task.question_error > 0.0 { task.question_error * normal(rng) } else { 0.0 };
        (0..n).map(|_| task.seeds[rng.random_range(0..n)] + shift).collect()
    }

    #[test]
    fn counted_draws_are_those_of_the_definition_to_the_bit() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for round in 0..20 {
            let mut task = |n: usize| TaskScores {
                // Few distinct values, so that there are ties.
                seeds: (0..n).map(|_| f64::from(rng.random_range(-4..4)) / 4.0).collect(),
                question_error: f64::from(round % 3) * 0.05,
            };
            let (a, b) = ([task(3), task(5), task(9)], [task(4), task(5), task(2)]);
            let mut rng = ChaCha8Rng::seed_from_u64(SEED);
            let draws: Vec<f64> = (0..PAIR_DRAWS)
                .map(|_| {
                    let pairs = a.iter().zip(&b);
                    let won = pairs.map(|(a, b)| {
                        let drawn_a = drawn(a, &mut rng);
                        auc(&drawn_a, &drawn(b, &mut rng)).unwrap()
                    });
                    won.sum::<f64>() / 3.0
                })
                .collect();
            let factor = half_width(&a).unwrap().max(half_width(&b).unwrap());
            let found = probability_of_improvement(&a, &b).unwrap();
            let expected = TaskEstimate::of(found.value, &draws, Some(factor), &(0.0..=1.0));
            assert_eq!(found, expected);

            let mut rng = ChaCha8Rng::seed_from_u64(SEED);
            let (mut means, mut shares) = (Vec::new(), Vec::new());
            for _ in 0..DRAWS {
                let mut all: Vec<f64> = a.iter().flat_map(|task| drawn(task, &mut rng)).collect();
                shares.push(share_above(&all, 0.25));
                means.push(interquartile_mean(&mut all));
            }
            let factor = half_width(&a);
            let (mean, profile) = aggregate(&a, &[0.25]);
            assert_eq!(
                mean,
                TaskEstimate::of(mean.value, &means, factor, &(f64::NEG_INFINITY..=1.0))
            );
            assert_eq!(
                profile[0],
                TaskEstimate::of(profile[0].value, &shares, factor, &(0.0..=1.0))
            );
        }
    }
}

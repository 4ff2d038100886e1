//! Simulations of intervals and verdicts on artificial seeds with known truth. The numbers that METHODOLOGY.md
//! quotes are measured by these tests (`--nocapture` shows them).
#![expect(clippy::print_stdout, reason = "the measured numbers are what METHODOLOGY.md quotes")]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::ranking::{Ranking, Region};
use crate::frame::Frames;
use crate::record::{Metric, RunRecord};
use crate::stats::{Estimate, Paired, SeedSpread, decide, paired};
use crate::testkit::{TestCell, counted};

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    // Box and Muller; 1 - u is never 0.
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// Shares of intervals that hold the truth: t interval of the mean, bootstrap of the mean, bootstrap
/// of the median.
fn coverage(n: usize, repeats: u32) -> [f64; 3] {
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    let mut held = [0_u32; 3];
    for _ in 0..repeats {
        let values: Vec<f64> = (0..n).map(|_| 0.7 + 0.1 * normal(&mut rng)).collect();
        let estimate = Estimate::of(&values).unwrap();
        let bootstrap = estimate.bootstrap.unwrap();
        let intervals = [estimate.ci95.unwrap(), bootstrap.mean95, bootstrap.median95];
        for (held, (low, high)) in held.iter_mut().zip(intervals) {
            *held += u32::from(low <= 0.7 && 0.7 <= high);
        }
    }
    held.map(|held| f64::from(held) / f64::from(repeats))
}

#[test]
fn intervals_cover_as_methodology_says() {
    for (n, repeats, mean, median) in
        [(3, 4000, 0.75, 0.75), (5, 4000, 0.84, 0.94), (10, 1000, 0.90, 0.95)]
    {
        let [by_t, by_mean, by_median] = coverage(n, repeats);
        println!("n = {n}: t {by_t:.3}, bootstrap mean {by_mean:.3}, median {by_median:.3}");
        assert!((0.92..=0.97).contains(&by_t), "t interval at n = {n}: {by_t}");
        assert!((by_mean - mean).abs() < 0.02, "bootstrap of the mean at n = {n}: {by_mean}");
        assert!(
            (by_median - median).abs() < 0.02,
            "bootstrap of the median at n = {n}: {by_median}"
        );
    }
}

/// Values of each encoding, by seed.
type Values = [Vec<(u64, f64)>];

/// Draws values of `encodings` by seed, as a shared effect of the seed plus noise. No encoding is
/// better than another.
fn equals(rng: &mut ChaCha8Rng, encodings: usize, n: u64) -> Vec<Vec<(u64, f64)>> {
    let seeds: Vec<f64> = (0..n).map(|_| 0.05 * normal(rng)).collect();
    (0..encodings)
        .map(|_| {
            (0..n).zip(&seeds).map(|(s, shared)| (s, 0.5 + shared + 0.05 * normal(rng))).collect()
        })
        .collect()
}

fn all_pairs(values: &Values) -> Vec<Paired> {
    (0..values.len())
        .flat_map(|i| (i + 1..values.len()).map(move |j| (i, j)))
        .filter_map(|(i, j)| paired(&values[i], &values[j]))
        .collect()
}

fn against_the_best(values: &Values) -> Vec<Paired> {
    let mean = |v: &Vec<(u64, f64)>| v.iter().map(|(_, x)| x).sum::<f64>();
    let best = (0..values.len()).max_by(|a, b| mean(&values[*a]).total_cmp(&mean(&values[*b])));
    let best = best.unwrap();
    (0..values.len())
        .filter(|i| *i != best)
        .filter_map(|i| paired(&values[best], &values[i]))
        .collect()
}

/// Share of families of six equal encodings in which any two are called separable.
fn false_families(n: u64, family: fn(&Values) -> Vec<Paired>) -> f64 {
    const REPEATS: u32 = 3000;
    let mut rng = ChaCha8Rng::seed_from_u64(n);
    let mut wrong = 0;
    for _ in 0..REPEATS {
        let seen = family(&equals(&mut rng, 6, n));
        wrong += u32::from(decide(&seen, SeedSpread::Unimodal).iter().any(|c| c.separable));
    }
    f64::from(wrong) / f64::from(REPEATS)
}

#[test]
fn equal_encodings_are_called_separable_in_less_than_one_ranking_in_twenty() {
    for n in [3, 5, 9] {
        let rate = false_families(n, all_pairs);
        println!("n = {n}: {rate:.4} of rankings");
        assert!(rate <= 0.05, "n = {n}: {rate}");
    }
}

#[test]
fn correcting_for_the_comparisons_with_the_best_alone_would_not_do() {
    let rate = false_families(3, against_the_best);
    println!("against the best, n = 3: {rate:.4}");
    assert!(rate > 0.06, "{rate}");
}

#[test]
fn a_difference_of_many_standard_deviations_is_found_and_a_small_one_is_not() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut found = [0_u32; 2];
    for _ in 0..500 {
        for (found, shift) in found.iter_mut().zip([0.4, 0.05]) {
            let mut values = equals(&mut rng, 4, 5);
            for value in &mut values[0] {
                value.1 += shift;
            }
            let first = decide(&all_pairs(&values), SeedSpread::Unimodal)[0];
            *found += u32::from(first.separable && first.paired.mean_difference > 0.0);
        }
    }
    println!("found at 5.7 and 0.7 standard deviations: {found:?} of 500");
    assert!(found[0] > 400 && found[1] < 50, "{found:?}");
}

/// Share of rankings of six encodings, each seed of which solves the task with chance `q`, in which
/// any two are called separable; with the verdicts of [`Ranking`], and with plain t tests.
fn lotteries(n: u64, q: f64) -> (f64, f64) {
    const REPEATS: u32 = 400;
    let mut rng = ChaCha8Rng::seed_from_u64(n);
    let (mut guarded, mut plain) = (0, 0);
    for _ in 0..REPEATS {
        let mut records: Vec<RunRecord> = Vec::new();
        for encoding in ["a", "b", "c", "d", "e", "f"] {
            for seed in 0..n {
                let noise = 0.01 * rng.random::<f64>();
                let value = if rng.random::<f64>() < q { 1.0 - noise } else { noise };
                let cell = TestCell::new("w", encoding, seed).beyond(value);
                records.push(cell.change(|r| r.task.chance = None).record());
            }
        }
        let frames = Frames::of(&records).unwrap();
        let none = std::collections::BTreeMap::new();
        let ranking = Ranking::new(&counted(&frames), &none, Region::Beyond, Metric::ExactMatch);
        let ranking = ranking.unwrap();
        guarded += u32::from(ranking.pairs.iter().any(|p| p.comparison.separable));
        let seen: Vec<Paired> = ranking.pairs.iter().map(|p| p.comparison.paired).collect();
        // Differences of the little noise are not the question: only those of solved and failed.
        plain += u32::from(
            decide(&seen, SeedSpread::Unimodal)
                .iter()
                .any(|c| c.separable && c.paired.mean_difference.abs() > 0.5),
        );
    }
    (f64::from(guarded) / f64::from(REPEATS), f64::from(plain) / f64::from(REPEATS))
}

#[test]
fn seeds_that_solve_by_luck_do_not_make_winners() {
    for (n, q) in [(3, 0.5), (3, 0.8), (5, 0.5)] {
        let (guarded, plain) = lotteries(n, q);
        println!("n = {n}, q = {q}: bounded {guarded:.3}, plain t {plain:.3}");
        assert!(guarded <= 0.05, "n = {n}, q = {q}: {guarded}");
    }
    assert!(lotteries(3, 0.5).1 > 0.1, "the bound would not be needed");
}

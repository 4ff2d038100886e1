//! Simulations of intervals and verdicts on artificial seeds with known truth. They measure the numbers that
//! METHODOLOGY.md quotes (`--nocapture` prints them).
#![expect(clippy::print_stdout, reason = "the measured numbers are what METHODOLOGY.md quotes")]

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::contrast::{Contrast, ContrastSide, judge};
use super::evaluated::SeedRun;
use super::ranking::Ranking;
use records::Metric;
use records::settings::Region;
use records::testkit::TestCell;
use stats::over_tasks::{TaskScores, aggregate, normal};
use stats::{Estimate, LEVEL, Paired, QuestionError, decide, holm, paired};

/// Measures coverage: the shares of t intervals of the mean, bootstrap intervals of the mean and bootstrap intervals
/// of the median that contain the true value.
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

/// Draws the values of `encodings` equally good encodings by seed: a shared random effect of the seed plus noise.
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

/// Measures the shares of families of six equal encodings in which any two are called separable: by the verdicts of
/// [`decide`], and by Holm's correction of plain t tests.
fn false_families(n: u64, family: fn(&Values) -> Vec<Paired>) -> [f64; 2] {
    const REPEATS: u32 = 3000;
    let mut rng = ChaCha8Rng::seed_from_u64(n);
    let mut wrong = [0; 2];
    for _ in 0..REPEATS {
        let seen = family(&equals(&mut rng, 6, n));
        let plain: Vec<f64> = seen.iter().filter_map(|pair| pair.p_t).collect();
        wrong[0] += u32::from(decide(&seen).iter().any(|c| c.separable));
        wrong[1] += u32::from(holm(&plain).iter().any(|p| *p <= LEVEL));
    }
    wrong.map(|wrong| f64::from(wrong) / f64::from(REPEATS))
}

#[test]
fn equal_encodings_are_called_separable_in_less_than_one_ranking_in_twenty() {
    for n in [3, 5, 9] {
        let [rate, plain] = false_families(n, all_pairs);
        println!("n = {n}: {rate:.4} of rankings, {plain:.4} by plain t tests");
        assert!(rate <= 0.05, "n = {n}: {rate}");
    }
}

#[test]
fn correcting_for_the_comparisons_with_the_best_alone_would_not_do() {
    let [_, rate] = false_families(3, against_the_best);
    println!("against the best, n = 3: {rate:.4}");
    assert!(rate > 0.06, "{rate}");
}

/// Encodings of a report, as in the zoo; the last one is the control.
const ENCODINGS: usize = 30;
/// Planned comparisons of the claims of a report, as in the zoo.
const CLAIMED: usize = 34;

/// Shares of simulated reports with a difference.
#[derive(Debug)]
struct Shares {
    /// An encoding differs from the control.
    contrasts: f64,
    /// An encoding has a rank behind the first.
    ranks: f64,
    /// A claim holds or is contradicted.
    claims: f64,
}

/// Measures in how many of `repeats` reports a difference is found at eight seeds, where the first encoding is better than
/// 29 equal ones by `shift` standard deviations of a difference, and so is that of the first claim. With a shift, only that
/// difference counts, otherwise any.
fn differences(repeats: u32, shift: f64) -> Shares {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let by = shift * 0.05 * 2.0_f64.sqrt();
    let mut names: Vec<String> = (1..ENCODINGS).map(|number| format!("e{number}")).collect();
    names.push("rope".to_owned());
    let (mut contrasts, mut ranks, mut claims) = (0, 0, 0);
    for _ in 0..repeats {
        let mut values = equals(&mut rng, ENCODINGS, 8);
        values[0].iter_mut().for_each(|(_, value)| *value += by);
        let cell = |name: &str, (seed, value): (u64, f64)| {
            SeedRun::of(&TestCell::new("w", name, seed).beyond(0.3 + value).record())
        };
        let each = names.iter().zip(&values);
        let runs: Vec<SeedRun> =
            each.flat_map(|(name, own)| own.iter().map(|own| cell(name, *own))).collect();
        let ranking = Ranking::new(&runs, &BTreeMap::new(), Region::Both, Metric::ExactMatch);
        let found = |pair: &&super::ranking::RankedPair| {
            pair.comparison.separable && (shift == 0.0 || pair.better == names[0])
        };
        contrasts += u32::from(ranking.contrasts("rope").iter().any(|pair| found(&pair)));
        let behind =
            |name: &str| ranking.results.iter().any(|r| r.encoding == name && r.group > Some(1));
        let is_behind =
            if shift == 0.0 { names.iter().any(|name| behind(name)) } else { behind("rope") };
        ranks += u32::from(is_behind);
        let mut family: Vec<Contrast> = Vec::new();
        for claim in 0..CLAIMED {
            let mut two = equals(&mut rng, 2, 8);
            let by = if claim == 0 { by } else { 0.0 };
            two[0].iter_mut().for_each(|(_, value)| *value += by);
            let side = |by_seed| ContrastSide { by_seed, above_chance: None };
            let (a, b) = (side(&two[0]), side(&two[1]));
            family.extend(Contrast::of(Metric::ExactMatch, &a, &b, None));
        }
        let decided = judge(&family, CLAIMED);
        claims += u32::from(if shift == 0.0 {
            decided.iter().any(|claim| claim.separable)
        } else {
            decided[0].separable
        });
    }
    let [contrasts, ranks, claims] =
        [contrasts, ranks, claims].map(|found| f64::from(found) / f64::from(repeats));
    Shares { contrasts, ranks, claims }
}

#[test]
fn contrasts_ranks_and_claims_are_wrong_in_less_than_one_report_in_twenty() {
    let Shares { contrasts, ranks, claims } = differences(2000, 0.0);
    println!("n = 8, equal: contrasts {contrasts:.4}, ranks {ranks:.4}, claims {claims:.4}");
    for wrong in [contrasts, ranks, claims] {
        assert!(wrong > 0.0 && wrong <= LEVEL, "{wrong}");
    }
}

#[test]
fn a_difference_of_two_deviations_is_found_as_methodology_says() {
    let Shares { contrasts, ranks, claims } = differences(400, 2.0);
    println!(
        "n = 8, two deviations: contrasts {contrasts:.3}, ranks {ranks:.3}, claims {claims:.3}"
    );
    for power in [contrasts, claims] {
        assert!((0.6..0.8).contains(&power), "{power}");
    }
    // All pairs of 30 encodings are one family.
    assert!((0.1..0.25).contains(&ranks), "{ranks}");
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
            let first = decide(&all_pairs(&values))[0];
            *found += u32::from(first.separable && first.paired.mean_difference > 0.0);
        }
    }
    println!("found at 5.7 and 0.7 standard deviations: {found:?} of 500");
    assert!(found[0] > 400 && found[1] < 50, "{found:?}");
}

/// Measures the share of families of six equal encodings in which any two are called separable, if each seed solves
/// the task with probability `q`: `high` plus a little noise, or else `low`.
fn lotteries(n: u64, q: f64, [low, high]: [f64; 2]) -> f64 {
    const REPEATS: u32 = 1500;
    let mut rng = ChaCha8Rng::seed_from_u64(n);
    let mut wrong = 0;
    for _ in 0..REPEATS {
        let mut seed = |seed| {
            let noise = 0.01 * rng.random::<f64>();
            (seed, noise + if rng.random::<f64>() < q { high } else { low })
        };
        let values: Vec<Vec<(u64, f64)>> =
            (0..6).map(|_| (0..n).map(&mut seed).collect()).collect();
        wrong += u32::from(decide(&all_pairs(&values)).iter().any(|c| c.separable));
    }
    f64::from(wrong) / f64::from(REPEATS)
}

#[test]
fn seeds_that_solve_by_luck_do_not_make_winners() {
    // Modes far apart and near each other, from three seeds to twelve.
    for n in 3..=12 {
        let rates = [0.5, 0.8].map(|q| {
            [[0.0, 0.98], [0.5, 0.8]].map(|modes| {
                let rate = lotteries(n, q, modes);
                assert!(rate <= 0.05, "n = {n}, q = {q}, {modes:?}: {rate}");
                rate
            })
        });
        println!("bimodal, n = {n}: false families {rates:.3?}");
    }
}

/// Draws the answers of an encoding, `[seed][question]`: right if the sum of normal effects of the seed, the question
/// and the remainder, with these deviations, is above `bar`.
fn answers(
    rng: &mut ChaCha8Rng,
    questions: &[f64],
    n: usize,
    [seed, question, rest]: [f64; 3],
    bar: f64,
) -> Vec<Vec<f64>> {
    let own: Vec<f64> = questions.iter().map(|shared| shared + question * normal(rng)).collect();
    (0..n)
        .map(|_| {
            let ability = seed * normal(rng);
            let right = |q: &f64| f64::from(u8::from(ability + q + rest * normal(rng) > bar));
            own.iter().map(right).collect()
        })
        .collect()
}

fn means(answers: &[Vec<f64>]) -> Vec<(u64, f64)> {
    let mean = |seed: &Vec<f64>| seed.iter().sum::<f64>() / seed.len() as f64;
    (0..).zip(answers.iter().map(mean)).collect()
}

#[test]
fn intervals_with_questions_cover_other_seeds_and_other_questions() {
    for (n, m, repeats) in [(3, 50, 1500), (5, 100, 1000), (12, 100, 500)] {
        let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
        let mut held = [0_u32; 2];
        for _ in 0..repeats {
            // Of the variance a twentieth is the seed's and half is the question's; half of the answers are right.
            let sizes = [0.05_f64.sqrt(), 0.5_f64.sqrt(), 0.45_f64.sqrt()];
            let found = answers(&mut rng, &vec![0.0; m], n, sizes, 0.0);
            let values: Vec<f64> = means(&found).into_iter().map(|(_, value)| value).collect();
            let seeds = Estimate::of(&values).unwrap();
            let both = seeds.with_questions(QuestionError::of(&[found], true).unwrap());
            for (held, estimate) in held.iter_mut().zip([seeds, both]) {
                let (low, high) = estimate.ci95.unwrap();
                *held += u32::from(low <= 0.5 && 0.5 <= high);
            }
        }
        let [seeds, both] = held.map(|held| f64::from(held) / f64::from(repeats));
        println!("n = {n}, {m} questions: over seeds {seeds:.3}, over both {both:.3}");
        assert!(both >= 0.93, "n = {n}: {both}");
        assert!(
            n < 12 || seeds < both - 0.03,
            "the questions would not matter at n = {n}: {seeds}"
        );
    }
}

#[test]
fn few_questions_do_not_make_winners() {
    // Six equal encodings, each good at questions of its own; 60 questions, half of them right.
    for n in [3, 4, 5, 8, 12] {
        let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
        let mut wrong = [0_u32; 2];
        let repeats = 300;
        for _ in 0..repeats {
            let questions: Vec<f64> = (0..60).map(|_| 0.6 * normal(&mut rng)).collect();
            let all: Vec<Vec<Vec<f64>>> =
                (0..6).map(|_| answers(&mut rng, &questions, n, [0.05, 0.6, 0.5], 0.0)).collect();
            let mut families = [Vec::new(), Vec::new()];
            for (i, a) in all.iter().enumerate() {
                for b in &all[i + 1..] {
                    let difference = paired(&means(a), &means(b)).unwrap();
                    let minus = |(a, b): (&Vec<f64>, &Vec<f64>)| {
                        a.iter().zip(b).map(|(a, b)| a - b).collect()
                    };
                    let answers: Vec<Vec<f64>> = a.iter().zip(b).map(minus).collect();
                    let error = QuestionError::of(&[answers], true).unwrap();
                    families[0].push(difference);
                    families[1].push(difference.with_questions(error));
                }
            }
            for (wrong, family) in wrong.iter_mut().zip(&families) {
                *wrong += u32::from(decide(family).iter().any(|c| c.separable));
            }
        }
        let [seeds, both] = wrong.map(|wrong| f64::from(wrong) / f64::from(repeats));
        println!(
            "60 questions, n = {n}: false families over seeds {seeds:.3}, over both {both:.3}"
        );
        assert!(both <= 0.05, "n = {n}: {both}");
        assert!(n < 5 || seeds > 0.2, "the questions would not matter at n = {n}: {seeds}");
    }
}

#[test]
fn intervals_of_aggregates_cover() {
    const TASKS: [f64; 4] = [0.2, 0.5, 0.6, 0.9];
    for (n, repeats) in [(3, 300), (5, 200), (10, 100)] {
        let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
        let mut draw = || -> Vec<TaskScores> {
            let mut seeds = |mean: &f64| (0..n).map(|_| mean + 0.1 * normal(&mut rng)).collect();
            TASKS
                .iter()
                .map(|mean| TaskScores { seeds: seeds(mean), question_error: 0.0 })
                .collect()
        };
        // The aim is the mean of the aggregate itself, which the draws of many reports tell.
        let value = |tasks: &[TaskScores]| {
            let mut all: Vec<f64> = tasks.iter().flat_map(|task| task.seeds.clone()).collect();
            stats::over_tasks::interquartile_mean(&mut all)
        };
        let truth = (0..20_000).map(|_| value(&draw())).sum::<f64>() / 20_000.0;
        let holds = |_: &u32| {
            let (low, high) = aggregate(&draw(), &[]).0.ci95.unwrap();
            low <= truth && truth <= high
        };
        let held = f64::from((0..repeats).filter(holds).count() as u32) / f64::from(repeats);
        println!("interquartile mean over 4 tasks, n = {n}: {held:.3} of intervals");
        assert!((0.91..=0.995).contains(&held), "n = {n}: {held}");
    }
}

//! Expected values in `fixtures/statistics.json`, computed by scipy and statsmodels.

use serde::Deserialize;

use super::student::t_test;
use super::{Estimate, holm, paired};

#[derive(Deserialize)]
struct Fixture {
    samples: Vec<SampleFixture>,
    pairs: Vec<PairFixture>,
    holm: Vec<Holm>,
    t_tests: Vec<TTest>,
}

#[derive(Deserialize)]
struct SampleFixture {
    name: String,
    values: Vec<f64>,
    mean: f64,
    std: f64,
    ci95: (f64, f64),
    median: f64,
    mean_bootstrap: Interval,
    median_bootstrap: Interval,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Interval {
    Exact((f64, f64)),
    Drawn((f64, f64)),
}

#[derive(Deserialize)]
struct PairFixture {
    name: String,
    a: Vec<f64>,
    b: Vec<f64>,
    mean_difference: f64,
    ci95: (f64, f64),
    p_t: f64,
    p_permutation: f64,
    hedges_g: f64,
}

#[derive(Deserialize)]
struct Holm {
    name: String,
    p: Vec<f64>,
    corrected: Vec<f64>,
}

#[derive(Deserialize)]
struct TTest {
    mean: f64,
    std: f64,
    n: u32,
    p: f64,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("../fixtures/statistics.json")).unwrap()
}

/// Tolerance for differences in the order of summation; both sides compute in f64.
const ROUNDING: f64 = 1e-10;

fn close(what: &str, got: f64, expected: f64, tolerance: f64) {
    assert!(
        got.is_finite() && (got - expected).abs() <= tolerance * expected.abs().max(1e-6),
        "{what}: {got}, expected {expected}"
    );
}

fn ends(what: &str, got: (f64, f64), expected: (f64, f64), tolerance: f64) {
    close(&format!("{what}, low"), got.0, expected.0, tolerance);
    close(&format!("{what}, high"), got.1, expected.1, tolerance);
}

#[test]
fn estimates_equal_scipys() {
    for s in fixture().samples {
        let estimate = Estimate::of(&s.values).unwrap();
        close(&s.name, estimate.mean, s.mean, ROUNDING);
        close(&s.name, estimate.median, s.median, ROUNDING);
        close(&s.name, estimate.std.unwrap(), s.std, ROUNDING);
        ends(&s.name, estimate.ci95.unwrap(), s.ci95, 1e-9);
    }
}

#[test]
fn bootstrap_intervals_equal_those_of_every_draw() {
    let (mut exact, mut drawn) = (0, 0);
    for s in fixture().samples {
        let bootstrap = Estimate::of(&s.values).unwrap().bootstrap.unwrap();
        for (got, expected) in
            [(bootstrap.mean95, s.mean_bootstrap), (bootstrap.median95, s.median_bootstrap)]
        {
            match expected {
                Interval::Exact(expected) => {
                    exact += 1;
                    ends(&s.name, got, expected, ROUNDING);
                }
                // scipy draws as well, and interpolates between draws: the ends agree to a share of
                // the spread.
                Interval::Drawn(expected) => {
                    drawn += 1;
                    for (got, expected) in [(got.0, expected.0), (got.1, expected.1)] {
                        assert!(
                            (got - expected).abs() <= 0.03 * s.std,
                            "{}: {got} {expected}",
                            s.name
                        );
                    }
                }
            }
        }
    }
    assert_eq!((exact, drawn), (12, 6));
}

#[test]
fn paired_comparisons_equal_scipys() {
    for p in fixture().pairs {
        let seeds = |values: &[f64]| (0..).zip(values.iter().copied()).collect::<Vec<_>>();
        let c = paired(&seeds(&p.a), &seeds(&p.b)).unwrap();
        close(&p.name, c.mean_difference, p.mean_difference, ROUNDING);
        ends(&p.name, c.ci95.unwrap(), p.ci95, 1e-9);
        close(&p.name, c.p_t.unwrap(), p.p_t, 1e-9);
        close(&p.name, c.p_sign_flip, p.p_permutation, ROUNDING);
        close(&p.name, c.effect.unwrap(), p.hedges_g, 1e-9);
    }
}

#[test]
fn holms_correction_equals_that_of_statsmodels() {
    for h in fixture().holm {
        let got = holm(&h.p);
        assert_eq!(got.len(), h.corrected.len());
        for (got, expected) in got.into_iter().zip(h.corrected) {
            close(&h.name, got, expected, ROUNDING);
        }
    }
}

#[test]
fn tails_keep_their_digits() {
    for t in fixture().t_tests {
        close(&format!("{} {} {}", t.mean, t.std, t.n), t_test(t.mean, t.std, t.n), t.p, 1e-9);
    }
}

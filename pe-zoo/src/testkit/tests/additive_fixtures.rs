//! Comparison of the scalar references of additive and mixing encodings with independent numbers
//! (`fixtures/SOURCE.md`).

use serde_json::Value;

use super::fixtures::{assert_row, flat, input, printed};
use crate::reference::{Heads, dape, distance, grape};
use crate::testkit::close::{self, PRINTED, Tolerance};

/// Tolerance for sums of a few products in f64, printed with fifteen decimals.
const F64: Tolerance = Tolerance { absolute: 1e-13, relative: 1e-13 };

const SLOPES: [f64; 2] = [0.0625, 0.003_906_25];

#[track_caller]
fn assert_additive(name: &str, actual: &Heads) {
    let fixture: Value =
        serde_json::from_str(include_str!("../../../fixtures/additive.json")).unwrap();
    let expected = printed(&fixture[name]);
    close::compare(&flat(actual), &expected, F64).unwrap_or_else(|e| panic!("{name}: {e}"));
}

/// Returns the sequence `scale * f(start + step * n)` for `n` in `0..len`.
fn wave(f: fn(f64) -> f64, start: f64, step: f64, len: u8, scale: f64) -> Vec<f64> {
    (0..len).map(|n| scale * f(start + step * f64::from(n))).collect()
}

/// Returns the table `[a][b]` of `scale * f(start + steps[0] a + steps[1] b)`.
fn table(f: fn(f64) -> f64, start: f64, steps: [f64; 2], [a, b]: [u8; 2]) -> Vec<Vec<f64>> {
    (0..a).map(|row| wave(f, start + steps[0] * f64::from(row), steps[1], b, 1.0)).collect()
}

#[test]
fn kerple_s_two_kernels() {
    let input = input();
    let (a, p) = ([0.5; 2], [1.5; 2]);
    let row = |bias| input.biased(&bias);
    assert_row("kerple_log_p1.5_a0.5", &row(distance::kerple_logarithmic(&input, &a, &p)));
    assert_row("kerple_power_a0.5_p1.5", &row(distance::kerple_power(&input, &a, &p)));
}

#[test]
fn sandwich_of_four_channels() {
    assert_row("sandwich_dbar4", &input().biased(&distance::sandwich(&input(), 4)));
}

fn fire(initial_len: f64, negative_slope: f64) -> distance::ScalarFire {
    distance::ScalarFire {
        c: -0.2,
        threshold: -0.5 * initial_len,
        eps: 1e-6,
        hidden: wave(f64::sin, 1.0, 1.0, 3, 1.0)
            .into_iter()
            .zip(wave(f64::cos, 0.2, 1.0, 3, 0.2))
            .collect(),
        negative_slope,
        outer: (0..2u8).map(|h| wave(f64::cos, 1.0 + f64::from(h), 1.0, 3, 0.7)).collect(),
        outer_bias: wave(f64::sin, 0.5, 1.0, 2, 0.1),
    }
}

#[test]
fn fire_on_both_sides_of_the_initial_length() {
    assert_additive("fire_bias_within_the_initial_length", &fire(512.0, 0.0).bias(&input()));
    assert_additive("fire_bias_past_the_initial_length", &fire(5.0, 0.0).bias(&input()));
}

/// Values tabulated with nine decimals; the last one of (10, 0) was misprinted in the table.
#[test]
fn fire_s_normalised_distance_at_its_defaults() {
    let fire = distance::ScalarFire { c: 0.1, threshold: 512.0, ..fire(512.0, 0.0) };
    for (i, j, expected) in [
        (0, 0, 0.0),
        (1, 0, 0.024_098_146),
        (10, 0, 0.175_254_753),
        (511, 0, 0.999_514_916),
        (1023, 0, 0.999_999_784),
        (1023, 1022, 0.020_551_447),
        (1023, 512, 0.852_409_056),
    ] {
        let u = fire.normalised(i, j);
        assert!((u - expected).abs() < 1e-9, "{i} {j}: {u}");
    }
}

/// Returns the weights of the convolution, `[a][tap][b]`.
fn taps(f: fn(f64) -> f64, steps: [f64; 2], [a, taps, b]: [u8; 3]) -> Vec<Vec<Vec<f64>>> {
    (0..a)
        .map(|row| {
            (0..taps)
                .map(|tap| {
                    let start = 1.0 + steps[0] * f64::from(row) + 0.5 * f64::from(tap);
                    wave(f, start, steps[1], b, 0.3)
                })
                .collect()
        })
        .collect()
}

fn mixer(planes: u8, width: u8) -> dape::ScalarMixer {
    dape::ScalarMixer {
        inner: taps(f64::sin, [1.0, 2.0], [4, width, planes]),
        inner_bias: wave(f64::cos, 0.3, 1.0, 4, 0.2),
        outer: taps(f64::cos, [1.0, 1.0], [2, width, 4]),
        outer_bias: wave(f64::sin, 0.7, 1.0, 2, 0.1),
    }
}

#[test]
fn dape_over_alibi_without_the_network_s_biases() {
    let input = input();
    let mixer =
        dape::ScalarMixer { inner_bias: vec![0.0; 4], outer_bias: vec![0.0; 2], ..mixer(4, 1) };
    let base = distance::alibi(&input, &SLOPES);
    assert_row("dape_alibi_w4", &dape::logits(&input, Some(&base), &mixer));
}

#[test]
fn dape_over_nothing_and_over_learned_biases() {
    let input = input();
    assert_additive("dape_none", &dape::logits(&input, None, &mixer(2, 1)));
    let kerple = distance::kerple_logarithmic(&input, &[0.5, 0.2], &[1.5, 0.7]);
    assert_additive("dape_kerple", &dape::logits(&input, Some(&kerple), &mixer(4, 1)));
    let fire = fire(512.0, 0.01).bias(&input);
    assert_additive("dape_fire", &dape::logits(&input, Some(&fire), &mixer(4, 1)));
}

#[test]
fn dape_s_convolution_as_in_a_sequence_that_goes_on() {
    let input = input();
    let base = distance::alibi(&input, &SLOPES);
    assert_additive("dape_v2_alibi", &dape::logits(&input, Some(&base), &mixer(4, 3)));
}

fn norm() -> grape::ScalarNorm {
    grape::ScalarNorm { q: wave(f64::cos, 0.2, 0.5, 4, 1.0), k: wave(f64::cos, 0.6, 0.5, 4, 1.0) }
}

#[test]
fn grape_m_with_and_without_the_normalisation_after_it() {
    let input = input();
    let stored = wave(f64::sin, 0.5, 2.0, 2, 8.0);
    let frequencies = vec![stored.iter().map(|x| (x / 16.0).exp()).collect(); 2];
    let plain = grape::multiplicative(&input, &frequencies, None).plain();
    assert_additive("grape_multiplicative", &plain);
    let normed = grape::multiplicative(&input, &frequencies, Some(&norm())).plain();
    assert_additive("grape_multiplicative_qk_norm", &normed);
}

#[test]
fn grape_m_with_steps_from_the_tokens() {
    let weight = (0..8u8).map(|c| vec![(0.2 + f64::from(c)).sin()]).collect();
    let frequencies =
        wave(f64::sin, 0.5, 2.0, 2, 0.5).into_iter().map(f64::exp).collect::<Vec<_>>();
    let logits = grape::contextual(&input(), &weight, &[-2.0], &frequencies, Some(&norm())).plain();
    assert_additive("grape_contextual", &logits);
}

#[test]
fn grape_a_with_each_gate() {
    let key = Some(table(f64::sin, 0.1, [1.0, 0.7], [2, 4]));
    let query = Some(table(f64::cos, 0.4, [1.0, 0.7], [2, 4]));
    let omega = wave(f64::cos, 0.3, 1.0, 2, 1.0);
    for (name, gates) in [
        ("grape_additive_key", grape::ScalarGates { key: key.clone(), query: None }),
        ("grape_additive_query", grape::ScalarGates { key: None, query: query.clone() }),
        ("grape_additive_both", grape::ScalarGates { key, query }),
    ] {
        assert_additive(name, &grape::additive(&input(), &SLOPES, &omega, &gates, None));
    }
}

#[test]
fn grape_ap_from_the_layer_s_input() {
    // [channel][head * 6 + d], the transposed weight of the script.
    let projection = table(f64::sin, 0.3, [0.91, 0.37], [8, 12]);
    assert_additive("grape_path", &grape::path(&input(), &projection, &SLOPES, Some(&norm())));
}

#[test]
fn grape_ap_s_bias_from_given_vectors() {
    // The row rotates in the opposite direction, which equals this one with channels reversed.
    let p = (0..2u8)
        .map(|h| {
            (0..5u8)
                .map(|t| {
                    let start = 0.1 + 0.3 * f64::from(h) + 0.2 * f64::from(t);
                    wave(f64::sin, start, 0.5, 4, 1.0).into_iter().rev().collect()
                })
                .collect()
        })
        .collect();
    let row = grape::path_bias(&input(), &p, &SLOPES);
    let fixture: Value =
        serde_json::from_str(include_str!("../../../fixtures/vectors.json")).unwrap();
    let expected = printed(&fixture["vectors"]["grape_ap_bias_core"]);
    // The row's normalisation has no epsilon; this one has 1.2e-7.
    let tolerance = Tolerance { absolute: 1e-7, ..PRINTED };
    close::compare(&flat(&row), &expected, tolerance).unwrap();
}

//! Comparison of the scalar references with published numbers (`fixtures/SOURCE.md`).

mod rotary;

use serde_json::Value;

use crate::reference::cope::GateSide;
use crate::reference::{Heads, ScalarInput, cope, decay, distance, path, relative};
use crate::score::{Current, LogitScaling, Remainder};
use crate::testkit::close::{self, PRINTED};
use crate::zoo::alibi::Slopes;

const HEAD_DIM: usize = 4;

fn wave(f: fn(f64) -> f64, start: f64, [h, t, d]: [f64; 3]) -> Heads {
    (0..2)
        .map(|head| {
            (0..5)
                .map(|token| {
                    (0..HEAD_DIM as u8)
                        .map(|c| {
                            f(start + h * f64::from(head) + t * f64::from(token) + d * f64::from(c))
                        })
                        .collect()
                })
                .collect()
        })
        .collect()
}

/// Makes the problem that `meta` of the fixture describes.
pub(super) fn input() -> ScalarInput {
    ScalarInput {
        layer: 0,
        q: wave(f64::sin, 1.0, [0.7, 0.31, 0.53]),
        k: wave(f64::cos, 0.4, [0.9, 0.23, 0.61]),
        v: wave(f64::sin, 0.2, [0.5, 0.17, 0.29]),
        x: (0..5)
            .map(|t| {
                (0..8).map(|d| (0.3 + 0.41 * f64::from(t) + 0.19 * f64::from(d)).cos()).collect()
            })
            .collect(),
        positions: (0..5).collect(),
        unit: 1.0,
        first_row: 0,
    }
}

fn table() -> Vec<Vec<f64>> {
    (0..HEAD_DIM)
        .map(|d| (0..5).map(|n| 0.1 * (1.0 + 0.7 * f64::from(n) + 0.4 * d as f64).sin()).collect())
        .collect()
}

pub(super) fn flat(heads: &Heads) -> Vec<f64> {
    heads.iter().flatten().flatten().copied().collect()
}

pub(super) fn printed(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(printed).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

#[track_caller]
pub(super) fn assert_row(name: &str, actual: &Heads) {
    assert_values(name, &flat(actual));
}

#[track_caller]
pub(super) fn assert_values(name: &str, actual: &[f64]) {
    let fixture: Value =
        serde_json::from_str(include_str!("../../../fixtures/vectors.json")).unwrap();
    let expected = printed(&fixture["vectors"][name]);
    close::compare(actual, &expected, PRINTED).unwrap_or_else(|e| panic!("{name}: {e}"));
}

#[test]
fn nope_is_the_plain_dot_product() {
    struct Plain;
    impl crate::reference::ScalarReference for Plain {}
    assert_row("nope", &crate::reference::ScalarReference::scalar_logits(&Plain, &input()));
}

#[test]
fn alibi_with_the_authors_slopes() {
    assert_row("alibi", &distance::alibi_logits(&input(), &Slopes::Authors.values(2)));
}

#[test]
fn shaw_relative_as_the_baseline_of_cope() {
    assert_row("shaw_rel_code", &relative::logits(&input(), &table(), relative::Past::Nothing));
}

#[test]
fn cope_positions_and_three_forms_of_its_logits() {
    let input = input();
    let logits = |convention, side| cope::logits(&input, &table(), convention, side);
    let positions = cope::positions(&input, 4.0, LogitScaling::Code, GateSide::Keys);
    assert_row("cope_positions", &positions);
    assert_row("cope_code_default", &logits(LogitScaling::Code, GateSide::Keys));
    assert_row("cope_nodiv_paper", &logits(LogitScaling::Listing, GateSide::Keys));
    assert_row("cope_val_gates_code", &logits(LogitScaling::Code, GateSide::Values));
    // Separate keys equal to the values give the same gates.
    assert_row("cope_val_gates_code", &logits(LogitScaling::Code, GateSide::Own(&input.v)));
}

#[test]
fn stick_breaking_weights_and_remainders() {
    let mut weights =
        decay::stick_breaking(&input().plain(), Current::Excluded, Remainder::OwnToken);
    let remainders = weights.iter_mut().map(|head| {
        let own = head.iter_mut().map(|row| row.pop().unwrap()).collect();
        vec![own]
    });
    let remainders = remainders.collect();
    assert_row("stick_breaking_weights_strict", &weights);
    assert_row("stick_breaking_remainder", &remainders);
}

/// Returns the values `f(h, t)` for two heads and five tokens.
fn per_token(f: fn(f64, f64) -> f64) -> Vec<Vec<f64>> {
    (0..2).map(|h| (0..5).map(|t| f(f64::from(h), f64::from(t))).collect()).collect()
}

#[test]
fn fox_with_gates_that_follow_a_sine() {
    // A projection that picks one channel per head.
    let gate_logits = per_token(|h, t| 0.5 + 0.3 * (t + h).sin());
    let x = (0..5).map(|t| vec![gate_logits[0][t], gate_logits[1][t]]).collect();
    let weight = vec![vec![1.0, 0.0], vec![0.0, 1.0]];
    let log_forget = decay::log_forget(&x, &weight, &[0.0, 0.0]);
    assert_row("fox", &decay::forgetting(&input(), &log_forget));
}

#[test]
fn path_with_directions_that_follow_a_cosine() {
    let w = wave(f64::cos, 0.8, [0.6, 0.37, 0.47])
        .into_iter()
        .map(|head| {
            head.into_iter()
                .map(|u| {
                    let norm = crate::reference::dot(&u, &u).sqrt();
                    u.into_iter().map(|x| x / norm).collect()
                })
                .collect()
        })
        .collect();
    let beta = per_token(|h, t| 2.0 / (1.0 + (0.3 * t - 0.2 * h).exp()));
    assert_row("path", &path::logits(&input(), &w, &beta));
}

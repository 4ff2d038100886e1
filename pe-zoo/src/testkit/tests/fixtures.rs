//! The scalar references against published numbers (`fixtures/SOURCE.md`).

mod rotary;

use serde_json::Value;

use crate::reference::{Heads, ScalarInput, alibi, cope, relative, score};
use crate::score::Convention;
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

/// The problem that `meta` of the fixture states.
fn input() -> ScalarInput {
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
        first_row: 0,
    }
}

fn table() -> Vec<Vec<f64>> {
    (0..HEAD_DIM)
        .map(|d| (0..5).map(|n| 0.1 * (1.0 + 0.7 * f64::from(n) + 0.4 * d as f64).sin()).collect())
        .collect()
}

fn flat(heads: &Heads) -> Vec<f64> {
    heads.iter().flatten().flatten().copied().collect()
}

fn printed(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(printed).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

#[track_caller]
fn assert_row(name: &str, actual: &Heads) {
    let fixture: Value =
        serde_json::from_str(include_str!("../../../fixtures/vectors.json")).unwrap();
    let expected = printed(&fixture["vectors"][name]);
    close::compare(&flat(actual), &expected, PRINTED).unwrap_or_else(|e| panic!("{name}: {e}"));
}

#[test]
fn nope_is_the_plain_dot_product() {
    struct Plain;
    impl crate::reference::ScalarReference for Plain {}
    assert_row("nope", &crate::reference::ScalarReference::scalar_logits(&Plain, &input()));
}

#[test]
fn alibi_with_the_authors_slopes() {
    assert_row("alibi", &alibi::logits(&input(), &Slopes::Authors.values(2)));
}

#[test]
fn shaw_relative_as_the_baseline_of_cope() {
    assert_row("shaw_rel_code", &relative::logits(&input(), &table(), relative::Past::Nothing));
}

#[test]
fn cope_positions_and_three_forms_of_its_logits() {
    let input = input();
    let logits = |convention, gates| cope::logits(&input, &table(), convention, gates);
    assert_row("cope_positions", &cope::positions(&input, 5, Convention::Code, false));
    assert_row("cope_code_default", &logits(Convention::Code, false));
    assert_row("cope_nodiv_paper", &logits(Convention::Listing, false));
    assert_row("cope_val_gates_code", &logits(Convention::Code, true));
}

#[test]
fn stick_breaking_weights_leave_out_the_diagonal() {
    let mut weights = score::stick_breaking(&input());
    for (i, row) in weights.iter_mut().flat_map(|head| head.iter_mut().enumerate()) {
        assert_eq!(row.pop(), Some(0.0), "row {i}");
    }
    assert_row("stick_breaking_weights_strict", &weights);
}

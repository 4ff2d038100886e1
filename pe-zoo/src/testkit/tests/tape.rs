//! Tests of TAPE: published numbers of both readings, and identities over a stack of layers.

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::{Value, json};

use super::encoding;
use super::fixtures::{assert_row, assert_values, input};
use crate::encoding::PositionRequest;
use crate::reference::attention::softmax;
use crate::reference::tape::{self, Mixes, ScalarMaps, ScalarState};
use crate::reference::{ScalarInput, ScalarLayer, Tokens};
use crate::rotary::Scaling;
use crate::testkit::close::{self, F32, Tolerance};
use crate::testkit::problem::Problem;
use crate::testkit::randomise_by;
use crate::testkit::stack::Stack;
use crate::{AnyEncoding, Dims, Positions, Registry};

const DIMS: Dims = Dims { layers: 4, width: 18, heads: 3, head_dim: 6, train_len: 11, max_len: 33 };
const TOKENS: usize = 11;
const EXACT: Tolerance = Tolerance { absolute: 1e-10, relative: 1e-10 };

fn table(rows: u8, columns: u8, f: impl Fn(f64, f64) -> f64) -> Tokens {
    (0..rows).map(|r| (0..columns).map(|c| f(f64::from(r), f64::from(c))).collect()).collect()
}

/// Returns the weights from which the fixture's rows were computed (`fixtures/SOURCE.md`).
fn maps(full_mix: bool) -> ScalarMaps {
    let up = table(3, 2, |a, h| 0.3 * (1.0 + a + h).cos());
    let gate = table(3, 8, |a, c| 0.2 * (0.5 + a + 0.3 * c).sin());
    let down = table(2, 3, |h, a| 0.25 * (2.0 + h - a).sin());
    let attention = table(2, 2, |h, e| 0.2 * (1.0 + h + 2.0 * e).sin());
    ScalarMaps {
        mixes: Mixes::Heads,
        attention: Some([attention.clone(), attention]),
        full_mix,
        feed_forward: Some(([up.clone(), up], gate, [down.clone(), down])),
    }
}

#[test]
fn two_layers_in_both_readings() {
    let input = input();
    let start = tape::initial(&input.positions, 2, &[1.0, 0.01], 1.0);
    let logits = tape::transformed(&input, &start).plain();
    assert_row("tape_layer0_logits(=rope_half)", &logits);
    let flat =
        |z: &ScalarState| z.iter().flatten().flatten().flatten().copied().collect::<Vec<_>>();
    for (full_mix, name) in [(false, "code"), (true, "fullmix")] {
        let maps = maps(full_mix);
        let z = tape::attention_update(&maps, &softmax(&logits), &start);
        assert_values(&format!("tape_z_after_attn_{name}"), &flat(&z));
        let z = tape::feed_forward_update(&maps, &input.x, &z);
        assert_values(&format!("tape_z_after_ff_{name}"), &flat(&z));
        assert_row(
            &format!("tape_layer1_logits_{name}_same_qk"),
            &tape::transformed(&input, &z).plain(),
        );
    }
}

#[test]
fn rope_with_yarn_is_the_layer_that_tape_starts_from() {
    let input = input();
    let yarn = r#"{ "rope_type": "yarn", "factor": 4.0 }"#;
    let scaled = serde_json::from_str::<Scaling>(yarn).unwrap().spectrum(1e4, 4, 64, 64);
    let start = tape::initial(&input.positions, 2, &scaled.frequencies, scaled.attention_factor);
    assert_row("rope_yarn_s4_L64", &tape::transformed(&input, &start).plain());
}

fn pe(id: &str, settings: Value) -> AnyEncoding {
    encoding(id, settings, &DIMS)
}

/// Returns settings of every kind of mixing, attention update and scaling.
fn settings() -> Vec<Value> {
    let mut all = vec![
        json!({ "attention_update": "none" }),
        json!({ "feed_forward_update": { "type": "off" } }),
        json!({ "feed_forward_update": { "type": "off" }, "form": "vector" }),
        json!({ "scaling": { "rope_type": "yarn", "factor": 4.0 } }),
        json!({ "scaling": { "rope_type": "linear", "factor": 2.0 } }),
    ];
    for form in ["tensor", "vector", "tensor-not-equivariant", "vector-not-equivariant"] {
        for reading in ["code", "full-mix"] {
            all.push(json!({ "form": form, "attention_update": reading }));
        }
    }
    all
}

/// Computes the outputs of a stack of four layers with the engine.
fn outputs(pe: &AnyEncoding, shift: usize) -> Vec<f64> {
    let stack = Stack::random(2, TOKENS, &DIMS, 31);
    stack.full_pass(pe.hooks(), &Positions::contiguous(0, TOKENS).shifted(shift), &Device::flex())
}

#[test]
fn it_is_rope_at_step_zero_in_every_form() {
    for (settings, rope) in settings().into_iter().zip(std::iter::repeat(json!({}))) {
        let rope = match settings.get("scaling") {
            Some(scaling) => json!({ "scaling": scaling }),
            None => rope,
        };
        let (tape, rope) =
            (outputs(&pe("tape", settings.clone()), 0), outputs(&pe("rope", rope), 0));
        close::compare(&tape, &rope, F32).unwrap_or_else(|e| panic!("{settings}: {e}"));
    }
}

#[test]
fn four_layers_with_random_maps_equal_the_scalar_stack_and_are_not_rope() {
    let stack = Stack::random(2, TOKENS, &DIMS, 31);
    let at = Positions::contiguous(0, TOKENS);
    let rope = outputs(&pe("rope", json!({})), 0);
    for settings in settings() {
        let pe = randomise_by(0.2, pe("tape", settings.clone()), 5);
        let actual = outputs(&pe, 0);
        close::compare(&actual, &stack.scalar(pe.scalar(), &at), F32)
            .unwrap_or_else(|e| panic!("{settings}: {e}"));
        let apart = Tolerance { absolute: 0.05, relative: 0.0 };
        assert!(close::compare(&actual, &rope, apart).is_err(), "{settings}");
    }
}

/// Computes the logits of every layer in f64, so that violations can be distinguished from
/// rounding.
fn scalar_logits(pe: &AnyEncoding, shift: usize) -> Vec<f64> {
    let at = Positions::contiguous(0, TOKENS).shifted(shift);
    let layers = (0..DIMS.layers)
        .map(|layer| {
            let problem = Problem::random(1, TOKENS, &DIMS, 40 + layer as u64);
            let feed_forward = Problem::random(1, TOKENS, &DIMS, 50 + layer as u64).x.remove(0);
            ScalarLayer { input: problem.scalar(0, layer, &at), feed_forward }
        })
        .collect::<Vec<ScalarLayer>>();
    pe.scalar().scalar_stack(&layers).into_iter().flatten().flatten().flatten().collect()
}

#[test]
fn a_common_shift_changes_nothing_unless_equivariance_was_given_up() {
    let mut seen = [0, 0];
    for settings in settings() {
        let pe = randomise_by(0.2, pe("tape", settings.clone()), 5);
        let same = close::compare(&scalar_logits(&pe, 23), &scalar_logits(&pe, 0), EXACT);
        let serde_json::Value::Object(fields) = settings.clone() else { unreachable!() };
        let config = Registry::builtin().configured("tape", fields).unwrap();
        let invariant = crate::probe::properties(&config).unwrap().shift_invariant;
        seen[usize::from(invariant)] += 1;
        assert_eq!(same.is_ok(), invariant, "{settings}: {same:?}");
    }
    assert!(seen[0] >= 6 && seen[1] >= 5, "{seen:?}");
}

#[test]
fn permuting_tokens_with_their_positions_permutes_nothing_else() {
    // Indices matter only through the initial state: if two tokens that the last row sees are
    // exchanged together with their positions, the last row's output does not change.
    let pe = randomise_by(0.2, pe("tape", json!({ "attention_update": "none" })), 5);
    let problem = Problem::random(1, TOKENS, &DIMS, 60);
    let layer = |swap: bool| {
        let mut input = problem.scalar(0, 0, &Positions::contiguous(0, TOKENS));
        let mut feed_forward = Problem::random(1, TOKENS, &DIMS, 61).x.remove(0);
        if swap {
            for heads in [&mut input.q, &mut input.k, &mut input.v] {
                for head in heads {
                    head.swap(2, 6);
                }
            }
            input.x.swap(2, 6);
            input.positions.swap(2, 6);
            feed_forward.swap(2, 6);
        }
        ScalarLayer { input, feed_forward }
    };
    let last = |swap: bool| {
        let second =
            ScalarLayer { input: ScalarInput { layer: 1, ..layer(swap).input }, ..layer(swap) };
        let mut row = pe.scalar().scalar_stack(&[layer(swap), second])[1][0][TOKENS - 1].clone();
        if swap {
            row.swap(2, 6);
        }
        row
    };
    close::compare(&last(true), &last(false), EXACT).unwrap();
}

#[test]
fn training_starts_at_a_drawn_position_and_evaluation_at_zero() {
    let starts = |settings: Value, new_tokens: usize, training: bool| {
        let pe = pe("tape", settings);
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        (0..400)
            .map(|_| {
                let training_rng = training.then_some(&mut rng);
                let request = PositionRequest { cached_tokens: 0, new_tokens, training_rng };
                let at = pe.hooks().positions(request).unwrap();
                assert_eq!(at.rows().len(), new_tokens);
                at.rows()[0]
            })
            .collect::<std::collections::BTreeSet<_>>()
    };
    let only_zero = std::collections::BTreeSet::from([0]);
    // 0 to twice the training length, both ends included.
    assert_eq!(starts(json!({}), TOKENS, true), (0..=2 * DIMS.train_len).collect());
    let short = json!({ "training_shift": { "type": "random", "max": 3 } });
    assert_eq!(starts(short, TOKENS, true), (0..=3).collect());
    let none = json!({ "training_shift": { "type": "none" } });
    assert_eq!(starts(none, TOKENS, true), only_zero);
    assert_eq!(starts(json!({}), TOKENS, false), only_zero);
    assert_eq!(starts(json!({}), TOKENS + 1, true), only_zero);
}

#[test]
fn an_unknown_setting_within_a_choice_without_settings_is_refused_too() {
    for (id, settings) in [
        ("tape", json!({ "feed_forward_update": { "type": "off", "position_size": 4 } })),
        ("tape", json!({ "scaling": { "type": "none", "factor": 2.0 } })),
        ("tape", json!({ "training_shift": { "type": "none", "max": 3 } })),
        ("cope", json!({ "layers": { "type": "all", "n": 3 } })),
    ] {
        let Value::Object(fields) = settings else { unreachable!() };
        let error = Registry::builtin().configured(id, fields).unwrap_err().to_string();
        assert!(error.contains("unknown field"), "{error}");
    }
}

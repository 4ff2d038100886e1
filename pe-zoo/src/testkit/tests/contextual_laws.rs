//! Tests identities of the contextual encodings with non-zero parameters.

use serde_json::json;

use super::{built, encoding};
use crate::reference::cope::{self, GateSide};
use crate::reference::{Heads, ScalarInput, ScalarReference, attention, distance, dot};
use crate::score::LogitScaling;
use crate::testkit::close::{self, Tolerance};
use crate::testkit::problem::Problem;
use crate::testkit::randomise;
use crate::zoo::cope_mlp::CopeMlp;
use crate::{AnyEncoding, Dims, Positions};

const DIMS: Dims = Dims { layers: 2, width: 24, heads: 4, head_dim: 6, train_len: 11, max_len: 11 };
const EXACT: Tolerance = Tolerance { absolute: 1e-12, relative: 1e-12 };

/// Tolerance for saturated gates: sigmoids of a few hundred are exactly 0 or 1, and so are sums of
/// eleven of them.
const SATURATED: Tolerance = Tolerance { absolute: 1e-9, relative: 1e-9 };

fn pe(id: &str, settings: serde_json::Value) -> AnyEncoding {
    encoding(id, settings, &DIMS)
}

fn input() -> ScalarInput {
    Problem::random(1, 11, &DIMS, 5).scalar(0, 0, &Positions::contiguous(0, 11))
}

/// Makes a problem whose gate logits are all large and of one sign while queries differ.
fn saturated(sign: f64) -> ScalarInput {
    let mut input = input();
    for query in input.q.iter_mut().flatten() {
        query[0] = 40.0;
    }
    for key in input.k.iter_mut().flatten() {
        key[0] = 40.0 * sign;
    }
    input
}

fn flat(heads: Heads) -> Vec<f64> {
    heads.into_iter().flatten().flatten().collect()
}

#[track_caller]
fn assert_same_weights(a: &Heads, b: &Heads, tolerance: Tolerance) {
    close::compare(&flat(attention::softmax(a)), &flat(attention::softmax(b)), tolerance).unwrap();
}

#[test]
fn closed_gates_add_a_constant_per_row_and_so_nothing() {
    let input = saturated(-1.0);
    let nope = pe("nope", json!({})).scalar().scalar_logits(&input);
    for (id, settings) in [
        ("cope", json!({})),
        ("cope", json!({ "convention": "code" })),
        ("cope-mlp", json!({})),
        ("cope-alibi", json!({})),
    ] {
        let pe = randomise(pe(id, settings), 3);
        let logits = pe.scalar().scalar_logits(&input);
        assert_same_weights(&logits, &nope, SATURATED);
        let first = logits[0][10][0] - nope[0][10][0];
        let constant =
            logits[0][10].iter().zip(&nope[0][10]).all(|(z, s)| (z - s - first).abs() < 1e-9);
        assert!(constant, "{id}");
        // The table or network may have a constant other than 0, so z_i[0] is added.
        assert!(id == "cope-alibi" || first.abs() > 1e-3, "{id}: {first}");
    }
}

#[test]
fn open_gates_make_cope_alibi_alibi() {
    let input = saturated(1.0);
    for (slopes, name) in [
        (crate::zoo::cope_alibi::FirstSlope::FromOne, "from-1"),
        (crate::zoo::cope_alibi::FirstSlope::FromQuarter, "from-1/4"),
        (crate::zoo::cope_alibi::FirstSlope::FromSixteenth, "from-1/16"),
    ] {
        let slopes = slopes.values(DIMS.heads);
        let minus = pe("cope-alibi", json!({ "slopes": name })).scalar().scalar_logits(&input);
        // p = i - j + 1, and the constant cancels.
        assert_same_weights(&minus, &distance::alibi_logits(&input, &slopes), SATURATED);
        let plus = pe("cope-alibi", json!({ "slopes": name, "sign": "plus" }));
        let bonus = slopes.iter().map(|slope| -slope).collect::<Vec<_>>();
        let (plus, bonus) =
            (plus.scalar().scalar_logits(&input), distance::alibi_logits(&input, &bonus));
        assert_same_weights(&plus, &bonus, SATURATED);
    }
}

#[test]
fn open_gates_make_cope_mlp_a_function_of_the_distance() {
    let pe = randomise(built::<CopeMlp>(json!({}), &DIMS), 3);
    let input = saturated(1.0);
    let logits = pe.scalar_logits(&input);
    let numbers = crate::testkit::close::numbers;
    let network = &pe.networks[0];
    let perceptron = crate::reference::cope::ScalarPerceptron {
        w1: numbers(network.w1.val()),
        b1: numbers(network.b1.val()),
        w2: crate::reference::table_f64(&network.w2),
        b2: numbers(network.b2.val()),
        activation: crate::score::HiddenActivation::Relu,
    };
    let expected = input.map(|h, row, i, j| {
        let e = perceptron.embedding(input.distance(i, j) as f64 + 1.0);
        input.content(h, row, j) / 6f64.sqrt() + dot(&input.q[h][row], &e)
    });
    close::compare(&flat(logits), &flat(expected), SATURATED).unwrap();
}

#[test]
fn what_starts_at_zero_is_nope_at_step_zero() {
    let nope = flat(pe("nope", json!({})).scalar().scalar_logits(&input()));
    for (id, settings) in [
        ("cope", json!({})),
        ("cope", json!({ "gates": "separate-keys" })),
        ("cope", json!({ "gates": "query-value" })),
        ("cope-mlp", json!({})),
        ("cope-mlp", json!({ "activation": "gelu", "width": 5 })),
        ("cope-alibi", json!({ "slopes": "learned" })),
    ] {
        close::compare(&flat(pe(id, settings).scalar().scalar_logits(&input())), &nope, EXACT)
            .unwrap();
    }
}

#[test]
fn separate_keys_that_are_the_keys_change_nothing() {
    let input = input();
    let table = (0..6)
        .map(|d| (0..12).map(|n| (f64::from(n) * 0.3 + f64::from(d)).sin()).collect())
        .collect::<Vec<Vec<f64>>>();
    for convention in [LogitScaling::Listing, LogitScaling::Code, LogitScaling::Equation] {
        let own = cope::logits(&input, &table, convention, GateSide::Own(&input.k));
        let plain = cope::logits(&input, &table, convention, GateSide::Keys);
        close::compare(&flat(own), &flat(plain), EXACT).unwrap();
    }
}

#[test]
fn layers_without_the_encoding_are_nope_and_the_others_are_not() {
    for (id, settings, with, without) in [
        ("cope", json!({ "layers": { "type": "every", "n": 2 } }), 1, 0),
        ("cope-mlp", json!({ "layers": { "type": "first" } }), 0, 1),
    ] {
        let pe = randomise(pe(id, settings), 3);
        let nope = flat(self::pe("nope", json!({})).scalar().scalar_logits(&input()));
        let logits = |layer| flat(pe.scalar().scalar_logits(&ScalarInput { layer, ..input() }));
        close::compare(&logits(without), &nope, EXACT).unwrap();
        assert!(close::compare(&logits(with), &nope, SATURATED).is_err(), "{id}");
    }
}

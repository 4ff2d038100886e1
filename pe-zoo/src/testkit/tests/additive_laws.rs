//! Tests identities of additive and mixing encodings: settings at which one equals another, and
//! invariance under shifts.

use burn::tensor::Device;
use serde_json::{Value, json};

use super::{built, encoding};
use crate::math::frequencies::inverse_frequencies;
use crate::reference::{Heads, ScalarInput, ScalarReference, attention, distance, grape, rope};
use crate::testkit::close::{self, Tolerance};
use crate::testkit::problem::Problem;
use crate::zoo::dape::Dape;
use crate::{AnyEncoding, Dims, Positions, init};

const DIMS: Dims = Dims { layers: 1, width: 12, heads: 2, head_dim: 6, train_len: 11, max_len: 11 };
const EXACT: Tolerance = Tolerance { absolute: 1e-12, relative: 1e-12 };
const SLOPES: [f64; 2] = [0.5, 0.03];

fn pe(id: &str, settings: Value) -> AnyEncoding {
    encoding(id, settings, &DIMS)
}

fn input() -> ScalarInput {
    shifted(0)
}

fn shifted(shift: usize) -> ScalarInput {
    Problem::random(1, 11, &DIMS, 5).scalar(0, 0, &Positions::contiguous(0, 11).shifted(shift))
}

fn compare(a: &Heads, b: &Heads) -> Result<(), String> {
    let flat = |heads: &Heads| heads.iter().flatten().flatten().copied().collect::<Vec<_>>();
    close::compare(&flat(a), &flat(b), EXACT)
}

#[test]
fn kerple_s_power_kernel_with_exponent_one_is_alibi() {
    let input = input();
    let power = distance::kerple_power(&input, &SLOPES, &[1.0; 2]);
    compare(&power, &distance::alibi(&input, &SLOPES)).unwrap();
}

#[test]
fn grape_a_with_gates_that_are_always_open_alike_is_alibi() {
    let input = input();
    // Without a direction the gate is softplus(0) = ln 2; omega compensates for it.
    let closed = Some(vec![vec![0.0; DIMS.head_dim]; 2]);
    for (gates, gate) in [
        (grape::ScalarGates { key: closed.clone(), query: None }, 2f64.ln()),
        (grape::ScalarGates { key: None, query: closed.clone() }, 2f64.ln()),
        (grape::ScalarGates { key: closed.clone(), query: closed.clone() }, 4f64.ln()),
    ] {
        let omega = [(1.0 / gate).exp_m1().ln(); 2];
        let logits = grape::additive(&input, &SLOPES, &omega, &gates, None);
        compare(&logits, &distance::alibi_logits(&input, &SLOPES)).unwrap();
    }
}

#[test]
fn alibi_by_column_and_alibi_by_distance_give_the_same_weights() {
    let input = input();
    let (columns, distances) = (
        distance::alibi_logits_by_column(&input, &SLOPES),
        distance::alibi_logits(&input, &SLOPES),
    );
    compare(&attention::softmax(&columns), &attention::softmax(&distances)).unwrap();
    assert!(compare(&columns, &distances).is_err());
}

#[test]
fn dape_whose_second_layer_is_zero_is_its_base() {
    for (kind, settings) in [
        ("nope", json!({ "base": { "type": "none" } })),
        ("alibi", json!({ "base": { "type": "alibi" } })),
        ("kerple", json!({ "base": { "type": "kerple" } })),
        ("fire", json!({ "base": { "type": "fire", "activation": "relu" } })),
        ("kerple", json!({ "mixer": "convolution" })),
    ] {
        // The base is drawn first, so that the same seed gives the same base.
        let base = pe(kind, json!({}));
        let mut dape = built::<Dape>(settings, &DIMS);
        let logits = dape.scalar_logits(&input());
        assert!(compare(&logits, &base.scalar().scalar_logits(&input())).is_err(), "{kind}");
        let network = &mut dape.networks[0];
        network.w2 = init::zeros(network.w2.val().dims(), &Device::flex());
        network.c2 = init::zeros(network.c2.val().dims(), &Device::flex());
        let logits = dape.scalar_logits(&input());
        compare(&logits, &base.scalar().scalar_logits(&input()))
            .unwrap_or_else(|e| panic!("{kind}: {e}"));
    }
}

#[test]
fn fire_tells_shifts_apart_past_its_threshold_and_not_before() {
    let fire = |threshold: f64| distance::ScalarFire {
        c: 0.1,
        threshold,
        eps: 1e-6,
        hidden: vec![(1.0, 0.1), (-0.5, 0.3)],
        negative_slope: 0.0,
        outer: vec![vec![1.0, 2.0], vec![-1.0, 0.5]],
        outer_bias: vec![0.0; 2],
    };
    let bias = |threshold: f64, shift: usize| fire(threshold).bias(&shifted(shift));
    compare(&bias(512.0, 0), &bias(512.0, 500)).unwrap();
    assert!(compare(&bias(512.0, 0), &bias(512.0, 600)).is_err());
    // Only the absolute value of the threshold matters.
    compare(&bias(-512.0, 0), &bias(512.0, 0)).unwrap();
}

#[test]
fn grape_ap_tells_shifts_apart_and_grape_a_does_not() {
    let path = pe("grape", json!({ "variant": { "type": "path" } }));
    let additive = pe("grape", json!({ "variant": { "type": "additive" } }));
    let moved = |pe: &AnyEncoding| {
        compare(&pe.scalar().scalar_logits(&shifted(0)), &pe.scalar().scalar_logits(&shifted(3)))
    };
    assert!(moved(&path).is_err());
    moved(&additive).unwrap();
}

#[test]
fn grape_m_starts_as_rope_that_turns_the_other_way() {
    let input = input();
    let backwards = inverse_frequencies(1e4, DIMS.head_dim).iter().map(|f| -f).collect::<Vec<_>>();
    let expected = rope::logits(&input, &backwards, false);
    let forwards = vec![inverse_frequencies(1e4, DIMS.head_dim); 2];
    compare(&grape::multiplicative(&input, &forwards, None).plain(), &expected).unwrap();
    let grape = pe("grape", json!({ "variant": { "type": "multiplicative" } }));
    let flat = |heads: Heads| heads.into_iter().flatten().flatten().collect::<Vec<_>>();
    // Frequencies come back from f32 logarithms of up to 16 ln 10^4.
    let stored = Tolerance { absolute: 1e-4, relative: 0.0 };
    close::compare(&flat(grape.scalar().scalar_logits(&input)), &flat(expected), stored).unwrap();
}

#[test]
fn contextual_grape_m_whose_tokens_all_step_alike_is_grape_m_at_that_pace() {
    let input = input();
    let frequencies = inverse_frequencies(50.0, DIMS.head_dim);
    // Initial value of omega.
    let omega = 0.393_720;
    let bias = -6.907_255;
    let contextual =
        grape::contextual(&input, &vec![vec![0.0]; DIMS.width], &[bias], &frequencies, None)
            .plain();
    let paced = vec![frequencies.iter().map(|f| f * omega).collect::<Vec<_>>(); 2];
    let multiplicative = grape::multiplicative(&input, &paced, None).plain();
    let flat = |heads: Heads| heads.into_iter().flatten().flatten().collect::<Vec<_>>();
    // Omega is given with six digits, and adds up over ten tokens.
    let six_digits = Tolerance { absolute: 5e-5, relative: 0.0 };
    close::compare(&flat(contextual), &flat(multiplicative), six_digits).unwrap();
}

#[test]
fn the_last_row_of_dape_s_convolution_does_not_know_that_it_is_the_last() {
    let pe = pe("dape", json!({ "mixer": "convolution" }));
    let whole = pe.scalar().scalar_logits(&input());
    let mut shorter = input();
    for heads in [&mut shorter.q, &mut shorter.k, &mut shorter.v] {
        for head in heads {
            head.truncate(7);
        }
    }
    shorter.x.truncate(7);
    shorter.positions.truncate(7);
    let cut = whole.iter().map(|head| head[..7].to_vec()).collect();
    compare(&pe.scalar().scalar_logits(&shorter), &cut).unwrap();
}

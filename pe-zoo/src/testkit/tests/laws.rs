//! Laws between encodings: where one becomes another.

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::reference::{ScalarInput, ScalarReference};
use crate::testkit::close::{self, Tolerance};
use crate::testkit::problem::Problem;
use crate::testkit::randomise;
use crate::zoo::{Pe, PeConfig};
use crate::{Dims, EncodingConfig, Positions};

const DIMS: Dims = Dims { layers: 1, heads: 2, head_dim: 6, train_len: 11, max_len: 11 };
const EXACT: Tolerance = Tolerance { absolute: 1e-12, relative: 1e-12 };

fn pe(id: &str, settings: serde_json::Value) -> Pe {
    let serde_json::Value::Object(fields) = settings else { panic!("settings are a map") };
    PeConfig::from_fields(id, fields)
        .unwrap()
        .init(&DIMS, &mut ChaCha8Rng::seed_from_u64(1), &Device::flex())
        .unwrap()
}

fn input() -> ScalarInput {
    Problem::random(1, 11, &DIMS, 5).scalar(0, 0, &Positions::contiguous(0, 11))
}

fn logits(pe: &Pe) -> Vec<f64> {
    pe.scalar_logits(&input()).into_iter().flatten().flatten().collect()
}

#[track_caller]
fn assert_same(a: &Pe, b: &Pe) {
    close::compare(&logits(a), &logits(b), EXACT).unwrap();
}

#[test]
fn rope_scaled_by_one_is_rope() {
    let plain = pe("rope", serde_json::json!({}));
    for kind in ["linear", "ntk"] {
        let scaled = serde_json::json!({ "scaling": { "type": kind, "factor": 1.0 } });
        assert_same(&pe("rope", scaled), &plain);
    }
}

#[test]
fn cope_with_its_initial_zero_table_is_nope() {
    assert_same(&pe("cope", serde_json::json!({})), &pe("nope", serde_json::json!({})));
}

#[test]
fn cope_with_open_gates_is_relative_at_distance_plus_one() {
    // Keys and queries whose products are huge and positive open every gate.
    let mut input = input();
    for heads in [&mut input.q, &mut input.k] {
        for value in heads.iter_mut().flatten().flatten() {
            *value = 30.0;
        }
    }
    let table = (0..DIMS.head_dim)
        .map(|d| (0..12).map(|n| (f64::from(n) * 0.3 + d as f64).sin()).collect())
        .collect::<Vec<Vec<f64>>>();
    let later = table.iter().map(|row| row[1..].to_vec()).collect::<Vec<_>>();
    let cope =
        crate::reference::cope::logits(&input, &table, crate::score::Convention::Code, false);
    let relative = crate::reference::relative::logits(
        &input,
        &later,
        crate::reference::relative::Past::Nothing,
    );
    let flat = |heads: crate::reference::Heads| -> Vec<f64> {
        heads.into_iter().flatten().flatten().collect()
    };
    close::compare(&flat(cope), &flat(relative), Tolerance { absolute: 1e-9, relative: 1e-12 })
        .unwrap();
}

#[test]
fn capped_and_plain_relative_agree_within_the_table_and_differ_past_it() {
    let short = serde_json::json!({ "max_distance": 4 });
    let full = serde_json::json!({ "max_distance": 11 });
    assert_same(&pe("relative", full.clone()), &pe("relative-capped", full));
    let (plain, capped) =
        (logits(&pe("relative", short.clone())), logits(&pe("relative-capped", short)));
    assert!(close::compare(&plain, &capped, EXACT).is_err());
}

#[test]
fn decay_by_a_constant_is_alibi() {
    let slopes = crate::zoo::alibi::Slopes::Authors.values(DIMS.heads);
    let forget = slopes.iter().map(|slope| vec![-slope; 11]).collect::<Vec<_>>();
    let decayed = crate::reference::score::decay(&input(), &forget);
    let alibi = logits(&pe("alibi", serde_json::json!({})));
    let decayed = decayed.into_iter().flatten().flatten().collect::<Vec<_>>();
    close::compare(&decayed, &alibi, EXACT).unwrap();
}

#[test]
fn permuting_early_tokens_moves_the_last_output_unless_nothing_encodes_order() {
    for meta in crate::zoo::ALL {
        let pe = randomise(pe(meta.id, serde_json::json!({})), 3);
        let mut swapped = input();
        for heads in [&mut swapped.q, &mut swapped.k, &mut swapped.v] {
            for head in heads {
                head.swap(1, 4);
            }
        }
        let mix = |input: &ScalarInput| {
            let weights = crate::reference::attention::softmax(&pe.scalar_logits(input));
            crate::reference::attention::mix(&weights, &input.v)[0][10].clone()
        };
        let order_in_logits = mix_differs(&mix(&input()), &mix(&swapped));
        let tokens = vec![vec![0.0; DIMS.width()]; 2];
        let embedded = pe.scalar_embed(&tokens, &[1, 4]);
        let reaches_the_output = order_in_logits || embedded[0] != embedded[1];
        // One that only chooses positions does nothing without another that reads them.
        let acts = meta.sites.iter().any(|site| *site != crate::meta::Site::Positions);
        assert_eq!(reaches_the_output, acts, "{}", meta.id);
    }
}

fn mix_differs(a: &[f64], b: &[f64]) -> bool {
    close::compare(a, b, Tolerance { absolute: 1e-6, relative: 1e-6 }).is_err()
}

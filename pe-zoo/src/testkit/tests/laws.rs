//! Tests identities between encodings: settings at which one equals another.

mod rotary;

use super::encoding;
use crate::card::ActsOn;
use crate::reference::{Heads, ScalarInput, dot, path};
use crate::testkit::close::{self, Tolerance};
use crate::testkit::problem::Problem;
use crate::testkit::randomise;
use crate::zoo::{
    logit_cap::LogitCap, repo::Repo, sinks::Sinks, temperature::RowTemperature,
    window::AttentionWindow,
};
use crate::{AnyEncoding, Dims, PositionEncoding, Positions, Registry};

const DIMS: Dims = Dims { layers: 2, width: 12, heads: 2, head_dim: 6, train_len: 11, max_len: 11 };
const EXACT: Tolerance = Tolerance { absolute: 1e-12, relative: 1e-12 };

fn pe(id: &str, settings: serde_json::Value) -> AnyEncoding {
    encoding(id, settings, &DIMS)
}

fn input() -> ScalarInput {
    Problem::random(1, 11, &DIMS, 5).scalar(0, 0, &Positions::contiguous(0, 11))
}

fn logits(pe: &AnyEncoding) -> Vec<f64> {
    pe.scalar().scalar_logits(&input()).into_iter().flatten().flatten().collect()
}

#[track_caller]
fn assert_same(a: &AnyEncoding, b: &AnyEncoding) {
    close::compare(&logits(a), &logits(b), EXACT).unwrap();
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
    let side = crate::reference::cope::GateSide::Keys;
    let cope =
        crate::reference::cope::logits(&input, &table, crate::score::LogitScaling::Code, side);
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
    let decayed = crate::reference::decay::forgetting(&input(), &forget);
    let alibi = logits(&pe("alibi", serde_json::json!({})));
    let decayed = decayed.into_iter().flatten().flatten().collect::<Vec<_>>();
    close::compare(&decayed, &alibi, EXACT).unwrap();
}

#[test]
fn fox_with_the_slopes_as_fixed_gates_is_alibi() {
    // Slopes of two heads: 1/16 and 1/256.
    let gates = serde_json::json!({ "type": "fixed", "tau_min": 16.0, "tau_max": 256.0 });
    let fox = pe("fox", serde_json::json!({ "gates": gates }));
    assert_same(&fox, &pe("alibi", serde_json::json!({})));
}

#[test]
fn fox_with_gates_of_one_is_nope() {
    let gates = serde_json::json!({ "type": "full", "bias": 60.0 });
    let fox = pe("fox", serde_json::json!({ "gates": gates }));
    assert_same(&fox, &pe("nope", serde_json::json!({})));
}

/// Returns directions and strengths of every column, for two heads.
fn path_maps(strength: fn(usize) -> f64) -> (Heads, Vec<Vec<f64>>) {
    let unit = |u: &Vec<f64>| {
        let norm = dot(u, u).sqrt();
        u.iter().map(|x| x / norm).collect::<Vec<_>>()
    };
    let w = Problem::random(1, 11, &DIMS, 6).k[0]
        .iter()
        .map(|head| head.iter().map(unit).collect())
        .collect();
    (w, vec![(0..11).map(strength).collect(); DIMS.heads])
}

#[test]
fn path_of_no_strength_is_nope() {
    let (w, beta) = path_maps(|_| 0.0);
    let logits = path::logits(&input(), &w, &beta).into_iter().flatten().flatten();
    let nope = self::logits(&pe("nope", serde_json::json!({})));
    close::compare(&logits.collect::<Vec<_>>(), &nope, EXACT).unwrap();
}

#[test]
fn path_by_updated_keys_is_the_product_of_its_matrices() {
    let (w, beta) = path_maps(|t| (t % 5) as f64 * 0.5);
    let input = input();
    let identity = |r: usize, c: usize| f64::from(u8::from(r == c));
    let logits = input.map(|h, row, i, j| {
        // H_i ... H_{j+1}, each factor written out.
        let mut product = (0..DIMS.head_dim)
            .map(|r| (0..DIMS.head_dim).map(|c| identity(r, c)).collect())
            .collect::<Vec<Vec<f64>>>();
        for t in (j + 1..=i).rev() {
            let map = (0..DIMS.head_dim)
                .map(|r| {
                    (0..DIMS.head_dim)
                        .map(|c| identity(r, c) - beta[h][t] * w[h][t][r] * w[h][t][c])
                        .collect::<Vec<_>>()
                })
                .collect::<Vec<_>>();
            let column = |c: usize| map.iter().map(|row| row[c]).collect::<Vec<_>>();
            product = product
                .iter()
                .map(|row| (0..DIMS.head_dim).map(|c| dot(row, &column(c))).collect())
                .collect();
        }
        let key = product.iter().map(|row| dot(row, &input.k[h][j])).collect::<Vec<_>>();
        dot(&input.q[h][row], &key) / (DIMS.head_dim as f64).sqrt()
    });

    // As in decoding: each new token changes every earlier key once.
    let mut updated = input.map(|_, _, _, _| 0.0);
    for h in 0..DIMS.heads {
        let mut kept: Vec<Vec<f64>> = Vec::new();
        for i in 0..11 {
            for key in &mut kept {
                let along = beta[h][i] * dot(&w[h][i], key);
                key.iter_mut().zip(&w[h][i]).for_each(|(x, w)| *x -= along * w);
            }
            kept.push(input.k[h][i].clone());
            for (j, key) in kept.iter().enumerate() {
                updated[h][i][j] = dot(&input.q[h][i], key) / (DIMS.head_dim as f64).sqrt();
            }
        }
    }
    let flat = |heads: Heads| heads.into_iter().flatten().flatten().collect::<Vec<_>>();
    let naive = flat(path::logits(&input, &w, &beta));
    close::compare(&flat(logits), &naive, EXACT).unwrap();
    close::compare(&flat(updated), &naive, EXACT).unwrap();
}

#[test]
fn path_fox_divides_the_forgetting_too() {
    let (w, beta) = path_maps(|_| 0.0);
    let slopes = crate::zoo::alibi::Slopes::Authors.values(DIMS.heads);
    let root = (DIMS.head_dim as f64).sqrt();
    let forget = slopes.iter().map(|slope| vec![-slope * root; 11]).collect::<Vec<_>>();
    let logits = path::logits_with_forgetting(&input(), &w, &beta, &forget);
    let alibi = self::logits(&pe("alibi", serde_json::json!({})));
    let flat = logits.into_iter().flatten().flatten().collect::<Vec<_>>();
    close::compare(&flat, &alibi, EXACT).unwrap();
}

#[test]
fn stick_breaking_of_equal_logits_halves_and_whole_sticks_sum_to_one() {
    let mut input = input();
    let whole = |input: &ScalarInput, current: &str| {
        let settings = serde_json::json!({ "current": current, "remainder": "own-token" });
        pe("stick-breaking", settings).scalar().scalar_weights(input)
    };
    for current in ["excluded", "included"] {
        let sums = whole(&input, current).into_iter().flatten();
        let sums = sums.map(|row| row.into_iter().sum()).collect::<Vec<f64>>();
        close::compare(&sums, &[1.0; 11 * DIMS.heads], EXACT).unwrap();
    }

    input.k.iter_mut().flatten().flatten().for_each(|x| *x = 0.0);
    let plain = pe("stick-breaking", serde_json::json!({})).scalar().scalar_weights(&input);
    for (i, row) in plain[0].iter().enumerate() {
        let halves = (0..=i).map(|j| if j == i { 0.0 } else { 0.5f64.powi((i - j) as i32) });
        close::compare(row, &halves.collect::<Vec<_>>(), EXACT).unwrap();
        let own = whole(&input, "excluded")[0][i][i];
        close::compare(&[own], &[0.5f64.powi(i as i32)], EXACT).unwrap();
    }
}

#[test]
fn permuting_early_tokens_moves_the_last_output_unless_nothing_encodes_order() {
    for meta in Registry::builtin().cards() {
        let pe = randomise(pe(meta.id, serde_json::json!({})), 3);
        let mut swapped = input();
        for heads in [&mut swapped.q, &mut swapped.k, &mut swapped.v] {
            for head in heads {
                head.swap(1, 4);
            }
        }
        swapped.x.swap(1, 4);
        let mix = |input: &ScalarInput| {
            let weights = pe.scalar().scalar_weights(input);
            crate::reference::attention::mix(&weights, &input.v)[0][10].clone()
        };
        let order_in_logits = mix_differs(&mix(&input()), &mix(&swapped));
        let tokens = vec![vec![0.0; DIMS.width]; 2];
        // Two tokens of one kind, digits among them.
        let embedded = pe.scalar().scalar_embed(&tokens, &[5, 5], &[1, 4]);
        let reaches_the_output = order_in_logits || embedded[0] != embedded[1];
        // An encoding that only chooses positions has no effect without another that reads them.
        let config = Registry::builtin().encoding(meta.id).unwrap();
        let properties = crate::probe::properties(&config).unwrap();
        let acts = properties.acts_on.iter().any(|part| *part != ActsOn::Positions);
        // Some treat all columns of a row alike, or by their content alone, and the window is longer than the sequence.
        let alike = [LogitCap::CARD.id, Sinks::CARD.id, RowTemperature::CARD.id, Repo::CARD.id];
        let blind = alike.contains(&meta.id) || meta.id == AttentionWindow::CARD.id;
        assert_eq!(reaches_the_output, acts && !blind, "{}", meta.id);
    }
}

fn mix_differs(a: &[f64], b: &[f64]) -> bool {
    close::compare(a, b, Tolerance { absolute: 1e-6, relative: 1e-6 }).is_err()
}

//! Comparison of options of the authors' code with independent numbers (`fixtures/options.json`, `fixtures/SOURCE.md`).

use serde_json::{Value, json};

use super::fixtures::{flat, input, printed};
use crate::math::buckets;
use crate::reference::distance::ScalarLinear;
use crate::reference::relative::ScalarProfiles;
use crate::reference::{Heads, Tokens, attention, decay, distance, relative, rope, rope_scaling};
use crate::rotary::Scaling;
use crate::testkit::close::{self, Tolerance};

/// Tolerance for sums of a few products in f64, printed with fifteen decimals.
const F64: Tolerance = Tolerance { absolute: 1e-13, relative: 1e-13 };

fn expected(name: &str) -> Vec<f64> {
    let fixture: Value =
        serde_json::from_str(include_str!("../../../fixtures/options.json")).unwrap();
    printed(&fixture[name])
}

#[track_caller]
fn assert_values(name: &str, actual: &[f64]) {
    close::compare(actual, &expected(name), F64).unwrap_or_else(|e| panic!("{name}: {e}"));
}

#[track_caller]
fn assert_rows(name: &str, actual: &Heads) {
    assert_values(name, &flat(actual));
}

/// Returns the table `[a][b]` of `f(a, b)`.
fn table([a, b]: [u8; 2], f: impl Fn(f64, f64) -> f64) -> Tokens {
    (0..a).map(|row| (0..b).map(|column| f(f64::from(row), f64::from(column))).collect()).collect()
}

#[test]
fn kerple_s_weight_form() {
    let input = input();
    let (a, p) = ([0.5, 0.2], [1.5, 0.7]);
    let weighted =
        |bias: &Heads| distance::kerple_weighted(&input, bias, &[0.3, 0.05], &[0.8, 1.7]);
    assert_rows("kerple_weighted_power", &weighted(&distance::kerple_power(&input, &a, &p)));
    assert_rows(
        "kerple_weighted_logarithmic",
        &weighted(&distance::kerple_logarithmic(&input, &a, &p)),
    );
    assert_rows("kerple_weight_alone", &weighted(&input.map(|_, _, _, _| 0.0)));
}

#[test]
fn dynamic_position_bias_of_distances_and_of_their_logarithms() {
    let maps = [[1, 3], [3, 3], [3, 2]].into_iter().enumerate().map(|(layer, shape)| {
        let layer = layer as f64;
        ScalarLinear {
            weight: table(shape, |i, o| (1.0 + layer + i + 2.0 * o).sin()),
            bias: (0..shape[1]).map(|o| 0.2 * (layer + f64::from(o)).cos()).collect(),
        }
    });
    let maps = maps.collect::<Vec<_>>();
    for (name, logarithm) in
        [("dynamic_position_bias_linear", false), ("dynamic_position_bias_log", true)]
    {
        let input = input();
        assert_rows(name, &input.biased(&distance::dynamic(&input, &maps, logarithm)));
    }
}

#[test]
fn fox_with_gates_of_pairs() {
    let projection = |f: fn(f64) -> f64| table([8, 6], |c, o| f(0.3 + 0.91 * c + 0.37 * o));
    let input = input();
    let bias = decay::per_row_bias(&input, &projection(f64::sin), &projection(f64::cos), 2);
    assert_rows("fox_per_row", &input.biased(&bias));
}

#[test]
fn relative_profiles_with_and_without_an_effect_of_the_limit() {
    for (name, limit) in [("relative_profiles", 1e3), ("relative_profiles_limit_0.5", 0.5)] {
        let learned = ScalarProfiles {
            weight: table([8, 6], |c, o| (0.3 + 0.91 * c + 0.37 * o).sin()),
            scale: table([2, 3], |h, r| 1.0 + 0.2 * (h + r).cos()),
            profiles: table([3, 3], |r, n| (1.0 + r + 0.7 * n).cos()),
            limit,
        };
        let input = input();
        assert_rows(name, &input.biased(&relative::profiles(&input, &learned)));
    }
}

#[test]
fn fox_within_a_window() {
    let input = input();
    let log_forget = table([2, 5], |h, t| -(1.0 + (-0.5 - 0.3 * (t + h).sin()).exp()).ln());
    let logits = decay::forgetting(&input, &log_forget);
    let windowed = crate::zoo::window::windowed(&input, &logits, 3);
    assert_rows("fox_window_3_weights", &attention::softmax(&windowed));
}

#[test]
fn pope_with_two_of_four_channels() {
    let phases = table([2, 2], |h, c| -(0.2 * (h + 1.0) + 0.1 * c));
    assert_rows("pope_partial", &rope::pope_logits(&input(), 1e4, &phases));
    let transformed = rope::pope(&input(), 1e4, &phases);
    assert_rows("pope_partial", &transformed.plain());
}

#[test]
fn xpos_around_a_centre() {
    let frequencies = (0..2)
        .map(|m| rope_scaling::plain(rope_scaling::ScalarPair { base: 1e4, dim: 4, m }))
        .collect::<Vec<_>>();
    // torchscale's centre of five positions.
    let centre = crate::zoo::xpos::Centre::Torchscale.of(&[0, 1, 2, 3, 4]);
    let transformed = rope::xpos(&input(), &frequencies, 512.0, centre, true);
    assert_rows("xpos_centre_3_queries", &transformed.q);
    assert_rows("xpos_centre_3_keys", &transformed.k);
}

fn assert_frequencies(name: &str, scaling: Value, base: f64, lens: [usize; 2]) {
    // Frequencies differ by nine orders of magnitude.
    const RELATIVE: Tolerance = Tolerance { absolute: 0.0, relative: 1e-12 };
    let scaling: Scaling = serde_json::from_value(scaling).unwrap();
    let spectrum = scaling.spectrum(base, 128, lens[0], lens[1]);
    close::compare(&spectrum.frequencies, &expected(name), RELATIVE)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
}

#[test]
fn yarn_that_keeps_a_share_and_part_ntk() {
    let yarn = json!({ "rope_type": "yarn", "factor": 8.0, "extrapolation_factor": 0.7 });
    assert_frequencies("yarn_extrapolation_0.7", yarn, 1e4, [4096, 4096]);
    let part = json!({ "rope_type": "part-ntk", "factor": 4.0 });
    assert_frequencies("part_ntk", part, 1e4, [2048, 2048]);
    let shares = json!({ "rope_type": "part-ntk", "factor": 4.0, "ntk_factor": 0.6,
        "extrapolation_factor": 0.8 });
    assert_frequencies("part_ntk_shares", shares, 1e4, [2048, 2048]);
}

#[test]
fn scalings_after_that_of_llama_3_1() {
    let llama = json!({ "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192 });
    let original = 131_072;
    for (name, part) in [
        ("llama3_linear", json!({ "rope_type": "linear", "factor": 4.0 })),
        ("llama3_ntk", json!({ "rope_type": "ntk", "factor": 4.0 })),
        ("llama3_dynamic_three_times", json!({ "rope_type": "dynamic", "factor": 1.0 })),
        ("llama3_yarn", json!({ "rope_type": "yarn", "factor": 4.0 })),
    ] {
        let composed = json!({ "rope_type": "composed", "parts": [llama, part] });
        assert_frequencies(name, composed, 5e5, [original, 3 * original]);
    }
}

#[test]
fn t5_s_buckets_of_earlier_keys_in_a_bidirectional_table() {
    let config = crate::zoo::t5_bias::T5BiasConfig {
        buckets: crate::zoo::t5_bias::BucketSides::Bidirectional,
        ..Default::default()
    };
    let table = buckets::causal(config.earlier_buckets(), config.max_distance);
    let bucket = |n: usize| table[n.min(table.len() - 1)] as f64;
    assert_values("t5_bidirectional", &(0..200).map(bucket).collect::<Vec<_>>());
}

use burn::tensor::{Device, Tensor, TensorData};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Pairs, Rotation, Scaling, Spectrum};
use crate::Positions;
use crate::testkit::close::numbers;

fn scaling(settings: Value) -> Scaling {
    serde_json::from_value(settings).unwrap()
}

fn spectrum(settings: Value, base: f64, dim: usize, original: usize, len: usize) -> Spectrum {
    scaling(settings).spectrum(base, dim, original, len)
}

/// Compares with a tolerance of half a unit of the last digit that the tables print.
#[track_caller]
fn assert_printed(spectrum: &Spectrum, expected: &[(usize, f64)], digits: f64) {
    for (m, expected) in expected {
        let found = spectrum.frequencies[*m];
        assert!((found / expected - 1.0).abs() < digits, "pair {m}: {found}, expected {expected}");
    }
}

/// Values of HuggingFace transformers, `tests/utils/test_modeling_rope_utils.py` at 087e80025: D
/// 128, base 10000, original length 2048.
#[test]
fn frequencies_are_those_of_huggingfaces_tests() {
    const DIGITS: f64 = 6e-5;
    let of = |settings, len| spectrum(settings, 1e4, 128, 2048, len);
    let default = of(json!({ "rope_type": "default" }), 16_384);
    assert_printed(&default, &[(1, 8.6596e-1), (63, 1.1548e-4)], DIGITS);

    let linear = of(json!({ "rope_type": "linear", "factor": 10.0 }), 16_384);
    for (scaled, own) in linear.frequencies.iter().zip(&default.frequencies) {
        assert!((scaled * 10.0 / own - 1.0).abs() < 1e-12);
    }

    let dynamic = json!({ "rope_type": "dynamic", "factor": 10.0 });
    let at_rest = of(dynamic.clone(), 2048);
    assert_eq!(at_rest, default);
    let expected = [(1, 8.0931e-1), (2, 6.5498e-1), (63, 1.6265e-6)];
    assert_printed(&of(dynamic, 16_384), &expected, DIGITS);

    let yarn = of(json!({ "rope_type": "yarn", "factor": 10.0 }), 2048);
    let expected = [
        (16, 1.0000e-1),
        (17, 8.3479e-2),
        (18, 6.9590e-2),
        (19, 5.7925e-2),
        (30, 6.6143e-3),
        (40, 4.3007e-4),
        (41, 2.7384e-4),
        (63, 1.1548e-5),
    ];
    assert_printed(&yarn, &expected, DIGITS);
    assert!((yarn.attention_factor - 1.230_259).abs() < 5e-7);

    let llama = json!({ "rope_type": "llama3", "factor": 10.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 2048 });
    let expected = [
        (30, 1.3335e-2),
        (31, 1.0730e-2),
        (32, 7.7785e-3),
        (40, 3.4539e-4),
        (41, 2.7384e-4),
        (63, 1.1548e-5),
    ];
    assert_printed(&of(llama, 2048), &expected, DIGITS);
}

/// Values of YaRN and Llama 3 scaling, tabulated with six decimals.
#[test]
fn frequencies_are_those_of_the_specification() {
    const DIGITS: f64 = 6e-7;
    let yarn = spectrum(json!({ "rope_type": "yarn", "factor": 16.0 }), 1e4, 128, 4096, 4096);
    let expected = [(21, 4.694_086e-2), (32, 5.673_077e-3), (45, 1.517_716e-4)];
    assert_printed(&yarn, &expected, DIGITS);
    assert!((yarn.attention_factor - 1.277_259).abs() < 5e-7);

    let small = |truncate: bool| {
        let settings = json!({ "rope_type": "yarn", "factor": 4.0, "truncate": truncate });
        spectrum(settings, 1e4, 64, 512, 512)
    };
    let expected = [(1, 7.498_942e-1), (8, 7.115_385e-2), (16, 2.5e-3), (31, 3.333_804e-5)];
    assert_printed(&small(true), &expected, DIGITS);
    assert_printed(&small(false), &[(8, 7.039_864e-2)], DIGITS);

    let llama = json!({ "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192 });
    let expected = [
        (28, 3.211_446e-3),
        (29, 2.166_571e-3),
        (30, 1.371_894e-3),
        (35, 9.556_212e-5),
        (63, 3.068_926e-7),
    ];
    assert_printed(&spectrum(llama, 5e5, 128, 8192, 8192), &expected, DIGITS);
}

#[test]
fn longrope_switches_its_list_past_the_original_length() {
    let divisors = |step: f64| (0..64).map(|m| 1.0 + step * f64::from(m)).collect::<Vec<_>>();
    let settings = json!({ "rope_type": "longrope", "factor": 10.0,
        "short_factor": divisors(0.1), "long_factor": divisors(0.9) });
    let plain = spectrum(json!({ "rope_type": "default" }), 1e4, 128, 2048, 1);
    for (len, step) in [(2048, 0.1), (2049, 0.9)] {
        let scaled = spectrum(settings.clone(), 1e4, 128, 2048, len);
        for (m, (scaled, own)) in scaled.frequencies.iter().zip(&plain.frequencies).enumerate() {
            assert!((own / scaled - (1.0 + step * m as f64)).abs() < 1e-9, "{len} {m}");
        }
        // Factors for s 10 and L0 2048, and for s 32 and L0 4096.
        assert!((scaled.attention_factor - 1.141_049).abs() < 5e-7);
    }
    let ones = vec![1.0; 64];
    let settings = json!({ "rope_type": "longrope", "factor": 32.0, "short_factor": ones,
        "long_factor": ones, "original_max_position_embeddings": 4096 });
    let scaled = spectrum(settings, 1e4, 128, 2048, 1);
    assert!((scaled.attention_factor - 1.190_238).abs() < 5e-7);
}

/// Gemma 4: a quarter of the pairs of 512 channels.
#[test]
fn proportional_keeps_the_exponents_of_the_whole_head() {
    let settings = json!({ "rope_type": "proportional", "partial_rotary_factor": 0.25 });
    let scaled = spectrum(settings, 1e6, 512, 1, 1);
    assert_eq!(scaled.frequencies.iter().filter(|f| **f > 0.0).count(), 64);
    assert!((scaled.frequencies[63] - 1e6f64.powf(-126.0 / 512.0)).abs() < 1e-15);
}

/// Values of the authors' `modeling_cope.py` at Llama 3's sizes: 64 pairs, base 500,000, 20 of them clipped.
#[test]
fn clipping_tapers_the_slowest_pairs() {
    let plain = spectrum(json!({ "rope_type": "default" }), 5e5, 128, 1, 1).frequencies;
    let of = |settings| spectrum(settings, 5e5, 128, 1, 1).frequencies;
    let soft = of(json!({ "rope_type": "clipped" }));
    let hard = of(json!({ "rope_type": "clipped", "pairs": 20, "hard": true }));
    for m in 0..64 {
        let t = std::f64::consts::PI * (m as f64 - 44.0).max(0.0) / 19.0;
        assert!((soft[m] / plain[m] - 0.5 * (1.0 + t.cos())).abs() < 1e-12, "{m}");
        assert!((hard[m] - if m < 44 { plain[m] } else { 0.0 }).abs() < 1e-15, "{m}");
    }
    assert!(soft[44].to_bits() == plain[44].to_bits() && soft[63] < 1e-20);
}

/// HoPE at Llama 2's sizes: 10,000 to the power 45/64 is 649, whose turn is 4080 positions long.
#[test]
fn pairs_without_a_whole_turn_within_the_original_length_do_not_turn() {
    for (settings, original) in [
        (json!({ "rope_type": "high-frequency" }), 4096),
        (json!({ "rope_type": "high-frequency", "original_max_position_embeddings": 4096 }), 64),
    ] {
        let scaled = spectrum(settings, 1e4, 128, original, 9000);
        assert_eq!(scaled.frequencies.iter().filter(|f| **f > 0.0).count(), 46);
        assert!((scaled.frequencies[45] - 1e4f64.powf(-45.0 / 64.0)).abs() < 1e-15);
    }
}

#[test]
fn deepseeks_mscales_divide_each_other() {
    let attention = |mscale: f64, all: f64| {
        let settings = json!({ "rope_type": "yarn", "factor": 40.0, "mscale": mscale,
            "mscale_all_dim": all });
        spectrum(settings, 1e4, 64, 4096, 4096).attention_factor
    };
    assert!((attention(0.707, 0.707) - 1.0).abs() < 1e-15);
    let expected = (0.1 * 40f64.ln() + 1.0) / (0.05 * 40f64.ln() + 1.0);
    assert!((attention(1.0, 0.5) - expected).abs() < 1e-15);
    // A zero counts as missing.
    assert!((attention(0.5, 0.0) - (0.1 * 40f64.ln() + 1.0)).abs() < 1e-15);
}

/// Objects from published configurations, and the form in which they are written.
#[test]
fn objects_of_huggingface_survive_a_round_trip() {
    for object in [
        json!({ "rope_type": "default" }),
        json!({ "rope_type": "linear", "factor": 8.0 }),
        json!({ "rope_type": "dynamic", "factor": 2.0 }),
        json!({ "rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 64 }),
        json!({ "beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
            "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": false }),
        json!({ "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192, "rope_type": "llama3" }),
        json!({ "rope_type": "longrope", "factor": 32.0, "short_factor": [1.0, 1.5],
            "long_factor": [2.0, 4.0] }),
        json!({ "rope_type": "proportional", "partial_rotary_factor": 0.25, "factor": 1.0 }),
        json!({ "rope_type": "ntk", "factor": 4.0 }),
        json!({ "rope_type": "clipped", "pairs": 20 }),
        json!({ "rope_type": "clipped", "pairs": 8, "hard": true }),
        json!({ "rope_type": "high-frequency" }),
    ] {
        let read = scaling(object.clone());
        assert_eq!(serde_json::to_value(&read).unwrap(), object);
        assert_eq!(object["rope_type"], read.id());
    }
    let written = serde_json::to_value(scaling(json!({ "type": "yarn", "factor": 4.0 }))).unwrap();
    let expected = json!({ "rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0,
        "beta_slow": 1.0, "truncate": true });
    assert_eq!(written, expected);
}

#[test]
fn older_spellings_are_read() {
    let new = scaling(json!({ "rope_type": "linear", "factor": 2.0 }));
    assert_eq!(scaling(json!({ "type": "linear", "factor": 2.0 })), new);
    let both = json!({ "type": "linear", "rope_type": "linear", "factor": 2.0 });
    assert_eq!(scaling(both), new);
    for none in [json!(null), json!({ "type": "none" }), json!({ "rope_type": "default" })] {
        assert_eq!(scaling(none), Scaling::None);
    }
    let deepseek = json!({ "beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707,
        "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096, "type": "yarn" });
    scaling(deepseek).check("rope", 64, 4096).unwrap();
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    for (object, expected) in [
        (json!({ "factor": 2.0 }), "rope_type"),
        (json!({ "rope_type": "linear" }), "missing field `factor`"),
        (json!({ "rope_type": "dynamic" }), "missing field `factor`"),
        (json!({ "rope_type": "linear", "factor": "2" }), "invalid type"),
        (json!({ "rope_type": "linear", "factor": 2.0, "beta_fast": 3 }), "`beta_fast`"),
        (json!({ "rope_type": "default", "factor": 2.0 }), "`factor`"),
        (json!({ "rope_type": "yarn", "factor": 2.0, "betta_fast": 3 }), "`betta_fast`"),
        (json!({ "rope_type": "yarm", "factor": 2.0 }), "`yarm`"),
        (json!({ "rope_type": "longrope", "factor": 2.0, "short_factor": [1] }), "`long_factor`"),
        (
            json!({ "rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4 }),
            "`original_max_position_embeddings`",
        ),
        (json!({ "rope_type": "linear", "type": "ntk", "factor": 2.0 }), "remove `type`"),
        (json!({ "rope_type": "linear", "factor": 2.0, "rope_theta": 1e6 }), "set `base`"),
        (
            json!({ "rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5 }),
            "set `rotary_fraction`",
        ),
        (json!([1, 2]), "invalid type"),
    ] {
        let error = serde_json::from_value::<Scaling>(object.clone()).unwrap_err().to_string();
        assert!(error.contains(expected), "{object}: {error}");
    }
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let llama = |low: f64, high: f64| {
        json!({ "rope_type": "llama3", "factor": 8, "low_freq_factor": low,
            "high_freq_factor": high, "original_max_position_embeddings": 64 })
    };
    let longrope = |short: &[f64], long: &[f64]| json!({ "rope_type": "longrope", "factor": 2, "short_factor": short, "long_factor": long });
    for (object, expected) in [
        (json!({ "rope_type": "linear", "factor": 0.5 }), "scaling.factor is 0.5"),
        (json!({ "rope_type": "ntk", "factor": 0.5 }), "scaling.factor is 0.5"),
        (json!({ "rope_type": "dynamic", "factor": 0.5 }), "scaling.factor is 0.5"),
        (
            json!({ "rope_type": "dynamic", "factor": 2, "original_max_position_embeddings": 0 }),
            "scaling.original_max_position_embeddings is 0",
        ),
        (json!({ "rope_type": "yarn", "factor": 0.5 }), "scaling.factor is 0.5"),
        (
            json!({ "rope_type": "yarn", "factor": 2, "beta_fast": 1, "beta_slow": 32 }),
            "scaling.beta_fast is 1, expected at least 32",
        ),
        (json!({ "rope_type": "yarn", "factor": 2, "beta_slow": 0 }), "scaling.beta_slow is 0"),
        (
            json!({ "rope_type": "yarn", "factor": 2, "attention_factor": -1 }),
            "scaling.attention_factor is -1",
        ),
        (
            json!({ "rope_type": "yarn", "factor": 2, "attention_factor": 0 }),
            "scaling.attention_factor is 0",
        ),
        (
            json!({ "rope_type": "yarn", "factor": 2, "mscale": 1 }),
            "scaling.mscale_all_dim is absent",
        ),
        (
            json!({ "rope_type": "yarn", "factor": 2, "mscale_all_dim": 1 }),
            "scaling.mscale is absent",
        ),
        (
            json!({ "rope_type": "yarn", "factor": 2, "attention_factor": 1, "mscale": 1 }),
            "scaling.attention_factor is given",
        ),
        (llama(4.0, 4.0), "scaling.high_freq_factor is 4, expected more than low_freq_factor"),
        (llama(-1.0, 4.0), "scaling.low_freq_factor is -1"),
        (longrope(&[1.0; 3], &[1.0; 4]), "scaling.short_factor is 3 numbers, expected 4"),
        (longrope(&[1.0; 4], &[1.0; 5]), "scaling.long_factor is 5 numbers, expected 4"),
        (longrope(&[1.0, 1.0, 0.0, 1.0], &[1.0; 4]), "scaling.short_factor is 0"),
        (
            json!({ "rope_type": "longrope", "short_factor": [1, 1, 1, 1], "long_factor": [1, 1, 1, 1] }),
            "scaling.factor is absent",
        ),
        (
            json!({ "rope_type": "proportional", "partial_rotary_factor": 1.5 }),
            "scaling.partial_rotary_factor is 1.5",
        ),
        (json!({ "rope_type": "proportional", "factor": 0.5 }), "scaling.factor is 0.5"),
        (longrope(&[1.0; 4], &[1.0, 1.0, -1.0, 1.0]), "scaling.long_factor is -1"),
        (
            json!({ "rope_type": "yarn", "factor": 2, "extrapolation_factor": 1.5 }),
            "scaling.extrapolation_factor is 1.5",
        ),
        (json!({ "rope_type": "part-ntk", "factor": 0.5 }), "scaling.factor is 0.5"),
        (
            json!({ "rope_type": "part-ntk", "factor": 2, "ntk_factor": 1.5 }),
            "scaling.ntk_factor is 1.5",
        ),
        (json!({ "rope_type": "clipped", "pairs": 0 }), "scaling.pairs is 0"),
        (
            json!({ "rope_type": "high-frequency", "original_max_position_embeddings": 0 }),
            "scaling.original_max_position_embeddings is 0",
        ),
        (json!({ "rope_type": "composed", "parts": [] }), "scaling.parts is empty"),
        (
            json!({ "rope_type": "composed", "parts": [{ "rope_type": "linear", "factor": 0.5 }] }),
            "scaling.factor is 0.5",
        ),
    ] {
        let error = scaling(object.clone()).check("rope", 8, 64).unwrap_err().to_string();
        assert!(error.contains(expected), "{object}: {error}");
    }
    let error = scaling(json!({ "rope_type": "ntk", "factor": 2 })).check("rope", 2, 64);
    assert!(error.unwrap_err().to_string().contains("model.head_dim is 2"));
}

proptest! {
    /// A rotation keeps the length of every pair, rotates it by the angle, and leaves other
    /// channels unchanged.
    #[test]
    fn pairs_keep_their_length_and_gain_the_angle(
        interleaved: bool, pairs in 1usize..5, rest in 0usize..4, first in 0usize..50, speed in 0.0f64..3.0,
    ) {
        let device = Device::flex();
        let kind = if interleaved { Pairs::Interleaved } else { Pairs::HalfSplit };
        let at = Positions::new(vec![first, first + 1, first + 4], 1).unwrap();
        let turn = |n: usize, m: usize| (speed * n as f64 / (m + 1) as f64, 1.0);
        let rotation = Rotation::tabulate(&at, kind, pairs, &device, turn);
        let channels = 2 * pairs + rest;
        let values = (0..2 * channels).map(|n| 1.0 + (n as f32).sin()).collect::<Vec<_>>();
        let u = Tensor::from_data(TensorData::new(values, [1, 1, 2, channels]), &device);
        let (before, after) = (numbers(u.clone()), numbers(rotation.rows(&at).turn(u)));
        for (row, n) in at.rows().iter().enumerate() {
            let (before, after) = (&before[row * channels..], &after[row * channels..]);
            for m in 0..pairs {
                let (a, b) = if interleaved { (2 * m, 2 * m + 1) } else { (m, m + pairs) };
                let length = before[a].hypot(before[b]);
                prop_assert!((after[a].hypot(after[b]) - length).abs() < 1e-5);
                let angle = before[b].atan2(before[a]) + turn(*n, m).0;
                prop_assert!((after[a] - length * angle.cos()).abs() < 1e-5);
                prop_assert!((after[b] - length * angle.sin()).abs() < 1e-5);
            }
            prop_assert_eq!(&before[2 * pairs..channels], &after[2 * pairs..channels]);
        }
    }
}

#[test]
fn a_yarn_without_a_factor_takes_it_from_the_lengths_of_the_run() {
    let dims =
        crate::Dims { layers: 1, width: 8, heads: 1, head_dim: 8, train_len: 16, max_len: 64 };
    let resolved = |settings| serde_json::to_value(scaling(settings).resolved(&dims)).unwrap();
    assert_eq!(resolved(json!({ "rope_type": "yarn" }))["factor"], 4.0);
    let given = json!({ "rope_type": "yarn", "original_max_position_embeddings": 128 });
    assert_eq!(resolved(given)["factor"], 1.0);
    assert_eq!(resolved(json!({ "rope_type": "yarn", "factor": 3.0 }))["factor"], 3.0);
}

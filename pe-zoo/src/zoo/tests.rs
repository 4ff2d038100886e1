use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::*;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/zoo")
}

#[test]
fn every_file_of_the_folder_is_one_entry_of_the_list() {
    let files = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|stem| stem != "registry" && stem != "tests")
        .collect::<BTreeSet<_>>();
    let listed = MODULES.iter().map(|module| (*module).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(files, listed);
}

#[test]
fn ids_are_kebab_case_sorted_and_equal_to_the_file() {
    for (meta, module) in ALL.iter().zip(MODULES) {
        assert_eq!(meta.id, module.replace('_', "-"));
    }
    assert!(MODULES.is_sorted(), "{MODULES:?}");
}

#[test]
fn every_file_documents_itself_under_the_same_headings() {
    let headings = ["What it does", "Formula", "Shapes", "Settings", "Deviations", "References"];
    for module in MODULES {
        let text = std::fs::read_to_string(folder().join(format!("{module}.rs"))).unwrap();
        let found =
            text.lines().filter_map(|line| line.strip_prefix("//! ## ")).collect::<Vec<_>>();
        assert_eq!(found, headings, "{module}");
    }
}

#[test]
fn settings_survive_a_round_trip() {
    for meta in ALL {
        let config = PeConfig::from_id(meta.id).unwrap();
        let Value::Object(fields) = serde_json::to_value(&config).unwrap() else {
            panic!("{} is no map", meta.id);
        };
        assert_eq!(PeConfig::from_fields(meta.id, fields).unwrap(), config);
    }
}

#[test]
fn no_setting_has_a_name_that_suites_need_for_themselves() {
    for meta in ALL {
        let config = serde_json::to_value(PeConfig::from_id(meta.id).unwrap()).unwrap();
        for taken in ["kind", "name"] {
            assert!(config.get(taken).is_none(), "{} has a setting `{taken}`", meta.id);
        }
    }
}

#[test]
fn an_unknown_setting_is_refused_by_name() {
    for meta in ALL {
        let Value::Object(fields) = json!({ "thetta": 5 }) else { unreachable!() };
        let error = PeConfig::from_fields(meta.id, fields).unwrap_err().to_string();
        assert!(error.contains(meta.id) && error.contains("thetta"), "{error}");
    }
}

#[test]
fn an_unknown_setting_within_a_choice_is_refused_by_name() {
    let Value::Object(fields) =
        json!({ "scaling": { "type": "linear", "factor": 2.0, "facter": 1 } })
    else {
        unreachable!()
    };
    let error = PeConfig::from_fields("rope", fields).unwrap_err().to_string();
    assert!(error.contains("facter"), "{error}");
}

#[test]
fn an_unknown_id_suggests_the_nearest() {
    let error = PeConfig::from_id("relativ").unwrap_err().to_string();
    assert!(
        error.contains("did you mean `relative`?") && error.contains("known: abacus"),
        "{error}"
    );
}

#[test]
fn option_sets_beside_the_defaults_conform_too() {
    let sets = [
        ("abacus", json!({ "digits": [0, 2], "max_offset": 3, "size": 6, "std": 1.0 })),
        ("abacus", json!({ "beyond": "refuse", "max_offset": 30, "size": 66 })),
        ("alibi", json!({ "slopes": "paper" })),
        ("alibi", json!({ "learning": "all-layers" })),
        ("alibi", json!({ "slopes": "paper", "learning": "per-layer" })),
        ("alibi", json!({ "slopes": { "given": [0.5, 0.0, -0.125] } })),
        ("cope", json!({ "convention": "code", "max_positions": 5 })),
        ("cope", json!({ "convention": "equation", "sharing": "all-layers" })),
        ("cope", json!({ "gates": "query-value" })),
        ("cope", json!({ "gates": "separate-keys" })),
        ("cope", json!({ "gates": "separate-keys", "layers": { "type": "every", "n": 2 } })),
        ("cope", json!({ "max_positions": 1024, "layers": { "type": "first" } })),
        ("cope-alibi", json!({ "slopes": "from-1", "sign": "plus" })),
        ("cope-alibi", json!({ "slopes": "from-1/16", "convention": "code" })),
        ("cope-alibi", json!({ "slopes": "learned", "convention": "equation" })),
        ("cope-mlp", json!({ "activation": "gelu", "width": 5 })),
        ("cope-mlp", json!({ "layers": { "type": "first" }, "convention": "code" })),
        ("dape", json!({ "base": { "type": "none" }, "width": 5 })),
        ("dape", json!({ "base": { "type": "alibi" } })),
        ("dape", json!({ "base": { "type": "alibi", "learning": "per-layer" } })),
        ("dape", json!({ "base": { "type": "kerple", "kernel": "power" }, "width": 1 })),
        ("dape", json!({ "base": { "type": "fire", "initial_len": 20.0 } })),
        ("dape", json!({ "mixer": "convolution", "width": 5 })),
        ("dape", json!({ "mixer": "convolution", "base": { "type": "none" } })),
        ("dape", json!({ "mixer": "convolution", "base": { "type": "fire" }, "width": 3 })),
        ("fire", json!({ "sharing": "all-layers", "initial_len": 10.0 })),
        ("fire", json!({ "width": 5, "c": 2.0, "activation": "leaky-relu" })),
        ("fope", json!({ "base": 3.0 })),
        ("fope", json!({ "base": 1.5, "gain": 0.6, "padding": "zero" })),
        ("fox", json!({ "gates": { "type": "full", "bias": 5.0 } })),
        ("fox", json!({ "gates": { "type": "bias-only", "tau_max": 30.0 } })),
        ("fox", json!({ "gates": { "type": "fixed", "tau_min": 0.5, "tau_max": 1000.0 } })),
        ("grape", json!({ "variant": { "type": "additive" } })),
        ("grape", json!({ "variant": { "type": "additive", "gate": "query", "qk_norm": "rms" } })),
        ("grape", json!({ "variant": { "type": "additive", "gate": "both" } })),
        ("grape", json!({ "variant": { "type": "contextual" } })),
        ("grape", json!({ "variant": { "type": "contextual", "phase": "per-head" } })),
        ("grape", json!({ "variant": { "type": "contextual", "qk_norm": "none", "base": 50.0 } })),
        ("grape", json!({ "variant": { "type": "multiplicative" } })),
        ("grape", json!({ "variant": { "type": "multiplicative", "spectrum": "per-head" } })),
        ("grape", json!({ "variant": { "type": "multiplicative", "qk_norm": "rms" } })),
        ("grape", json!({ "variant": { "type": "multiplicative", "storage": 1.0 } })),
        ("grape", json!({ "variant": { "type": "path", "dim": 2, "qk_norm": "none" } })),
        ("kerple", json!({ "kernel": "power" })),
        ("kerple", json!({ "sharing": "per-layer" })),
        ("learned-absolute", json!({ "max_len": 70, "std": 1.0 })),
        ("learned-absolute", json!({ "max_len": 70, "std": 1.0 })),
        ("path", json!({ "forget": { "type": "gate", "bias": 1.0 } })),
        ("path", json!({ "rank": 1, "kernel": 1 })),
        ("path", json!({ "kernel": 5 })),
        ("pope", json!({ "base": 50.0, "initial_phase": "uniform" })),
        ("relative", json!({ "max_distance": 4 })),
        ("relative-capped", json!({ "max_distance": 4 })),
        ("rope", json!({ "layout": "interleaved" })),
        ("rope", json!({ "scaling": { "type": "linear", "factor": 2.0 } })),
        ("rope", json!({ "scaling": { "type": "ntk", "factor": 4.0 }, "base": 500.0 })),
        ("rope", json!({ "rotary_fraction": 0.67, "base": 50.0 })),
        ("rope", json!({ "rotary_fraction": 0.67, "layout": "interleaved" })),
        ("rope", json!({ "scaling": { "rope_type": "ntk", "factor": 4.0 }, "base": 500.0 })),
        ("rope", json!({ "scaling": { "rope_type": "dynamic", "factor": 2.0 } })),
        (
            "rope",
            json!({ "base": 50.0, "scaling": { "rope_type": "dynamic", "factor": 1.0,
            "original_max_position_embeddings": 6 } }),
        ),
        (
            "rope",
            json!({ "base": 50.0, "scaling": { "rope_type": "yarn", "factor": 4.0,
            "beta_fast": 2.0, "beta_slow": 0.5 } }),
        ),
        (
            "rope",
            json!({ "scaling": { "rope_type": "yarn", "factor": 4.0, "truncate": false,
            "mscale": 1.0, "mscale_all_dim": 0.5 } }),
        ),
        (
            "rope",
            json!({ "scaling": { "rope_type": "longrope", "factor": 2.0,
            "short_factor": [1.0, 1.5, 2.0], "long_factor": [1.0, 3.0, 9.0] } }),
        ),
        (
            "rope",
            json!({ "scaling": { "rope_type": "longrope", "attention_factor": 1.2,
            "short_factor": [1.0, 1.5, 2.0], "long_factor": [1.0, 1.5, 2.0] } }),
        ),
        (
            "rope",
            json!({ "base": 50.0, "scaling": { "rope_type": "llama3", "factor": 8.0,
            "low_freq_factor": 0.5, "high_freq_factor": 2.0,
            "original_max_position_embeddings": 16 } }),
        ),
        (
            "rope",
            json!({ "scaling": { "rope_type": "proportional", "factor": 2.0,
            "partial_rotary_factor": 0.7 } }),
        ),
        ("sandwich", json!({ "d_bar": 32 })),
        (
            "selective-rope",
            json!({ "map": { "kind": "full-rank" }, "bias": true,
            "filter": { "kind": "convolution", "kernel": 3, "activation": "silu" } }),
        ),
        (
            "selective-rope",
            json!({ "filter": { "kind": "difference" },
            "gate": { "kind": "per-head" } }),
        ),
        (
            "selective-rope",
            json!({ "map": { "kind": "low-rank", "rank": 2 },
            "filter": { "kind": "convolution", "kernel": 1 },
            "gate": { "kind": "per-head-low-rank", "rank": 3 },
            "temperature": { "kind": "rfa", "theta": 0.4, "largest": 0.5 } }),
        ),
        (
            "selective-rope",
            json!({ "bias": true, "gate": { "kind": "per-channel" },
            "temperature": { "kind": "rope", "base": 10.0, "largest": 0.3 } }),
        ),
        ("sinusoidal", json!({ "base": 100.0 })),
        ("sinusoidal", json!({ "base": 100.0 })),
        ("stick-breaking", json!({ "current": "included" })),
        ("stick-breaking", json!({ "remainder": "own-token" })),
        ("stick-breaking", json!({ "current": "included", "remainder": "own-token" })),
        ("t5-bias", json!({ "sharing": "per-layer" })),
        ("t5-bias", json!({ "num_buckets": 7, "max_distance": 20, "std": 1.0 })),
        ("tape", json!({ "attention_update": "full-mix", "base": 500.0 })),
        ("tape", json!({ "attention_update": "none", "training_shift": { "type": "none" } })),
        ("tape", json!({ "feed_forward_update": { "type": "off" } })),
        ("tape", json!({ "feed_forward_update": { "type": "on", "position_size": 5 } })),
        ("tape", json!({ "form": "vector" })),
        ("tape", json!({ "form": "vector", "attention_update": "full-mix" })),
        ("tape", json!({ "form": "tensor-not-equivariant" })),
        ("tape", json!({ "form": "tensor-not-equivariant", "attention_update": "full-mix" })),
        ("tape", json!({ "form": "vector-not-equivariant" })),
        ("tape", json!({ "form": "vector-not-equivariant", "attention_update": "full-mix" })),
        ("tape", json!({ "scaling": { "rope_type": "linear", "factor": 2.0 } })),
        ("tape", json!({ "scaling": { "rope_type": "yarn", "factor": 4.0 } })),
        ("xpos", json!({ "layout": "half-split", "scale_base": 20.0, "base": 50.0 })),
    ];
    for (id, set) in sets {
        let Value::Object(fields) = set else { unreachable!() };
        crate::testkit::assert_conforms(&PeConfig::from_fields(id, fields).unwrap());
    }
}

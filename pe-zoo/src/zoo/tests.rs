use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::card::{Composition, Properties};
use crate::testkit::CheckResult;
use crate::{Combination, Dims, Registry};

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/zoo")
}

/// Names, without extension, of the files in the folder.
fn files() -> BTreeSet<String> {
    std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|stem| stem != "tests")
        .collect()
}

#[test]
fn every_file_of_the_folder_is_registered_under_its_name() {
    let ids = Registry::builtin().cards().map(|card| card.id.replace('-', "_")).collect();
    assert_eq!(files(), ids);
}

#[test]
fn every_file_documents_itself_under_the_same_headings() {
    let headings = ["What it does", "Formula", "Shapes", "Settings", "Deviations", "References"];
    let mut of_learned = headings.to_vec();
    of_learned.insert(4, "Initial values");
    for module in files() {
        let text = std::fs::read_to_string(folder().join(format!("{module}.rs"))).unwrap();
        let found =
            text.lines().filter_map(|line| line.strip_prefix("//! ## ")).collect::<Vec<_>>();
        assert!(found == headings || found == of_learned, "{module}: {found:?}");
    }
}

/// Collects every file below `folder` that may contain products of an encoding or of the reference
/// engine.
fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    // Kernels count their own products, and tests contain no products of an encoding.
    let others = ["count.rs", "fused", "kernels", "ops", "testkit", "tests", "tests.rs"];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if others.contains(&name) {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn no_setting_has_a_name_that_suites_need_for_themselves() {
    let registry = Registry::builtin();
    for card in registry.cards() {
        let config = registry.encoding(card.id).unwrap();
        for taken in ["kind", "name"] {
            assert!(config.fields().get(taken).is_none(), "{} has a setting `{taken}`", card.id);
        }
    }
}

/// Uncounted products would not be seen by the check of cost formulas.
#[test]
fn every_product_is_counted() {
    let mut files = Vec::new();
    sources(&folder().join(".."), &mut files);
    assert!(files.len() > 40, "{}", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for uncounted in [".matmul(", "::product(", "nn::Linear", "module::linear(", "einsum("] {
            assert!(
                !text.contains(uncounted),
                "{} has `{uncounted}`: multiply with crate::count::CountedMatmul, so that the \
                 testkit can hold `cost` against what is multiplied",
                file.display()
            );
        }
    }
}

#[test]
fn an_unknown_setting_within_a_choice_is_refused_by_name() {
    let Value::Object(fields) =
        json!({ "scaling": { "type": "linear", "factor": 2.0, "facter": 1 } })
    else {
        unreachable!()
    };
    let error = Registry::builtin().configured("rope", fields).unwrap_err().to_string();
    assert!(error.contains("facter"), "{error}");
}

/// Settings that came after records were written are not serialized at their defaults, so that keys of cells stay the same.
#[test]
fn settings_that_are_left_out_at_their_defaults_may_be_given() {
    for (text, plain) in [
        ("kerple{weight=none}", "kerple"),
        ("t5-bias{buckets=causal}", "t5-bias"),
        ("xpos{centre=middle}", "xpos"),
        ("pope{rotary_fraction=1.0}", "pope"),
    ] {
        let given = Combination::parse(text).unwrap();
        assert_eq!(given.to_string(), plain);
        assert_eq!(given, Combination::parse(plain).unwrap());
    }
}

#[test]
fn an_unknown_id_suggests_the_nearest() {
    let error = Registry::builtin().encoding("relativ").unwrap_err().to_string();
    assert!(
        error.contains("did you mean `relative`?") && error.contains("known: abacus"),
        "{error}"
    );
}

/// Settings other than the defaults, by encoding.
fn option_sets() -> BTreeMap<String, Vec<Map<String, Value>>> {
    serde_json::from_str(include_str!("tests/option_sets.json")).unwrap()
}

/// Encoding at these settings, combined with RoPE if it has no effect by itself.
fn alone(id: &str, settings: Map<String, Value>) -> Combination {
    let registry = Registry::builtin();
    let mut parts = vec![registry.configured(id, settings).unwrap()];
    if let Composition::Over { default } = parts[0].composition() {
        parts.push(registry.encoding(default).unwrap());
    }
    Combination::new(parts).unwrap()
}

/// Checks an encoding at its default settings and at its option sets. No check may be left out.
fn conforms(id: &str) {
    let others = option_sets().remove(id).unwrap_or_default();
    for settings in std::iter::once(Map::new()).chain(others) {
        let config = alone(id, settings);
        let mut findings = crate::testkit::examine(&config).unwrap();
        findings.retain(|finding| finding.verdict != CheckResult::Holds);
        assert!(findings.is_empty(), "{config}: {findings:#?}");
    }
}

/// One conformance test per encoding, so that a failure names the encoding.
mod conformance {
    include!(concat!(env!("OUT_DIR"), "/conformance.rs"));
}

#[test]
fn option_sets_are_of_known_encodings() {
    for id in option_sets().keys() {
        Registry::builtin().entry(id).unwrap();
    }
}

/// Properties stated by the papers, for every encoding, option set and some combinations.
#[test]
fn properties_found_by_probing_are_those_that_are_known() {
    let known: Vec<(String, Properties)> =
        serde_json::from_str(include_str!("tests/properties.json")).unwrap();
    let mut wrong = Vec::new();
    for (text, expected) in &known {
        let found = Combination::parse(text).unwrap().properties().unwrap();
        if found != *expected {
            wrong.push(format!("{text}: found {found:?}, expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let listed = known.iter().map(|(text, _)| text.as_str()).collect::<BTreeSet<_>>();
    for card in Registry::builtin().cards() {
        if !listed.contains(card.id) {
            let found = Combination::parse(card.id).unwrap().properties().unwrap();
            let row = serde_json::to_string(&(card.id, found)).unwrap();
            panic!("pe-zoo/src/zoo/tests/properties.json lacks a row; if true, add: {row}");
        }
    }
}

/// Biases and slopes of every encoding, and of settings that learn others than the defaults do.
#[test]
fn biases_found_by_probing_are_those_that_are_known() {
    let fire = ["networks.b1", "networks.c", "networks.multiplier", "networks.w1", "networks.w2"];
    // The network that adapts a base also reads the constant that the softmax would ignore.
    let fire_base = ["b1", "b2", "c", "multiplier", "w1", "w2"];
    let fire_base = fire_base.map(|name| format!("base.Fire.networks.{name}"));
    let fire_base = fire_base.each_ref().map(String::as_str);
    let known: [(&str, &[&str]); 13] = [
        ("dynamic-position-bias", &["networks.maps.bias", "networks.maps.weight"]),
        ("t5-bias", &["tables"]),
        ("kerple", &["a", "p"]),
        ("kerple{kernel=power,sharing=per-layer}", &["a", "p"]),
        ("fire", &fire),
        ("alibi{learning=all-layers}", &["log_slopes"]),
        ("alibi{learning=per-layer}", &["log_slopes"]),
        ("fox{gates={type=bias-only}}", &["gates.BiasOnly"]),
        // The base's own parameters, and not those of the network that adapts it.
        ("dape", &["base.Kerple.a", "base.Kerple.p"]),
        ("dape(fire)", &fire_base),
        ("dape(alibi)", &[]),
        ("dape(none)", &[]),
        // Slopes of a contextual position act through the content.
        ("cope-alibi{slopes=learned}", &[]),
    ];
    let found = |text: &str| {
        let parts = alone_or(text).biases().unwrap();
        parts.iter().flat_map(|part| part.iter().cloned()).collect::<Vec<_>>()
    };
    for (text, expected) in known {
        assert_eq!(found(text), expected, "{text}");
    }
    for card in Registry::builtin().cards() {
        if known.iter().all(|(text, _)| *text != card.id) {
            assert_eq!(found(card.id), Vec::<String>::new(), "{}", card.id);
        }
    }
}

/// Combination of an expression; an encoding that has no effect by itself stands over its default.
fn alone_or(text: &str) -> Combination {
    Combination::parse(text).unwrap_or_else(|_| alone(text, Map::new()))
}

#[test]
fn no_encoding_is_dense_in_the_kernels_of_the_cpu() {
    use crate::attention::Support;
    use crate::probe::KernelSupport;
    for entry in Registry::builtin().entries() {
        let config = Registry::builtin().encoding(entry.card.id).unwrap();
        let KernelSupport { cpu, gpu } = crate::probe::support(&config).unwrap();
        assert_eq!(cpu, Support::Fused, "{}", entry.card.id);
        // FIRE's perceptron, DAPE's, and the products of PaTH and GRAPE have no kernel on GPUs.
        let dense = ["dape", "fire", "grape", "path"].contains(&entry.card.id);
        assert_eq!(gpu == Support::Dense, dense, "{}", entry.card.id);
    }
}

/// Encodings that learn say where their parameters start, and by whose example.
#[test]
fn initial_values_are_documented() {
    let registry = Registry::builtin();
    for card in registry.cards() {
        let entry = registry.entry(card.id).unwrap();
        let text = entry.source.unwrap().split("//! ## Initial values\n").nth(1);
        let stated =
            text.is_some_and(|text| !text.trim_start_matches("//!").trim().starts_with("##"));
        assert_eq!(stated, card.parameters != "0" || card.id == "alibi", "{}", card.id);
    }
}

/// Formulas at settings that change them, beside the same as arithmetic.
#[test]
fn formulas_of_parameters_are_those_of_the_settings() {
    let dims = Dims { layers: 6, heads: 4, head_dim: 8, train_len: 16, max_len: 32 };
    let (l, c, h, d) = (6, 32, 4, 8);
    for (text, formula, count) in [
        ("cope", "L D max_positions", l * d * 64),
        ("cope{sharing=all-layers}", "D max_positions", d * 64),
        ("cope{layers={type=first}}", "D max_positions", d * 64),
        ("cope{layers={type=every,n=3}}", "L / n D max_positions", l / 3 * d * 64),
        ("cope{gates=separate-keys}", "L (D max_positions + C^2)", l * (d * 64 + c * c)),
        (
            "cope{gates=separate-keys,layers={type=every,n=3},sharing=all-layers}",
            "D max_positions + L / n C^2",
            d * 64 + l / 3 * c * c,
        ),
        ("cope-mlp{layers={type=first},width=5}", "2 width + D width + D", 2 * 5 + d * 5 + d),
        ("cope-alibi{slopes=learned}", "L H", l * h),
        (
            "dape{base={type=none},width=5}",
            "L ((H + 1) width + (width + 1) H)",
            l * ((h + 1) * 5 + (5 + 1) * h),
        ),
        (
            "dape{base={type=alibi},mixer=convolution,width=5}",
            "L ((6 H + 1) width + (3 width + 1) H) + base",
            l * ((6 * h + 1) * 5 + (3 * 5 + 1) * h),
        ),
        (
            "path{forget={type=gate}}",
            "L (2 C rank + C kernel + 2 C H + 2 H)",
            l * (2 * c * 32 + c * 3 + 2 * c * h + 2 * h),
        ),
        ("tape{form=vector}", "L (2 I D + I C + D^2)", l * (2 * 16 * d + 16 * c + d * d)),
        (
            "tape{form=tensor-not-equivariant}",
            "L (4 I H + I C + 2 H^2)",
            l * (4 * 16 * h + 16 * c + 2 * h * h),
        ),
        ("tape{attention_update=none,form=vector-not-equivariant}", "3 L I C", 3 * l * 16 * c),
        ("tape{feed_forward_update={type=off}}", "L H^2", l * h * h),
        (
            "selective-rope{bias=true,gate={kind=per-channel}}",
            "L (map + filter + bias + gate)",
            l * (32 * (c + c / 2) + 4 * c / 2 + c / 2 + 16 * (c + c / 2) + c / 2),
        ),
        ("grape{variant={type=multiplicative,spectrum=per-head}}", "L C / 2", l * c / 2),
        (
            "grape{variant={type=contextual,phase=per-head}}",
            "L (H (C + 1) + 5 D / 2)",
            l * (h * (c + 1) + 5 * d / 2),
        ),
    ] {
        let encoding = Combination::parse(text).unwrap();
        assert_eq!(encoding.card().parameters, formula, "{text}");
        assert_eq!(encoding.param_count(&dims), Some(count), "{text}");
    }
}

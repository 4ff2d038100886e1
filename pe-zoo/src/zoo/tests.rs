use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

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

/// Every file below a folder that may multiply for an encoding or for the reference engine.
fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    // Kernels have their own products, and tests none of an encoding's.
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
    for meta in ALL {
        let config = serde_json::to_value(PeConfig::from_id(meta.id).unwrap()).unwrap();
        for taken in ["kind", "name"] {
            assert!(config.get(taken).is_none(), "{} has a setting `{taken}`", meta.id);
        }
    }
}

/// Products that are not counted would escape the check of cost formulas.
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

/// Settings beside the defaults, `option_sets.json`; encodings in alphabetical order.
#[test]
fn option_sets_beside_the_defaults_conform_too() {
    let sets: BTreeMap<String, Vec<Map<String, Value>>> =
        serde_json::from_str(include_str!("tests/option_sets.json")).unwrap();
    let mut failed = Vec::new();
    for (id, sets) in sets {
        for fields in sets {
            let config = PeConfig::from_fields(&id, fields).unwrap();
            let mut findings = crate::testkit::examine(&config);
            findings.extend(config.examine_settings());
            let failures = crate::testkit::failures(findings).into_iter();
            failed.extend(failures.map(|failure| format!("{config:?}: {failure}")));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

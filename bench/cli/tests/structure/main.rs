//! Checks which crates and modules may depend on each other, and which may name a kind of encoding or task.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod arrows;
mod doors;
mod places;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders of the crates.
const MEMBERS: [&str; 10] = [
    "pe-zoo",
    "tasks",
    "reports/records",
    "reports/stats",
    "reports/analysis",
    "reports",
    "bench/train",
    "bench/sweep",
    "bench/llm",
    "bench/cli",
];

/// Root folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn nothing_imports_the_program_and_training_knows_no_sweep() {
    let mut arrows = Vec::new();
    for from in MEMBERS {
        let text = std::fs::read_to_string(root().join(from).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&text).unwrap();
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(dependencies) = manifest.get(section).and_then(|s| s.as_table()) else {
                continue;
            };
            // A member is named by its folder, or by its package.
            let named = |member: &&str| {
                let name = member.trim_start_matches("bench/").trim_start_matches("reports/");
                dependencies.contains_key(name)
                    || dependencies.contains_key(&format!("pe-zoo-{name}"))
                    || dependencies.contains_key("pe-zoo-bench") && name == "cli"
            };
            arrows.extend(MEMBERS.into_iter().filter(named).map(|to| (from, to)));
        }
    }
    arrows.sort_unstable();
    arrows.dedup();
    let of = |from: &str| {
        let own = arrows.iter().filter(|(member, _)| *member == from);
        own.map(|(_, to)| *to).collect::<Vec<_>>()
    };
    for member in ["pe-zoo", "tasks", "reports/records", "reports/stats"] {
        assert_eq!(of(member), [""; 0], "{member}");
    }
    let [records, stats] = ["reports/records", "reports/stats"];
    assert_eq!(of("reports/analysis"), [records, stats]);
    assert_eq!(of("reports"), ["reports/analysis", records, stats]);
    assert_eq!(of("bench/train"), ["pe-zoo", records, stats, "tasks"]);
    assert_eq!(of("bench/sweep"), ["bench/train", records, stats, "tasks"]);
    assert_eq!(of("bench/llm"), ["bench/train", "pe-zoo", records, "tasks"]);
    let all = MEMBERS.into_iter().filter(|member| *member != "bench/cli").collect::<BTreeSet<_>>();
    assert_eq!(of("bench/cli").into_iter().collect::<BTreeSet<_>>(), all);
}

/// A program that only works for sweeps is built without polars.
#[test]
fn workers_need_no_polars() {
    for member in
        ["pe-zoo", "tasks", "reports/records", "reports/stats", "bench/train", "bench/sweep"]
    {
        let text = std::fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&text).unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap();
        let always = dependencies.iter().filter(|(name, dependency)| {
            let is_optional = dependency.get("optional").and_then(toml::Value::as_bool);
            name.starts_with("polars") && is_optional != Some(true)
        });
        assert_eq!(always.count(), 0, "{member}");
    }
    let text = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let workspace: toml::Table = toml::from_str(&text).unwrap();
    let tasks = &workspace["workspace"]["dependencies"]["tasks"];
    assert_eq!(tasks["default-features"].as_bool(), Some(false));
}

/// A sweep hands cells to workers; what is in a cell is the business of `train`.
#[test]
fn sweeps_know_cells_and_no_model() {
    let mut files = Vec::new();
    sources(&root().join("bench/sweep/src"), &mut files);
    assert!(files.len() > 15, "{}", files.len());
    for file in files {
        let code = without_tests(&std::fs::read_to_string(&file).unwrap());
        assert!(!code.contains("pe_zoo::model"), "{}", file.display());
    }
}

/// Every Rust file below a folder, tests and the kinds' own files left out.
fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // `bench/train/src/suite` reads suites, `tasks/src/suite` holds the kinds.
        let kinds = path.ends_with("tasks/src/suite");
        let own = ["zoo", "reference", "tests", "testing"];
        if path.is_dir() {
            if !kinds && !own.contains(&name.as_str()) {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !["tests.rs", "testkit.rs"].contains(&name.as_str())
        {
            found.push(path);
        }
    }
}

/// A file without its items under `#[cfg(test)]` or `#[cfg(all(test, ..))]`. In formatted code an item ends on its
/// first line, or with the first closing brace at the indentation of its attribute.
fn without_tests(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let start = line.trim_start();
        if !(start.starts_with("#[cfg(test)]") || start.starts_with("#[cfg(all(test")) {
            code.push_str(line);
            code.push('\n');
            continue;
        }
        let indent = &line[..line.len() - start.len()];
        for line in lines.by_ref() {
            let Some(rest) = line.strip_prefix(indent) else { continue };
            if rest.ends_with([';', ',', '}']) && !rest.starts_with([' ', '#', '/']) {
                break;
            }
        }
    }
    code
}

#[test]
fn code_after_an_item_for_tests_is_read() {
    let file = "fn a() {}\n#[cfg(test)]\n#[allow(dead_code)]\npub fn b(\n    x: u8,\n) -> u8 {\n    c()\n}\n\
                fn d() {\n    #[cfg(test)]\n    if e() {\n        f();\n    }\n    g();\n}\n\
                #[cfg(all(test, feature = \"gpu\"))]\nmod h;\nfn i() {}\n#[cfg(test)]\nmod tests {\n    fn j() {}\n}\n";
    assert_eq!(without_tests(file), "fn a() {}\nfn d() {\n    g();\n}\nfn i() {}\n");
}

/// Adding an encoding or a task is one file and one line of a registry: nothing else may ask which
/// kind it has.
#[test]
fn nothing_outside_the_registries_branches_on_a_kind() {
    let mut files = Vec::new();
    for member in MEMBERS {
        sources(&root().join(member).join("src"), &mut files);
    }
    assert!(files.len() > 50, "{}", files.len());
    let encodings =
        pe_zoo::Registry::builtin().cards().map(|card| card.id).collect::<Vec<_>>().into_iter();
    let ids = encodings.chain(tasks::ALL.iter().map(|meta| meta.id)).collect::<Vec<_>>();
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        // Tests within a file may name what they test.
        let code = without_tests(&text);
        found.extend(
            code.lines()
                .filter(|line| ids.iter().any(|id| branches_on(line, id)))
                .map(|line| format!("{}: {}", file.display(), line.trim())),
        );
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Whether a line compares something with `id` or has it as a pattern, in code.
fn branches_on(line: &str, id: &str) -> bool {
    if line.trim_start().starts_with("//") {
        return false;
    }
    let literal = format!("\"{id}\"");
    let compares = ["==", "!=", "|"].iter().any(|sign| line.contains(&format!("{sign} {literal}")));
    let is_pattern = ["=>", "|"].iter().any(|sign| {
        line.contains(&format!("{literal} {sign}")) || line.contains(&format!("{literal}) {sign}"))
    });
    let is_matched = line.split("matches!(").skip(1).any(|rest| rest.contains(&literal));
    compares || is_pattern || is_matched
}

#[test]
fn branches_on_a_kind_are_recognized() {
    for line in [
        "if id == \"rope\" {",
        "if id != \"rope\" {",
        "\"rope\" => 1,",
        "Some(\"rope\") => 1,",
        "\"alibi\" | \"rope\" => 1,",
        "\"rope\" | \"alibi\" => 1,",
        "if matches!(id, \"rope\") {",
    ] {
        assert!(branches_on(line, "rope"), "{line}");
        assert!(!branches_on(line, "cope"), "{line}");
    }
    assert!(!branches_on("//! value = word | \"rope\" | number", "rope"));
    assert!(!branches_on("const BASELINE: &str = \"rope\";", "rope"));
    assert!(!branches_on("(\"rope\", include_str!(\"rope.toml\")),", "rope"));
}

/// A renamed package would break only scripts that few machines can run.
#[test]
fn features_that_scripts_and_documents_name_exist() {
    let root = root();
    let mut known = BTreeSet::new();
    for member in MEMBERS {
        let text = std::fs::read_to_string(root.join(member).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&text).unwrap();
        let package = manifest["package"]["name"].as_str().unwrap();
        for feature in manifest.get("features").and_then(|f| f.as_table()).into_iter().flatten() {
            known.extend([feature.0.clone(), format!("{package}/{}", feature.0)]);
        }
    }
    let files = ["ci", "doc/guide"].into_iter().flat_map(|folder| {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
    });
    let mut named = Vec::new();
    for file in files.chain(["README.md", "CONTRIBUTING.md", "Dockerfile"].map(|f| root.join(f))) {
        let text = std::fs::read_to_string(&file).unwrap();
        let words = text.split("--features ").skip(1);
        let names = words.filter_map(|rest| rest.split([' ', '\n', '`', ')', '"', '\'']).next());
        named.extend(names.flat_map(|list| list.split(',')).map(str::to_owned));
    }
    assert!(named.len() > 6, "{named:?}");
    // A shell puts names of variables in.
    named.retain(|feature| !known.contains(feature) && !feature.is_empty());
    assert_eq!(named, [""; 0], "no package has these features");
}

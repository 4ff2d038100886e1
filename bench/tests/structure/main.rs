//! Checks which crates and modules may depend on each other, and which may name a kind of encoding or task.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod arrows;
mod doors;

use std::path::Path;

#[test]
fn arrows_point_from_bench_to_the_other_three_and_nowhere_else() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let members = ["pe-zoo", "tasks", "reports", "bench"];
    let mut arrows = Vec::new();
    for from in members {
        let text = std::fs::read_to_string(root.join(from).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&text).unwrap();
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(dependencies) = manifest.get(section).and_then(|s| s.as_table()) else {
                continue;
            };
            // A member is named by its folder, or by its package.
            let named = |member: &&str| {
                dependencies.contains_key(*member)
                    || dependencies.contains_key(&format!("pe-zoo-{member}"))
            };
            arrows.extend(members.into_iter().filter(named).map(|to| (from, to)));
        }
    }
    arrows.sort_unstable();
    assert_eq!(arrows, [("bench", "pe-zoo"), ("bench", "reports"), ("bench", "tasks")]);
}

/// Every Rust file below a folder, tests and the kinds' own files left out.
fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // `bench/src/suite` reads suites, `tasks/src/suite` holds the kinds.
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

/// Adding an encoding or a task is one file and one line of a registry: nothing else may ask which
/// kind it has.
#[test]
fn nothing_outside_the_registries_branches_on_a_kind() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for member in ["pe-zoo", "tasks", "reports", "bench"] {
        sources(&root.join(member).join("src"), &mut files);
    }
    assert!(files.len() > 50, "{}", files.len());
    let encodings =
        pe_zoo::Registry::builtin().cards().map(|card| card.id).collect::<Vec<_>>().into_iter();
    let ids = encodings.chain(tasks::ALL.iter().map(|meta| meta.id)).collect::<Vec<_>>();
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        // Tests within a file may name what they test.
        let code = text.split("#[cfg(test)]").next().unwrap();
        for id in &ids {
            for branch in [format!("== \"{id}\""), format!("\"{id}\" =>"), format!("\"{id}\") =>")]
            {
                if code.contains(&branch) {
                    found.push(format!("{}: {branch}", file.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

//! Which crate may depend on which.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

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
            arrows.extend(
                members.iter().filter(|m| dependencies.contains_key(**m)).map(|to| (from, *to)),
            );
        }
    }
    arrows.sort_unstable();
    assert_eq!(arrows, [("bench", "pe-zoo"), ("bench", "reports"), ("bench", "tasks")]);
}

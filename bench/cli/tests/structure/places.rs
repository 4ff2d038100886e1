//! An encoding is named in two places, its file and a line of `pe-zoo/src/zoo.rs`, and a task in its file and a line of
//! `tasks/src/suite.rs`. No other file lists them.

use std::path::{Path, PathBuf};

/// Lists in which a new encoding or task needs no line.
const OTHER_LISTS: [&str; 4] = [
    // Looks that figures of released reports have; others follow from names.
    "reports/analysis/src/looks.rs",
    // A release adds workloads to it.
    "bench/train/suites",
    "reports/analysis/published",
    // `cargo test` writes it from the records of the zoo.
    "bench/cli/zoo.json",
];

/// Files of sources and data below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ends = ["rs", "toml", "json", "jsonl", "py", "sh", "txt", "bib"];
        if path.is_dir() {
            if !path.ends_with("target") {
                files(&path, found);
            }
        } else if path.extension().is_some_and(|end| ends.iter().any(|known| end == *known)) {
            found.push(path);
        }
    }
}

/// Number of ids that a text names: in quotes, alone or in an expression, or as a module.
fn named(text: &str, ids: &[&str]) -> usize {
    let is_named = |id: &&&str| {
        let quoted = format!("\"{id}");
        let mut ends = text.match_indices(&quoted).map(|(at, _)| at + quoted.len());
        ends.any(|end| text[end..].starts_with(['"', '\\', '{', '(', '+']))
            || text.contains(&format!("mod {};", id.replace('-', "_")))
    };
    ids.iter().filter(is_named).count()
}

/// Files that name at least nine tenths of the ids, apart from [`OTHER_LISTS`].
fn lists(ids: &[&str]) -> Vec<String> {
    let root = crate::root().canonicalize().unwrap();
    let mut sources = Vec::new();
    for folder in ["pe-zoo", "tasks", "reports", "bench", "fuzz", "ci", "doc", "examples"] {
        files(&root.join(folder), &mut sources);
    }
    assert!(sources.len() > 400, "{}", sources.len());
    let mut lists = Vec::new();
    for path in sources {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        let text = std::fs::read_to_string(&path).unwrap();
        let is_other = OTHER_LISTS.iter().any(|other| name.starts_with(other));
        if !is_other && 10 * named(&text, ids) >= 9 * ids.len() {
            lists.push(name);
        }
    }
    lists
}

/// Checks that each id has its file in a folder, and that the list of modules is the only other place, with one line for it.
fn check_places(ids: &[&str], list: &str, folder: &str) {
    assert_eq!(lists(ids), [list], "derive other lists from the registry");
    let code = crate::without_tests(&std::fs::read_to_string(crate::root().join(list)).unwrap());
    for id in ids {
        let module = id.replace('-', "_");
        assert!(crate::root().join(folder).join(format!("{module}.rs")).is_file(), "{module}");
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let lines = code.lines().filter(|line| !line.starts_with("//"));
        let naming =
            |line: &&str| line.split(|c| !is_word(c)).any(|word| word == module || word == *id);
        assert_eq!(lines.filter(naming).collect::<Vec<_>>(), [format!("pub mod {module};")]);
    }
}

#[test]
fn an_encoding_is_one_file_and_one_line() {
    let registry = pe_zoo::Registry::builtin();
    let ids = registry.cards().map(|card| card.id).collect::<Vec<_>>();
    check_places(&ids, "pe-zoo/src/zoo.rs", "pe-zoo/src/zoo");
}

#[test]
fn a_task_is_one_file_and_one_line() {
    let ids = tasks::ALL.iter().map(|meta| meta.id).collect::<Vec<_>>();
    check_places(&ids, "tasks/src/suite.rs", "tasks/src/suite");
}

#[test]
fn names_are_recognized() {
    let ids = ["rope", "cope-mlp"];
    for text in ["\"rope\"", "\"rope{base=5}\"", "\"rope+a\"", "kind = \\\"rope\\\"", "mod rope;"] {
        assert_eq!(named(text, &ids), 1, "{text}");
    }
    assert_eq!(named("pub mod cope_mlp;\npub mod rope;", &ids), 2);
    assert_eq!(named("use crate::rope; // \"ropes\", \"cope\"", &ids), 0);
}

//! README.md and the guide: links resolve, named files exist, command lines parse and run.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod commands;
mod document;
#[path = "../program/mod.rs"]
mod program;
#[path = "../../../llm/tests/tiny/mod.rs"]
mod tiny;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use document::Document;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn documents() -> Vec<Document> {
    let entries = fs::read_dir(root().join("doc/guide")).unwrap();
    let pages = entries.map(|entry| entry.unwrap().path());
    let mut paths =
        pages.filter(|path| path.extension().is_some_and(|e| e == "md")).collect::<Vec<_>>();
    paths.sort();
    paths.push(root().join("README.md"));
    paths.iter().map(|path| Document::read(path)).collect()
}

fn faults(of: impl Fn(&Document) -> Vec<String>) -> String {
    documents().iter().flat_map(of).collect::<Vec<_>>().join("\n")
}

#[test]
fn links_resolve() {
    let number = documents().iter().map(|document| document.links().len()).sum::<usize>();
    assert!(number > 60, "{number}");
    assert_eq!(faults(Document::broken_links), "");
}

#[test]
fn named_files_exist() {
    assert_eq!(faults(|document| document.missing_files(&root())), "");
}

#[test]
fn commands_parse() {
    let number = documents().iter().map(|document| document.commands().len()).sum::<usize>();
    assert!(number > 50, "{number}");
    assert_eq!(faults(Document::refused_commands), "");
}

#[test]
fn every_page_is_in_the_summary() {
    let documents = documents();
    let summary = documents.iter().find(|page| page.path.ends_with("SUMMARY.md")).unwrap();
    let listed = summary.links().into_iter().collect::<BTreeSet<_>>();
    let names = documents.iter().map(|page| page.path.file_name().unwrap().to_str().unwrap());
    let pages = names.filter(|name| !["SUMMARY.md", "README.md"].contains(name));
    assert_eq!(pages.collect::<BTreeSet<_>>(), listed);
}

#[test]
fn the_readme_is_a_screen_and_a_half() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (lines, words) = (readme.lines().count(), readme.split_whitespace().count());
    assert!(lines <= 90 && words <= 750, "{lines} lines, {words} words");
}

#[test]
fn faults_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.md");
    let content = "# One heading: `a`-b\n[x](#one-heading-a-b) [y](#other) [z](none.md) [w](https://none)\n\
                   ![i](page.md)\n`bench/none.rs` `bench/<name>.rs` `tasks/there.rs`\n\
                   ```sh\npe-bench run quick # comment\ncargo run --release -- explain 'a b' > file\n\
                   pe-bench run --no-such-option\nls\n```\n```text\npe-bench nonsense\n```\n";
    fs::write(&path, content).unwrap();
    fs::create_dir(folder.path().join("tasks")).unwrap();
    fs::write(folder.path().join("tasks/there.rs"), "").unwrap();
    let page = Document::read(&path);
    let ends = |faults: Vec<String>| {
        let words = faults.iter().map(|fault| fault.rsplit(' ').next().unwrap().to_owned());
        words.collect::<Vec<_>>()
    };
    assert_eq!(ends(page.broken_links()), ["#other", "none.md"]);
    assert_eq!(ends(page.missing_files(folder.path())), ["bench/none.rs"]);
    assert_eq!(
        page.commands()[..2],
        [vec!["pe-bench", "run", "quick"], vec!["pe-bench", "explain", "a b"]]
    );
    let refused = page.refused_commands();
    assert_eq!(refused.len(), 1);
    assert!(refused[0].contains("--no-such-option"), "{refused:?}");
}

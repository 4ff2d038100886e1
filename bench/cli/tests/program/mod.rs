//! `pe-bench` as a separate process, and a small suite for it.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) const BENCH: &str = env!("CARGO_BIN_EXE_pe-bench");

/// A suite of four cells of a second each.
pub(crate) const TINY: &str = r#"
name = "tiny"
title = "Tiny"
about = "For tests."
seeds = [0, 1]
encodings = ["alibi", "nope"]
[model]
layers = 1
width = 16
[train]
steps = 4
batch_size = 4
len = 8
[eval]
lens = [8, 16]
samples = 6
[[workload]]
name = "flip-flop"
task = "flip-flop"
"#;

/// Runs the program to its end.
pub(crate) fn bench(arguments: &[&str]) -> Output {
    bench_with(arguments, &[])
}

/// Runs the program with these environment variables.
pub(crate) fn bench_with(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(BENCH).args(arguments).envs(environment.iter().copied()).output().unwrap()
}

/// Standard output and standard error of a process.
pub(crate) fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// Runs the program, which must succeed; returns the text that it printed.
pub(crate) fn done(arguments: &[&str]) -> String {
    let output = bench(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    text(&output)
}

/// Runs the program, which must fail with exit status 1 and print `expected`.
pub(crate) fn refused(arguments: &[&str], expected: &str) {
    let output = bench(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output));
    assert!(text(&output).contains(expected), "{arguments:?}: {}", text(&output));
}

/// Returns a folder with a suite in it, and the paths of suite and results.
pub(crate) fn tiny(suite: &str) -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (file, out) = (path("tiny.toml"), path("out"));
    std::fs::write(&file, suite).unwrap();
    (folder, file, out)
}

/// Files of a folder, sorted; none if it does not exist.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files = entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    files.sort();
    files
}

/// Files of the records in a folder of results.
pub(crate) fn cells(out: &str) -> Vec<PathBuf> {
    files(&Path::new(out).join("cells"))
}

/// Asserts that two folders have the same results.
pub(crate) fn assert_equal(one: &Path, other: &Path) {
    let output = Command::new(BENCH).arg("diff-records").args([one, other]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

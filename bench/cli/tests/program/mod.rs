//! `pe-bench` as a separate process, and a small suite for it.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use records::RunRecord;
use toml::{Table, Value};

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

/// The suite [`TINY`] with other values of these fields.
pub(crate) fn tiny_with(changes: &str) -> String {
    fn change(table: &mut Table, changes: Table) {
        for (key, value) in changes {
            match (table.get_mut(&key), value) {
                (Some(Value::Table(table)), Value::Table(changes)) => change(table, changes),
                (_, value) => drop(table.insert(key, value)),
            }
        }
    }
    let mut suite = TINY.parse().unwrap();
    change(&mut suite, changes.parse().unwrap());
    suite.to_string()
}

/// A suite in a folder of its own, with the results of its runs.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// With the suite [`TINY`] with these changes.
    pub(crate) fn new(changes: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.suite(changes);
        place
    }

    pub(crate) fn suite(&self, changes: &str) {
        self.write("suite.toml", &tiny_with(changes));
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// A run of the suite in this folder, whose devices are not those of other tests.
    pub(crate) fn command(&self, out: &str, more: &[&str]) -> Command {
        let mut command = Command::new(BENCH);
        command.current_dir(self.folder.path()).env("TMPDIR", self.folder.path());
        command.args(["run", "suite.toml", "--out", out]).args(more);
        command
    }

    pub(crate) fn run(&self, out: &str, more: &[&str]) -> String {
        let output = self.command(out, more).output().unwrap();
        assert!(output.status.success(), "{more:?}: {}", text(&output));
        text(&output)
    }

    pub(crate) fn refused(&self, out: &str, more: &[&str], expected: &str) {
        let output = self.command(out, more).output().unwrap();
        assert!(!output.status.success(), "{more:?}: {}", text(&output));
        assert!(text(&output).contains(expected), "{more:?}: {}", text(&output));
    }

    pub(crate) fn records(&self, out: &str) -> Vec<RunRecord> {
        analysis::folder::read_dir(Path::new(&self.path(out))).unwrap()
    }

    pub(crate) fn assert_equal(&self, one: &str, other: &str) {
        assert_equal(Path::new(&self.path(one)), Path::new(&self.path(other)));
    }
}

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
    let output = Command::new(BENCH).args(["records", "diff"]).args([one, other]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

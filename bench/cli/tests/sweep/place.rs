//! A small suite, a folder for its results, and what is asked of both.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{BENCH, files};

const SUITE: &str = r#"
name = "small"
title = "Small"
about = "For tests."
seeds = [0]
encodings = ["rope", "alibi"]
[model]
layers = 1
width = 16
[train]
steps = STEPS
batch_size = 4
len = 16
[eval]
lens = [16]
samples = 6
[[workload]]
name = "flip-flop"
task = "flip-flop"
"#;

/// A suite of two cells and a folder for results.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(steps: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let suite = SUITE.replace("STEPS", &steps.to_string());
        fs::write(folder.path().join("small.toml"), suite).unwrap();
        Self { folder }
    }

    pub(crate) fn suite(&self) -> PathBuf {
        self.folder.path().join("small.toml")
    }

    pub(crate) fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, out: &Path, more: &[&str]) -> Command {
        let mut command = Command::new(BENCH);
        command.arg("run").arg(self.suite()).arg("--out").arg(out).args(more);
        command
    }

    pub(crate) fn run(&self, out: &Path, more: &[&str]) -> Output {
        self.command(out, more).output().unwrap()
    }

    pub(crate) fn events(&self, out: &Path, more: &[&str]) -> (Vec<Value>, Output) {
        let output = self.run(out, &[&["--json"], more].concat());
        (events(&output), output)
    }

    pub(crate) fn start(&self, out: &Path, more: &[&str]) -> Child {
        let mut command = self.command(out, more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

pub(crate) fn events(output: &Output) -> Vec<Value> {
    let lines = String::from_utf8(output.stdout.clone()).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

/// Those that are whole: what is being written has another ending, and its cell's folder is there before.
pub(crate) fn checkpoints(out: &Path) -> Vec<PathBuf> {
    let cells = files(&out.join("checkpoints"));
    let all = cells.iter().flat_map(|cell| files(cell));
    all.filter(|path| path.extension().is_some_and(|e| e == "ckpt")).collect()
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_mins(2), "it never came that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// With the shell's own `kill`: a bare machine may have no program of that name.
pub(crate) fn signal(name: &str, pid: u32) {
    let line = format!("kill -{name} {pid}");
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success(), "{line}");
}

/// Living processes that `pid` has started and that run a program of their own, zombies not counted. Between the fork and the
/// program a child has the command line and the environment of its parent, which waits for it: a child that is stopped there
/// stops both.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap();
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let command_of =
        |pid: u32| ["cmdline", "environ"].map(|file| fs::read(format!("/proc/{pid}/{file}")).ok());
    let of_parent = command_of(pid);
    ids.filter(|id| {
        fields(*id).is_some_and(|[state, parent]| state != "Z" && parent == pid.to_string())
            && command_of(*id) != of_parent
    })
    .collect()
}

/// State and parent of a process.
pub(crate) fn fields(pid: u32) -> Option<[String; 2]> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned);
    Some([fields.next()?, fields.next()?])
}

/// Reads the events of a running sweep up to the first with this name; returns the rest of its output.
pub(crate) fn until_event(sweep: &mut Child, name: &str) -> impl FnOnce() -> Vec<Value> + use<> {
    let mut lines = BufReader::new(sweep.stdout.take().unwrap()).lines();
    let mut parsed = move || Some(serde_json::from_str::<Value>(&lines.next()?.unwrap()).unwrap());
    let mut seen = Vec::new();
    loop {
        let event = parsed().unwrap_or_else(|| panic!("it ended without `{name}`: {seen:?}"));
        let found = event["event"] == name;
        seen.push(event);
        if found {
            return move || seen.into_iter().chain(std::iter::from_fn(parsed)).collect();
        }
    }
}

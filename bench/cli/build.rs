//! Tells the program what it was built from.

use std::path::Path;
use std::process::Command;

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The commit of the sources, and whether they differ from it.
fn commit() -> (String, bool) {
    // Written by `cargo package`. A published crate has no repository of its own, and one above it is another's.
    if let Ok(info) = std::fs::read_to_string(".cargo_vcs_info.json") {
        let hash = info.split("\"sha1\": \"").nth(1).and_then(|rest| rest.get(..12));
        return (hash.unwrap_or_default().to_owned(), info.contains("\"dirty\": true"));
    }
    // Not in the repository's layout: nothing that git says would be about these sources.
    if !Path::new("../../pe-zoo/src").is_dir() {
        return (String::new(), false);
    }
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let sources = [
        "../../pe-zoo",
        "../../tasks",
        "../../reports",
        "..",
        "../../Cargo.toml",
        "../../Cargo.lock",
    ];
    let status = ["status", "--porcelain", "--"].into_iter().chain(sources).collect::<Vec<_>>();
    (commit, output("git", &status).is_some_and(|text| !text.is_empty()))
}

fn main() {
    let (commit, dirty) = commit();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let rustc = output(&rustc, &["--version"]).unwrap_or_default();
    let lock = ["../../Cargo.lock", "Cargo.lock"].map(std::fs::read_to_string);
    let lock = lock.into_iter().find_map(Result::ok).unwrap_or_default();
    let burn = lock
        .split("[[package]]")
        .find(|package| package.contains("name = \"burn\"\n"))
        .and_then(|package| package.split("version = \"").nth(1)?.split('"').next())
        .unwrap_or_default();
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let modified = if dirty { ", modified" } else { "" };
    let of = if commit.is_empty() { String::new() } else { format!(" ({commit}{modified})") };
    println!("cargo::rustc-env=PE_BENCH_VERSION={version}{of}");
    println!("cargo::rustc-env=PE_BENCH_COMMIT={commit}");
    println!("cargo::rustc-env=PE_BENCH_DIRTY={dirty}");
    println!("cargo::rustc-env=PE_BENCH_RUSTC={rustc}");
    println!("cargo::rustc-env=PE_BENCH_BURN={burn}");
    let bench = ["src", "../train/src", "../train/suites", "../sweep/src", "../llm/src"];
    let others = [
        "../../pe-zoo/src",
        "../../tasks/src",
        "../../reports/records/src",
        "../../reports/stats/src",
        "../../reports/analysis/src",
        "../../reports/src",
    ];
    for path in ["../../.git/HEAD", "../../.git/index", "../../Cargo.lock"]
        .into_iter()
        .chain(bench)
        .chain(others)
    {
        println!("cargo::rerun-if-changed={path}");
    }
}

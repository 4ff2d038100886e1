//! Tells the program what it was built from, and lists the built-in suites.

use std::path::{Path, PathBuf};
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
    if !Path::new("../pe-zoo/src").is_dir() {
        return (String::new(), false);
    }
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let sources = ["../pe-zoo", "../tasks", "../reports", ".", "../Cargo.toml", "../Cargo.lock"];
    let status = ["status", "--porcelain", "--"].into_iter().chain(sources).collect::<Vec<_>>();
    (commit, output("git", &status).is_some_and(|text| !text.is_empty()))
}

/// Writes the list of built-in suites: name and text of each file of `suites/`, sorted by name.
fn suites() -> std::io::Result<()> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let files = std::fs::read_dir(folder("CARGO_MANIFEST_DIR").join("suites"))?;
    let mut paths = files.map(|file| Ok(file?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort_by_key(|path| path.file_stem().map(std::ffi::OsStr::to_owned));
    let entry = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().display().to_string();
        // Without the path of this folder: a checkout that was moved finds its files, too.
        let file = format!("/suites/{name}.toml");
        format!("({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {file:?}))),\n")
    };
    let list = format!("&[\n{}]", paths.iter().map(entry).collect::<String>());
    std::fs::write(folder("OUT_DIR").join("suites.rs"), list)
}

fn main() {
    suites().expect("the suites can be listed");
    let (commit, dirty) = commit();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let rustc = output(&rustc, &["--version"]).unwrap_or_default();
    let lock = ["../Cargo.lock", "Cargo.lock"].map(std::fs::read_to_string);
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
    let sources = ["src", "suites", "../pe-zoo/src", "../tasks/src", "../reports/src"];
    for path in ["../.git/HEAD", "../.git/index", "../Cargo.lock"].into_iter().chain(sources) {
        println!("cargo::rerun-if-changed={path}");
    }
}

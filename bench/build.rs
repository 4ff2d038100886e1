//! Tells the program what it was built from.

use std::process::Command;

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn main() {
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let sources = ["../pe-zoo", "../tasks", "../reports", ".", "../Cargo.toml", "../Cargo.lock"];
    let status = ["status", "--porcelain", "--"].into_iter().chain(sources).collect::<Vec<_>>();
    let dirty = output("git", &status).is_some_and(|text| !text.is_empty());
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let rustc = output(&rustc, &["--version"]).unwrap_or_default();
    let lock = std::fs::read_to_string("../Cargo.lock").unwrap_or_default();
    let burn = lock
        .split("[[package]]")
        .find(|package| package.contains("name = \"burn\"\n"))
        .and_then(|package| package.split("version = \"").nth(1)?.split('"').next())
        .unwrap_or_default();
    println!("cargo::rustc-env=PE_BENCH_COMMIT={commit}");
    println!("cargo::rustc-env=PE_BENCH_DIRTY={dirty}");
    println!("cargo::rustc-env=PE_BENCH_RUSTC={rustc}");
    println!("cargo::rustc-env=PE_BENCH_BURN={burn}");
    for path in ["../.git/HEAD", "../.git/index", "../Cargo.lock", "src", "../pe-zoo/src"] {
        println!("cargo::rerun-if-changed={path}");
    }
}

//! Writes the list of the zoo's encodings: one entry and two conformance tests for each `pub mod` line
//! of `src/zoo.rs`, so that adding an encoding takes its file and that line.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("set by cargo"));
    println!("cargo::rerun-if-changed=src/zoo.rs");
    let modules = modules(&text(&root.join("src/zoo.rs")));
    let mut entries = String::from("vec![\n");
    let (mut examples, mut tests) =
        (String::from("pub(super) const EXAMPLES: &[&[super::Examples]] = &[\n"), String::new());
    let mut planted = String::new();
    for module in &modules {
        println!("cargo::rerun-if-changed=src/zoo/{module}.rs");
        let source = text(&root.join(format!("src/zoo/{module}.rs")));
        let encoding = encoding(&source).unwrap_or_else(|| {
            panic!("src/zoo/{module}.rs has no `impl PositionEncoding for TYPE`; add one")
        });
        // Without the path of this folder: a checkout that was moved finds its files, too.
        writeln!(
            entries,
            "Entry::new::<{module}::{encoding}>(Some(include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/src/zoo/{module}.rs\")))),"
        )
        .expect("written to a string");
        let of_file = format!("crate::zoo::{module}::tests::EXAMPLES");
        writeln!(examples, "{of_file},").expect("written to a string");
        writeln!(tests, "#[test]\nfn {module}() {{ super::conforms({of_file}); }}")
            .expect("written to a string");
        writeln!(
            planted,
            "#[test]\nfn {module}() {{ super::rejected::<crate::zoo::{module}::{encoding}>(); }}"
        )
        .expect("written to a string");
    }
    entries.push(']');
    examples.push_str("];\n");
    std::fs::write(out.join("entries.rs"), entries).expect("the output folder can be written");
    std::fs::write(out.join("conformance.rs"), examples + &tests)
        .expect("the output folder can be written");
    std::fs::write(out.join("planted.rs"), planted).expect("the output folder can be written");
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names of the public modules of `src/zoo.rs`.
fn modules(zoo: &str) -> Vec<String> {
    let names = zoo.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    names.map(str::to_owned).collect()
}

/// The type that a file implements `PositionEncoding` for.
fn encoding(file: &str) -> Option<&str> {
    let line = file.lines().find_map(|line| line.strip_prefix("impl PositionEncoding for "))?;
    Some(line.split_once(|c: char| !c.is_alphanumeric() && c != '_').map_or(line, |(name, _)| name))
}

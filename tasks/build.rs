//! Writes the list of the built-in tasks from the `pub mod` lines of `src/suite.rs`, so that adding a task takes its file and that
//! line. The settings of `suite/n_gram_copy.rs` are the type `NGramCopyConfig`.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=src/suite.rs");
    let suite = std::fs::read_to_string("src/suite.rs").expect("src/suite.rs can be read");
    let modules = suite.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let lines = modules.map(|module| {
        let words = module.split('_').map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        });
        format!("    {module}: {}Config,\n", words.collect::<String>())
    });
    let list = format!("builtin! {{\n{}}}\n", lines.collect::<String>());
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("set by cargo"));
    std::fs::write(out.join("builtin.rs"), list).expect("the output folder can be written");
}

//! Lists the built-in suites.

use std::path::PathBuf;

/// Writes the list of built-in suites: name and text of each file of `suites/`, sorted by name.
fn main() -> std::io::Result<()> {
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
    println!("cargo::rerun-if-changed=suites");
    std::fs::write(folder("OUT_DIR").join("suites.rs"), list)
}

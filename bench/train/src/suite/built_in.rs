//! Suites that are part of the program.

use std::path::Path;

use crate::names::unknown;

/// Suites that are part of the program: name and text of each file of `suites/`, sorted by name. The build script
/// lists them.
pub const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/suites.rs"));

/// Text of a suite with every feature and comments, with a name of the caller.
pub fn example(name: &str) -> String {
    let text = include_str!("../../suites/example.toml.in");
    text.replace("{name}", name).trim_end().to_owned()
}

/// Name and text of a built-in suite, or of the file at a path.
///
/// # Errors
/// If there is none.
pub fn text(name_or_path: &str) -> anyhow::Result<(String, String)> {
    if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
        return Ok(((*name).to_owned(), (*text).to_owned()));
    }
    let path = Path::new(name_or_path);
    let looks_like_path = path.extension().is_some() || name_or_path.contains(['/', '\\']);
    anyhow::ensure!(
        looks_like_path || path.is_file(),
        "{}; or give the path of a TOML file",
        unknown("suite", name_or_path, BUILT_IN.iter().map(|(name, _)| *name))
    );
    anyhow::ensure!(
        !path.is_dir(),
        "{name_or_path} is a folder, but a suite is a TOML file or a built-in name (`pe-bench list suites`); \
         commands that read records take the results folder with --results"
    );
    let text = tasks::read_text(path).map_err(|error| {
        anyhow::anyhow!(
            "cannot read suite {name_or_path}: {}; check the path, or name a built-in suite (`pe-bench list suites`)",
            error.cause
        )
    })?;
    Ok((name_or_path.to_owned(), text))
}

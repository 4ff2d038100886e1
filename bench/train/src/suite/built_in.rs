//! Suites that are part of the program.

use std::path::Path;

use pe_zoo::settings::nearest;

use super::SuiteError;

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
/// [`SuiteError::Unknown`], [`SuiteError::Folder`] or [`SuiteError::Unreadable`].
pub fn text(name_or_path: &str) -> Result<(String, String), SuiteError> {
    if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
        return Ok(((*name).to_owned(), (*text).to_owned()));
    }
    let path = Path::new(name_or_path);
    let looks_like_path = path.extension().is_some() || name_or_path.contains(['/', '\\']);
    if !looks_like_path && !path.is_file() {
        return Err(SuiteError::Unknown {
            name: name_or_path.to_owned(),
            nearest: nearest(name_or_path, BUILT_IN.iter().map(|(name, _)| *name)),
            known: BUILT_IN.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        });
    }
    match tasks::read_text(path) {
        Ok(text) => Ok((name_or_path.to_owned(), text)),
        Err(_) if path.is_dir() => Err(SuiteError::Folder { path: path.to_owned() }),
        Err(error) => Err(SuiteError::Unreadable { path: path.to_owned(), source: error.cause }),
    }
}

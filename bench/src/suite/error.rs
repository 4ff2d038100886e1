//! What can be wrong with a suite.

use std::path::PathBuf;

/// A suite that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// No suite has this name and no file this path.
    #[error("unknown suite `{name}`{}; built in: {known}; or give the path of a TOML file", nearest.as_ref().map(|n| format!(", did you mean `{n}`?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name, if one is near.
        nearest: Option<String>,
        /// All names.
        known: String,
    },
    /// The file cannot be read.
    #[error("suite {path}: {source}; check the path", path = path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no TOML.
    #[error("suite {name}: {source}")]
    Syntax {
        /// The suite.
        name: String,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// A field is unknown, missing, of the wrong type or out of its range.
    #[error("suite {name}: at `{path}`: {reason}")]
    Field {
        /// The suite.
        name: String,
        /// Where in it.
        path: String,
        /// What was wrong and what was expected.
        reason: String,
    },
}

impl SuiteError {
    pub(super) fn field(name: &str, path: &str, reason: String) -> Self {
        Self::Field { name: name.to_owned(), path: path.to_owned(), reason }
    }
}

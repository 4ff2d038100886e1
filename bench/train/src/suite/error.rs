//! Errors of suites.

use std::path::PathBuf;

/// Error of a suite.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// There is no built-in suite or file with this name.
    #[error("unknown suite `{name}`{}; built in: {known}; or give the path of a TOML file", nearest.as_ref().map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default())]
    Unknown {
        /// The value that was requested.
        name: String,
        /// The nearest name, if one is near.
        nearest: Option<String>,
        /// All names that exist.
        known: String,
    },
    /// The path is of a folder.
    #[error("{path} is a folder, and a suite is a TOML file or a built-in name (`pe-bench list suites`); commands that read records take their folder with --results", path = path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read suite {path}: {source}; check the path, or name a built-in suite (`pe-bench list suites`)", path = path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the refusal.
        source: std::io::Error,
    },
    /// The text is not TOML.
    #[error("suite {name}: {source}")]
    Syntax {
        /// Name of the suite.
        name: String,
        /// Place and reason of the error.
        source: Box<toml::de::Error>,
    },
    /// A field is unknown, missing, of the wrong type or out of its range.
    #[error("suite {name}: {}{reason}", place(path))]
    Field {
        /// Name of the suite.
        name: String,
        /// Path of the field.
        path: String,
        /// The value that was found and what was expected.
        reason: String,
    },
}

/// Beginning of a message about a field; empty for the whole file.
fn place(path: &str) -> String {
    match path {
        "" => String::new(),
        // Names of workloads are in backticks already.
        path if path.contains('`') => format!("at {path}: "),
        path => format!("at `{path}`: "),
    }
}

impl SuiteError {
    /// The same error, with `to` as its place if that was `from`: a command may have another name for an override.
    #[must_use]
    pub fn moved(mut self, from: &str, to: &str) -> Self {
        if let Self::Field { path, .. } = &mut self
            && path == from
        {
            to.clone_into(path);
        }
        self
    }

    /// Error of the suite `name` about a field.
    pub(super) fn field(name: &str, (path, reason): FieldError) -> Self {
        Self::Field { name: name.to_owned(), path, reason }
    }
}

/// Path of a field, and what is wrong with it.
pub(super) type FieldError = (String, String);

/// Adds the path of a field to a reason.
pub(super) fn at(path: impl Into<String>) -> impl FnOnce(String) -> FieldError {
    let path = path.into();
    move |reason| (path, reason)
}

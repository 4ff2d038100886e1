//! Errors of suites.

/// Error about a field of a suite: unknown, missing, of the wrong type or out of its range.
#[derive(Debug, thiserror::Error)]
#[error("suite {name}: {}{reason}", place(path))]
pub struct SuiteError {
    /// Name of the suite.
    name: String,
    /// Path of the field.
    path: String,
    /// The value that was found and what was expected.
    reason: String,
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
        if self.path == from {
            to.clone_into(&mut self.path);
        }
        self
    }

    /// Error of the suite `name` about a field.
    pub(super) fn field(name: &str, (path, reason): FieldError) -> Self {
        Self { name: name.to_owned(), path, reason }
    }
}

/// Path of a field, and what is wrong with it.
pub(super) type FieldError = (String, String);

/// Adds the path of a field to a reason.
pub(super) fn at(path: impl Into<String>) -> impl FnOnce(String) -> FieldError {
    let path = path.into();
    move |reason| (path, reason)
}

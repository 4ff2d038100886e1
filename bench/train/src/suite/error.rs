//! Errors of suites.

use std::fmt::Write as _;

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

    /// The same error with the line of the suite's `text` that it is about, if only one sets the field.
    pub(super) fn shown_in(mut self, text: &str) -> Self {
        let unknown = self.reason.strip_prefix("unknown field `");
        let field = unknown.map_or(&*self.path, |rest| rest.split('`').next().unwrap_or_default());
        let key = field.rsplit('.').next().unwrap_or_default();
        let set_at = |line: &str| {
            let is_set = |at: &usize| {
                let before = line[..*at].trim_end();
                let sets = line[at + key.len()..].trim_start().starts_with('=');
                sets && (before.is_empty() || before.ends_with(['{', ',', '.', '[']))
            };
            line.match_indices(key).map(|(at, _)| at).find(is_set)
        };
        let lines = text.lines().enumerate();
        let mut lines = lines.filter_map(|(index, line)| Some((index + 1, line, set_at(line)?)));
        if let (false, Some((number, line, at)), None) =
            (key.is_empty(), lines.next(), lines.next())
        {
            let column = line[..at].chars().count();
            let (margin, space) = (" ".repeat(number.to_string().len()), " ".repeat(column));
            let (name, carets) = (&self.name, "^".repeat(key.chars().count()));
            let _ = write!(
                self.reason,
                "\n{margin}--> {name}:{number}:{}\n{margin} |\n{number} | {line}\n{margin} | {space}{carets}",
                column + 1
            );
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

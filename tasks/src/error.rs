//! What can be wrong with a task's settings, and what to do about it.

use thiserror::Error;

use crate::corpus::CorpusError;
use crate::tokenizer::TokenizerError;
use crate::tokens::CacheError;

/// Why a task, a length or an evaluation set was refused.
#[derive(Debug, Error)]
pub enum TaskError {
    /// No task has this id.
    #[error("unknown task `{id}`{}; known tasks: {}", did_you_mean(*.nearest), .known.join(", "))]
    UnknownTask {
        /// What was asked for.
        id: String,
        /// The id most like it, if any is.
        nearest: Option<&'static str>,
        /// All ids.
        known: Vec<&'static str>,
    },
    /// The task has no such split.
    #[error("{task}: unknown split `{split}`{}; known splits: {}", did_you_mean(*.nearest), .known.join(", "))]
    UnknownSplit {
        /// Id of the task.
        task: &'static str,
        /// What was asked for.
        split: String,
        /// The name most like it, if any is.
        nearest: Option<&'static str>,
        /// All splits of the task.
        known: Vec<&'static str>,
    },
    /// A setting is outside its range.
    #[error("{task}: {field} is {value}, must be {expected}")]
    InvalidSetting {
        /// Id of the task.
        task: &'static str,
        /// Key in the configuration.
        field: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// The task has no samples of this length.
    #[error("{task}: len is {len}, must be {expected}")]
    InvalidLen {
        /// Id of the task.
        task: &'static str,
        /// What was asked for, in the task's unit.
        len: usize,
        /// What it may be.
        expected: String,
    },
    /// The text has fewer windows than asked for.
    #[error(
        "{task}: {count} windows of {window} tokens do not fit into the {part} part of the text, \
         which has {tokens} tokens in {documents} documents (room for {fits}); \
         use a shorter len, fewer samples, a longer text or `documents = \"joined\"`"
    )]
    TextTooShort {
        /// Id of the task.
        task: &'static str,
        /// `training`, `validation` or `test`.
        part: &'static str,
        /// Size of that part.
        tokens: usize,
        /// In so many documents, none of which a window leaves.
        documents: usize,
        /// Size of a window, in tokens.
        window: usize,
        /// Windows asked for.
        count: usize,
        /// Windows there are.
        fits: usize,
    },
    /// The text could not be had.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The tokenizer could not be had.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The tokens could not be made or kept.
    #[error(transparent)]
    Tokens(#[from] CacheError),
}

/// Ends an "unknown name" message: ` (did you mean ...?)`, or nothing.
pub(crate) fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// Finds the known name most like `name`; none if nothing is alike.
pub(crate) fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    /// Below this a suggestion is more noise than help; a two-letter slip in a short id scores about 0.6.
    const ALIKE: f64 = 0.45;
    known
        .iter()
        .map(|k| (strsim::normalized_damerau_levenshtein(name, k), *k))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_a_slip_and_refuses_nonsense() {
        let known = ["copy", "counting", "flip-flop", "text"];
        assert_eq!(nearest("flipflop", &known), Some("flip-flop"));
        assert_eq!(nearest("count", &known), Some("counting"));
        assert_eq!(nearest("zzz", &known), None);
    }
}

//! Errors of tasks: unknown names, invalid settings and lengths, unavailable texts.

use thiserror::Error;

use crate::corpus::CorpusError;
use crate::nearest::or_known;
use crate::tokenizer::TokenizerError;
use crate::tokens::CacheError;

/// Reason why a task, a length or an evaluation set was refused.
#[derive(Debug, Error)]
pub enum TaskError {
    /// No task has this id.
    #[error("unknown task `{id}`{}", or_known(*.nearest, "tasks", .known))]
    UnknownTask {
        /// Id that was requested.
        id: String,
        /// The most similar id.
        nearest: Option<&'static str>,
        /// Ids of all known tasks.
        known: Vec<&'static str>,
    },
    /// The task has no split of this name.
    #[error("{task}: unknown split `{split}`{}", or_known(*.nearest, "splits", .known))]
    UnknownSplit {
        /// Id of the task.
        task: &'static str,
        /// Name that was requested.
        split: String,
        /// The most similar name.
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
        /// Value that was refused.
        value: String,
        /// Description of the accepted values.
        expected: String,
    },
    /// The task has no samples of this length.
    #[error("{task}: len is {len}, must be {expected}")]
    InvalidLen {
        /// Id of the task.
        task: &'static str,
        /// The requested length, in the task's unit.
        len: usize,
        /// Description of the accepted lengths.
        expected: String,
    },
    /// The tokenizer of a pretrained model does not suit the task.
    #[error("{task}: {reason}")]
    ModelTokenizer {
        /// Id of the task.
        task: &'static str,
        /// Problem, with a remedy.
        reason: String,
    },
    /// The text has fewer windows than requested.
    #[error(
        "{task}: {} into the {part} part of the text, which has {tokens} tokens in {documents} {} (windows that fit: \
         {fits}); use a shorter len{}",
        too_many(*.count, *.window),
        documents_word(*.documents),
        instead(*.fits, *.documents)
    )]
    TextTooShort {
        /// Id of the task.
        task: &'static str,
        /// `training`, `validation` or `test`.
        part: &'static str,
        /// Size of the part in tokens.
        tokens: usize,
        /// Number of documents in the part; a window lies within one document.
        documents: usize,
        /// Size of a window in tokens.
        window: usize,
        /// Number of requested windows.
        count: usize,
        /// Number of windows that fit.
        fits: usize,
    },
    /// The text is not available.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The tokenizer is not available.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The tokens could not be computed or stored.
    #[error(transparent)]
    Tokens(#[from] CacheError),
}

fn too_many(count: usize, window: usize) -> String {
    match count {
        1 => format!("1 window of {window} tokens does not fit"),
        _ => format!("{count} windows of {window} tokens do not fit"),
    }
}

fn documents_word(documents: usize) -> &'static str {
    if documents == 1 { "document" } else { "documents" }
}

/// The rest of the advice: fewer windows need room for one, and windows across documents more than one document.
fn instead(fits: usize, documents: usize) -> &'static str {
    match (fits > 0, documents > 1) {
        (true, true) => ", fewer samples, a longer text or `documents = \"joined\"`",
        (true, false) => ", fewer samples or a longer text",
        (false, true) => ", a longer text or `documents = \"joined\"`",
        (false, false) => " or a longer text",
    }
}

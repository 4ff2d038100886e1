//! Why a corpus could not be had.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::data::DataError;
use crate::error::did_you_mean;

/// What to do when a corpus cannot be fetched.
const INSTEAD: &str = "give any UTF-8 text file with `--data PATH` instead";

/// Why a corpus could not be had.
#[derive(Debug, Error)]
pub enum CorpusError {
    /// No corpus has this name.
    #[error("unknown corpus `{name}`{}; known corpora: {}; or {INSTEAD}", did_you_mean(*.nearest), .known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The name most like it, if any is.
        nearest: Option<&'static str>,
        /// All names.
        known: Vec<&'static str>,
    },
    /// A package manager could not be started.
    #[error("cannot run `{program}` to fetch the corpus ({source}): {install}, or {INSTEAD}")]
    ToolMissing {
        /// What was to be run.
        program: String,
        /// How to get it.
        install: &'static str,
        /// Why it could not.
        source: std::io::Error,
    },
    /// A package manager ran and failed.
    #[error(
        "`{command}` failed, so the corpus is not here; it said:\n{stderr}\nCheck the network and {install}, or {INSTEAD}"
    )]
    ToolFailed {
        /// What was run.
        command: String,
        /// The last lines of its error output.
        stderr: String,
        /// How to get a whole one.
        install: &'static str,
    },
    /// The package manager did its work, and the package is not there.
    #[error("package {package} has not come ({why}); {INSTEAD}")]
    NotBrought {
        /// The package, with its version.
        package: String,
        /// What is missing.
        why: String,
    },
    /// The text is not the expected one.
    #[error("{path} is not what is expected: sha256 is {got}, must be {expected}; {INSTEAD}", path = .path.display())]
    HashMismatch {
        /// The file, or the package whose files they are.
        path: PathBuf,
        /// The pinned hash.
        expected: &'static str,
        /// The hash that was found.
        got: String,
    },
    /// Asked to verify a corpus that is not on this machine.
    #[error("corpus {id} is not on this machine: `pe-bench data fetch {id}` brings it")]
    Absent {
        /// The corpus.
        id: &'static str,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {action} {path}: {source}", path = .path.display())]
    Io {
        /// `read`, `write`, ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is here and cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl CorpusError {
    /// An input or output error with its path.
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }
}

//! Why a text could not be had.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::error::did_you_mean;

/// What to do when a corpus cannot be fetched.
const INSTEAD: &str = "give any UTF-8 text file with `--data PATH` instead";

/// Why a text could not be had.
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
    /// Cargo could not be started.
    #[error(
        "cannot run `{program}` to fetch the corpus ({source}): put cargo on the PATH, or {INSTEAD}"
    )]
    CargoMissing {
        /// What was to be run.
        program: String,
        /// Why it could not.
        source: std::io::Error,
    },
    /// Cargo ran and failed.
    #[error(
        "`{command}` failed, so the corpus is not here; it said:\n{stderr}\nCheck the network, or {INSTEAD}"
    )]
    CargoFailed {
        /// What was run.
        command: String,
        /// The last lines of its error output.
        stderr: String,
    },
    /// Cargo's answer does not say where the package is.
    #[error("cannot find package {package} in the output of `cargo metadata` ({why}); {INSTEAD}")]
    Metadata {
        /// The package looked for, with its version.
        package: String,
        /// What was wrong with the output.
        why: String,
    },
    /// The text is not the expected one.
    #[error("{path} is not the expected text: sha256 is {got}, must be {expected}; {INSTEAD}", path = .path.display())]
    HashMismatch {
        /// The file.
        path: PathBuf,
        /// The pinned hash.
        expected: &'static str,
        /// The hash of the file.
        got: String,
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
    /// There is no such file.
    #[error("{path} does not exist: check the path of the text", path = .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file has no text in it.
    #[error("{path} is empty, must be a text to learn from", path = .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is not UTF-8.
    #[error("{path} is not UTF-8 from byte {offset} on: save it as UTF-8", path = .path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Offset of the first bad byte, from 0.
        offset: usize,
    },
}

impl CorpusError {
    /// An input or output error with its path.
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }
}

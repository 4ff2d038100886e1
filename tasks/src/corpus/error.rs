//! Errors of corpora.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::data::DataError;
use crate::files::{FileError, help_if_full};
use crate::nearest::or_known;

/// Alternative when a corpus cannot be fetched.
const INSTEAD: &str = "give any UTF-8 text file with `--data PATH` instead";

/// Reason why a corpus is not available.
#[derive(Debug, Error)]
pub enum CorpusError {
    /// No corpus has this name.
    #[error("unknown corpus `{name}`{}", or_known(*.nearest, "corpora", .known))]
    Unknown {
        /// Name that was requested.
        name: String,
        /// The most similar name.
        nearest: Option<&'static str>,
        /// Names of all known corpora.
        known: Vec<&'static str>,
    },
    /// A package manager could not be started.
    #[error("cannot run `{program}` to fetch the corpus ({cause}): {install}, or {INSTEAD}")]
    ToolMissing {
        /// Name of the program.
        program: String,
        /// How to install it.
        install: &'static str,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// A package manager failed.
    #[error(
        "`{command}` failed, so the corpus was not fetched; its output:\n{stderr}\n{}, or {INSTEAD}",
        help_if_full(.stderr).map_or_else(|| format!("check the network and {install}"), str::to_owned)
    )]
    ToolFailed {
        /// Command line that failed.
        command: String,
        /// The last lines of its error output.
        stderr: String,
        /// How to install the program.
        install: &'static str,
    },
    /// The package manager succeeded without delivering the package.
    #[error("package {package} was not fetched ({why}); {INSTEAD}")]
    NotFetched {
        /// The package, with its version.
        package: String,
        /// Description of the observed fault.
        why: String,
    },
    /// The content differs from the pinned one.
    #[error("{path} has sha256 {got}, expected {expected}; {INSTEAD}", path = .path.display())]
    HashMismatch {
        /// The file or the package.
        path: PathBuf,
        /// SHA-256 that is pinned.
        expected: &'static str,
        /// SHA-256 of the content.
        got: String,
    },
    /// The corpus to verify has not been fetched.
    #[error("corpus {id} is not on this machine: fetch it with `pe-bench data fetch {id}`")]
    Absent {
        /// Id of the corpus.
        id: &'static str,
    },
    /// A file or folder could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The fetched text cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl CorpusError {
    /// Refuses the content of a file or package whose SHA-256 is not the pinned one.
    pub(super) fn check_hash(path: &Path, got: String, expected: &'static str) -> Result<(), Self> {
        if got == expected {
            return Ok(());
        }
        Err(Self::HashMismatch { path: path.to_path_buf(), expected, got })
    }
}

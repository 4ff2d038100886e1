//! Errors of data sets of the HuggingFace hub.

use std::path::PathBuf;

use thiserror::Error;

use crate::files::{FileError, help_if_full};

/// Alternative when a data set cannot be downloaded.
const INSTEAD: &str = "download the files by other means and pass them with `--data PATH`";

/// Advice if the client fails and the disk is not full.
const CONNECTION: &str = "check its name and the network (a data set that asks for consent needs the hub's token on this \
                          machine)";

/// Reason why a data set of the hub is not available.
#[derive(Debug, Error)]
pub enum HubError {
    /// The text is not the name of a data set.
    #[error(
        "`{text}` is not the name of a data set: {why}; expected hf:OWNER/NAME or hf:OWNER/NAME/PATH of a file or folder \
         in it, optionally followed by @REVISION"
    )]
    Name {
        /// Text that was given.
        text: String,
        /// Fault of the text.
        why: &'static str,
    },
    /// The program was built without the client.
    #[error(
        "this pe-bench cannot download data sets, because it was built without the feature `hub`: \
         build it with `cargo run --release --features hub -- data fetch ...`, or {INSTEAD}"
    )]
    NotBuilt,
    /// The client of the hub failed.
    #[error(
        "cannot {what} {set}: {why}; {}, or {INSTEAD}",
        help_if_full(why).unwrap_or(CONNECTION)
    )]
    Client {
        /// Name of the data set.
        set: String,
        /// Failed operation: `list`, `download FILE of`.
        what: String,
        /// Error message of the client.
        why: String,
    },
    /// The requested file or folder is not in the data set.
    #[error("{set}: there is no `{path}`; it has: {known}")]
    NotThere {
        /// Name of the data set.
        set: String,
        /// Path that was requested.
        path: String,
        /// Files of the data set.
        known: String,
    },
    /// No requested file can be read.
    #[error("{set} has no readable file, expected one that ends in {expected}; it has: {known}")]
    NothingReadable {
        /// Name of the data set.
        set: String,
        /// Endings of readable files.
        expected: String,
        /// Files of the data set.
        known: String,
    },
    /// Several folders have a training part each.
    #[error("{set} contains several data sets; name one of them: {folders}")]
    Several {
        /// Name of the data set.
        set: String,
        /// Names of the data sets.
        folders: String,
    },
    /// A downloaded file differs from that of the hub.
    #[error(
        "{file} of {set} was not downloaded completely ({why}): fetch again; nothing was stored"
    )]
    NotWhole {
        /// Name of the data set.
        set: String,
        /// Path of the file.
        file: String,
        /// Description of the difference.
        why: String,
    },
    /// The data set to verify has not been fetched.
    #[error("{set} is not on this machine: fetch it with `pe-bench data fetch {set}`")]
    Absent {
        /// Name of the data set.
        set: String,
    },
    /// A stored file differs from the downloaded one.
    #[error("{path} is damaged ({why}): fetch the data set again", path = .path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the observed fault.
        why: String,
    },
    /// A file or folder could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

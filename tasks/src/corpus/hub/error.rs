//! Why a data set of the hub could not be had.

use std::path::PathBuf;

use thiserror::Error;

use crate::corpus::CorpusError;

/// What to do when a data set does not come.
const INSTEAD: &str = "bring the files by other means and give them with `--data PATH`";

/// Why a data set of the hub could not be had.
#[derive(Debug, Error)]
pub enum HubError {
    /// The name is none.
    #[error(
        "`{text}` names no data set: {why}; expected hf:OWNER/NAME, hf:OWNER/NAME/PATH of a file or folder in it, \
         and, if you like, @REVISION behind it"
    )]
    Name {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The client is not part of this program.
    #[error(
        "this pe-bench cannot download data sets, because it was built without the feature `hub`: \
         `cargo run --release --features hub -- data fetch ...` builds it, or {INSTEAD}"
    )]
    NotBuilt,
    /// The client failed.
    #[error(
        "cannot {what} {set}: {why}; check its name and the network (a data set that asks for consent needs the \
         hub's token on this machine), or {INSTEAD}"
    )]
    Client {
        /// The data set.
        set: String,
        /// `list`, `bring FILE of`.
        what: String,
        /// What the client said.
        why: String,
    },
    /// The data set has no such file or folder.
    #[error("{set}: there is no `{path}`; it has: {known}")]
    NotThere {
        /// The data set.
        set: String,
        /// What was asked for.
        path: String,
        /// What there is.
        known: String,
    },
    /// Nothing that was asked for can be read.
    #[error("{set} has nothing that can be read, which ends in {expected}; it has: {known}")]
    NothingReadable {
        /// The data set.
        set: String,
        /// Endings of what can be read.
        expected: String,
        /// What there is.
        known: String,
    },
    /// Several folders have a part for training each.
    #[error("{set} holds several data sets; name one of them: {folders}")]
    Several {
        /// The data set.
        set: String,
        /// Their names.
        folders: String,
    },
    /// A file did not come as the hub has it.
    #[error("{file} of {set} has not come whole ({why}): fetch again; nothing was kept")]
    NotWhole {
        /// The data set.
        set: String,
        /// The file.
        file: String,
        /// How it differs.
        why: String,
    },
    /// Asked to verify a data set that is not on this machine.
    #[error("{set} is not on this machine: `pe-bench data fetch {set}` brings it")]
    Absent {
        /// The data set.
        set: String,
    },
    /// What is kept is not what was brought.
    #[error("{path} is not what was brought ({why}): fetch the data set again", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file or folder could not be read or written.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
}

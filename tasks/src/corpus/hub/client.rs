//! Access to the hub over the network.

use std::path::PathBuf;

use super::name::DataSet;

/// Content of a data set at one revision.
pub(super) struct Listing {
    /// Commit of the revision.
    pub(super) commit: String,
    /// Paths of all files.
    pub(super) files: Vec<String>,
}

/// File downloaded from the hub.
pub(super) struct Download {
    pub(super) path: PathBuf,
    /// Size according to the hub.
    pub(super) bytes: u64,
    /// SHA-256 according to the hub, if it stores one.
    pub(super) sha256: Option<String>,
}

/// The network operations that fetching needs.
pub(super) trait Client {
    /// Lists the files at the requested revision.
    fn list(&self, set: &DataSet) -> Result<Listing, String>;

    /// Downloads one file at a commit.
    fn download(&self, set: &DataSet, commit: &str, file: &str) -> Result<Download, String>;
}

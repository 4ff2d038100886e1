//! The hub through the crate `hf-hub`.

use std::cell::Cell;
use std::path::Path;

use hf_hub::api::Progress;
use hf_hub::api::sync::{Api, ApiBuilder, ApiRepo};
use hf_hub::{Repo, RepoType};

use super::client::{Client, Download, Listing};
use super::error::HubError;
use super::name::DataSet;
use crate::caught::caught;

/// Number of times that an interrupted download is resumed.
const RETRIES: usize = 3;

/// Number of digits of a SHA-256; files that the hub stores under another hash have fewer.
const SHA256_DIGITS: usize = 64;

/// Client of the hub. Address and token come from the environment variables of the hub's own tools.
pub(super) struct Hub(Api);

impl Hub {
    /// Returns a client that downloads into `work`.
    pub(super) fn new(work: &Path) -> Result<Self, HubError> {
        Self::at(work, None)
    }

    /// Like [`Hub::new`], for a server at this address.
    pub(super) fn at(work: &Path, address: Option<String>) -> Result<Self, HubError> {
        let refused =
            |why| HubError::Client { set: "the hub".to_owned(), what: "reach".to_owned(), why };
        let builder = || {
            let builder = ApiBuilder::from_env();
            let builder = match address {
                Some(address) => builder.with_endpoint(address),
                None => builder,
            };
            builder
                .with_cache_dir(work.join("client"))
                .with_progress(false)
                .with_retries(RETRIES)
                .build()
                .map_err(|error| error.to_string())
        };
        // The client panics without a home folder.
        caught(builder).map(Self).map_err(refused)
    }

    fn repo(&self, set: &DataSet, revision: &str) -> ApiRepo {
        let revision = revision.to_owned();
        self.0.repo(Repo::with_revision(set.repository(), RepoType::Dataset, revision))
    }
}

impl Client for Hub {
    fn list(&self, set: &DataSet) -> Result<Listing, String> {
        let info = || self.repo(set, set.revision()).info().map_err(|error| error.to_string());
        let info = caught(info)?;
        let files = info.siblings.into_iter().map(|file| file.rfilename).collect();
        Ok(Listing { commit: info.sha, files })
    }

    fn download(&self, set: &DataSet, commit: &str, file: &str) -> Result<Download, String> {
        let bytes = Cell::new(0);
        let download = || {
            let repo = self.repo(set, commit);
            repo.download_with_progress(file, Size(&bytes)).map_err(|error| error.to_string())
        };
        // The result is a link to the file, whose name is its hash.
        let link = caught(download)?;
        let path = link.canonicalize().map_err(|error| error.to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_sha256 =
            name.len() == SHA256_DIGITS && name.chars().all(|digit| digit.is_ascii_hexdigit());
        let sha256 = is_sha256.then(|| name.to_ascii_lowercase());
        Ok(Download { path, bytes: bytes.get(), sha256 })
    }
}

/// Records the announced size of a file.
struct Size<'a>(&'a Cell<u64>);

impl Progress for Size<'_> {
    fn init(&mut self, size: usize, _filename: &str) {
        self.0.set(size as u64);
    }

    fn update(&mut self, _size: usize) {}

    fn finish(&mut self) {}
}

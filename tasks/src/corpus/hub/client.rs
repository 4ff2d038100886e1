//! The hub through its own client.

use std::cell::Cell;
use std::path::Path;

use hf_hub::api::Progress;
use hf_hub::api::sync::{Api, ApiBuilder, ApiRepo};
use hf_hub::{Repo, RepoType};

use super::{Brought, Client, DataSet, HubError, Listing};
use crate::caught::caught;

/// How often a broken download is taken up again.
const RETRIES: usize = 3;

/// Digits of a SHA-256; files that the hub keeps by another hash have fewer.
const SHA256_DIGITS: usize = 64;

/// The hub's client, with address and token as its own tools have them in their environment.
pub(super) struct Hub(Api);

impl Hub {
    /// `work` takes what comes.
    pub(super) fn new(work: &Path) -> Result<Self, HubError> {
        Self::at(work, None)
    }

    /// As [`Hub::new`], at an address of one's own.
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
        // The client gives up where there is no home folder.
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

    fn bring(&self, set: &DataSet, commit: &str, file: &str) -> Result<Brought, String> {
        let bytes = Cell::new(0);
        let download = || {
            let repo = self.repo(set, commit);
            repo.download_with_progress(file, Size(&bytes)).map_err(|error| error.to_string())
        };
        // What comes is a link to the file, whose name is its hash.
        let link = caught(download)?;
        let path = link.canonicalize().map_err(|error| error.to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_sha256 =
            name.len() == SHA256_DIGITS && name.chars().all(|digit| digit.is_ascii_hexdigit());
        let sha256 = is_sha256.then(|| name.to_ascii_lowercase());
        Ok(Brought { path, bytes: bytes.get(), sha256 })
    }
}

/// Takes down how large a file is to be.
struct Size<'a>(&'a Cell<u64>);

impl Progress for Size<'_> {
    fn init(&mut self, size: usize, _filename: &str) {
        self.0.set(size as u64);
    }

    fn update(&mut self, _size: usize) {}

    fn finish(&mut self) {}
}

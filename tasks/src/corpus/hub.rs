//! Data sets of the HuggingFace hub, by name: `hf:OWNER/NAME`, `hf:OWNER/NAME/PATH`, and `@REVISION` behind either.
//!
//! What is brought lies in a folder of its own in the cache folder, with the hash of each file beside it, and is read
//! from there as any other file or folder is ([`crate::data`]). Which files are brought is decided from their names
//! alone. The client itself is behind the cargo feature `hub`; what has been brought is found without it.

mod choice;
#[cfg(feature = "hub")]
mod client;
mod error;
mod kept;
mod name;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub use error::HubError;
pub use name::{DataSet, PREFIX};

use super::fetch::{folder_in, remove_stale, unique_folder};
use super::{CorpusError, cache_dir};
use kept::{Manifest, sha256_of};

/// What the hub says of a data set at one revision.
struct Listing {
    /// The commit that the revision stands for.
    commit: String,
    /// Paths of all files.
    files: Vec<String>,
}

/// A file that has come.
struct Brought {
    path: PathBuf,
    /// What the hub says of its size.
    bytes: u64,
    /// What the hub says of its hash, where it keeps one.
    sha256: Option<String>,
}

/// The network's side: as little as can be.
trait Client {
    /// What there is, at the revision that was asked for.
    fn list(&self, set: &DataSet) -> Result<Listing, String>;

    /// Brings one file at a commit.
    fn bring(&self, set: &DataSet, commit: &str, file: &str) -> Result<Brought, String>;
}

/// The file or folder of a data set on this machine, for [`crate::data::read`]; it is brought if it is not there yet,
/// whole or not at all. `tell` hears what is being brought.
///
/// What is there is used if its hashes are right, without asking the network, whatever `main` may have become.
///
/// # Errors
/// [`HubError`]; all say what to do instead.
pub fn fetch(set: &DataSet, tell: &mut dyn FnMut(&str)) -> Result<PathBuf, HubError> {
    fetch_into(set, &cache_dir(), client, tell)
}

/// Finds what has been brought and checks all hashes.
///
/// # Errors
/// [`HubError::Absent`], [`HubError::Damaged`].
pub fn verify(set: &DataSet) -> Result<PathBuf, HubError> {
    kept::find(set, &place(set, &cache_dir()))
}

#[cfg(feature = "hub")]
fn client(work: &Path) -> Result<client::Hub, HubError> {
    client::Hub::new(work)
}

#[cfg(not(feature = "hub"))]
fn client(_work: &Path) -> Result<NotBuilt, HubError> {
    Err(HubError::NotBuilt)
}

/// The client of a program without one.
#[cfg(not(feature = "hub"))]
enum NotBuilt {}

#[cfg(not(feature = "hub"))]
impl Client for NotBuilt {
    fn list(&self, _set: &DataSet) -> Result<Listing, String> {
        match *self {}
    }

    fn bring(&self, _set: &DataSet, _commit: &str, _file: &str) -> Result<Brought, String> {
        match *self {}
    }
}

fn hub_in(cache: &Path) -> PathBuf {
    folder_in(cache).join("hub")
}

/// The folder of a data set in a cache folder.
fn place(set: &DataSet, cache: &Path) -> PathBuf {
    hub_in(cache).join(set.folder_name())
}

fn fetch_into<C: Client>(
    set: &DataSet,
    cache: &Path,
    client: impl FnOnce(&Path) -> Result<C, HubError>,
    tell: &mut dyn FnMut(&str),
) -> Result<PathBuf, HubError> {
    let place = place(set, cache);
    if let Ok(path) = kept::find(set, &place) {
        return Ok(path);
    }
    let folder = hub_in(cache);
    fs::create_dir_all(&folder).map_err(|e| CorpusError::io("create the folder", &folder, e))?;
    remove_stale(&folder);
    let work = unique_folder(&folder, &set.folder_name())?;
    let result = client(&work)
        .and_then(|client| bring(set, &client, &work, tell))
        .and_then(|new| put_in_place(set, &new, &place, &work));
    // Left-overs are harmless, and a failure to remove them must not hide the result.
    let _ = fs::remove_dir_all(&work);
    result
}

/// Brings everything into `work`; returns the folder that is to be put in place.
fn bring(
    set: &DataSet,
    client: &impl Client,
    work: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<PathBuf, HubError> {
    let refused = |what: String, why| HubError::Client { set: set.to_string(), what, why };
    let Listing { commit, files } =
        client.list(set).map_err(|why| refused("list".to_owned(), why))?;
    let choice = choice::choose(set, &files)?;
    let new = work.join("new");
    let mut manifest =
        Manifest { set: set.to_string(), commit, read: choice.read, files: BTreeMap::new() };
    let of = choice.files.len();
    let left = files.len() - of;
    tell(&format!("{set}: {of} files at commit {}, {left} others left alone", manifest.commit));
    for (at, file) in choice.files.iter().enumerate() {
        tell(&format!("{} of {of}: {file}", at + 1));
        let brought = client
            .bring(set, &manifest.commit, file)
            .map_err(|why| refused(format!("bring {file} of"), why))?;
        let target = kept::file_in(&new, file);
        let parent = target.parent().unwrap_or(&new);
        fs::create_dir_all(parent).map_err(|e| CorpusError::io("create the folder", parent, e))?;
        fs::rename(&brought.path, &target)
            .map_err(|e| CorpusError::io("move the file to", &target, e))?;
        let sha256 = checked(set, file, &target, &brought)?;
        manifest.files.insert(file.clone(), sha256);
    }
    manifest.write(&new)?;
    Ok(new)
}

/// The hash of a file that has come, which must be as large as the hub says and have the hash that it says.
fn checked(set: &DataSet, file: &str, path: &Path, brought: &Brought) -> Result<String, HubError> {
    let (sha256, bytes) = sha256_of(path)?;
    let not_whole =
        |why| Err(HubError::NotWhole { set: set.to_string(), file: file.to_owned(), why });
    if bytes != brought.bytes {
        return not_whole(format!("{bytes} bytes have come, must be {}", brought.bytes));
    }
    match &brought.sha256 {
        Some(expected) if *expected != sha256 => {
            not_whole(format!("sha256 is {sha256}, must be {expected}"))
        }
        _ => Ok(sha256),
    }
}

/// Puts what is whole where it belongs; what is damaged there goes.
fn put_in_place(set: &DataSet, new: &Path, place: &Path, work: &Path) -> Result<PathBuf, HubError> {
    if fs::rename(new, place).is_ok() {
        return kept::read_in(set, place);
    }
    // The place is taken: by another process that was as fast, or by what is damaged.
    if let Ok(path) = kept::find(set, place) {
        return Ok(path);
    }
    fs::rename(place, work.join("old"))
        .and_then(|()| fs::rename(new, place))
        .map_err(|e| CorpusError::io("move the data set to", place, e))?;
    kept::read_in(set, place)
}

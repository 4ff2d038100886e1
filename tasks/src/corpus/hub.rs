//! Data sets of the HuggingFace hub, by name: `hf:OWNER/NAME` or `hf:OWNER/NAME/PATH`, optionally with `@REVISION`.
//!
//! A data set is stored in a folder of its own in the cache folder, with the hash of each file, and is read from there
//! like any other file or folder ([`crate::data`]). The files to download are chosen by their names alone. The client
//! requires the cargo feature `hub`; stored data sets are found without it.

#[cfg(feature = "hub")]
mod api;
mod choice;
mod client;
mod error;
mod manifest;
mod name;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub use error::HubError;
pub use name::{DataSet, PREFIX};

use super::cache::{cache_dir, folder_in};
use super::fetch::work_folder;
use crate::files::FileError;
use client::{Client, Download, Listing};
use manifest::{Manifest, sha256_of};

/// Returns the file or folder of a data set, for [`crate::data::read`], and downloads it first if necessary, completely
/// or not at all. `tell` is called with progress messages.
///
/// A stored data set with the right hashes is used without the network, even if `main` has changed.
///
/// # Errors
/// [`HubError`]; every message names an alternative.
pub fn fetch(set: &DataSet, tell: &mut dyn FnMut(&str)) -> Result<PathBuf, HubError> {
    fetch_into(set, &cache_dir(), client, tell)
}

/// Finds a stored data set and verifies all hashes.
///
/// # Errors
/// [`HubError::Absent`], [`HubError::Damaged`].
pub fn verify(set: &DataSet) -> Result<PathBuf, HubError> {
    manifest::find(set, &place(set, &cache_dir()))
}

#[cfg(feature = "hub")]
fn client(work: &Path) -> Result<api::Hub, HubError> {
    api::Hub::new(work)
}

#[cfg(not(feature = "hub"))]
fn client(_work: &Path) -> Result<NotBuilt, HubError> {
    Err(HubError::NotBuilt)
}

/// Client of a program that was built without one; the type has no values.
#[cfg(not(feature = "hub"))]
enum NotBuilt {}

#[cfg(not(feature = "hub"))]
impl Client for NotBuilt {
    fn list(&self, _set: &DataSet) -> Result<Listing, String> {
        match *self {}
    }

    fn download(&self, _set: &DataSet, _commit: &str, _file: &str) -> Result<Download, String> {
        match *self {}
    }
}

fn hub_in(cache: &Path) -> PathBuf {
    folder_in(cache).join("hub")
}

/// Folder of a data set in a cache folder.
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
    if let Ok(path) = manifest::find(set, &place) {
        return Ok(path);
    }
    let work = work_folder(&hub_in(cache), &set.folder_name())?;
    let result = client(&work)
        .and_then(|client| download(set, &client, &work, tell))
        .and_then(|new| put_in_place(set, &new, &place, &work));
    // Remnants are harmless, and a failure to remove them must not hide the result.
    let _ = fs::remove_dir_all(&work);
    result
}

/// Downloads all chosen files into `work` and returns the folder to move into place.
fn download(
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
    tell(&format!("{set}: {of} files at commit {}, {left} ignored", manifest.commit));
    for (at, file) in choice.files.iter().enumerate() {
        tell(&format!("{} of {of}: {file}", at + 1));
        let download = client
            .download(set, &manifest.commit, file)
            .map_err(|why| refused(format!("download {file} of"), why))?;
        let target = manifest::file_in(&new, file);
        let parent = target.parent().unwrap_or(&new);
        fs::create_dir_all(parent).map_err(FileError::of("create the folder", parent))?;
        fs::rename(&download.path, &target).map_err(FileError::of("move the file to", &target))?;
        let sha256 = checked(set, file, &target, &download)?;
        manifest.files.insert(file.clone(), sha256);
    }
    manifest.write(&new)?;
    Ok(new)
}

/// Returns the hash of a downloaded file after comparing size and hash with those of the hub.
fn checked(
    set: &DataSet,
    file: &str,
    path: &Path,
    download: &Download,
) -> Result<String, HubError> {
    let (sha256, bytes) = sha256_of(path)?;
    let not_whole =
        |why| Err(HubError::NotWhole { set: set.to_string(), file: file.to_owned(), why });
    if bytes != download.bytes {
        return not_whole(format!("{bytes} bytes, expected {}", download.bytes));
    }
    match &download.sha256 {
        Some(expected) if *expected != sha256 => {
            not_whole(format!("sha256 is {sha256}, expected {expected}"))
        }
        _ => Ok(sha256),
    }
}

/// Moves a complete data set into place and replaces a damaged one.
fn put_in_place(set: &DataSet, new: &Path, place: &Path, work: &Path) -> Result<PathBuf, HubError> {
    if fs::rename(new, place).is_ok() {
        return manifest::read_in(set, place);
    }
    // The folder exists: from a concurrent fetch, or damaged.
    if let Ok(path) = manifest::find(set, place) {
        return Ok(path);
    }
    fs::rename(place, work.join("old"))
        .and_then(|()| fs::rename(new, place))
        .map_err(FileError::of("move the data set to", place))?;
    manifest::read_in(set, place)
}

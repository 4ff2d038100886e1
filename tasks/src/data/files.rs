//! Files and folders.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::DataError;

/// Opens a regular file. A pipe would block until somebody writes to it, and a device may have no end.
pub(crate) fn open(path: &Path) -> Result<fs::File, DataError> {
    let failed = |source| DataError::io("read", path, source);
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(DataError::NotAFile { path: path.into() });
    }
    fs::File::open(path).map_err(failed)
}

/// Reads a text file: UTF-8, not empty.
pub(crate) fn read_text(path: &Path) -> Result<String, DataError> {
    let mut bytes = Vec::new();
    let read = open(path)?.read_to_end(&mut bytes);
    read.map_err(|source| DataError::io("read", path, source))?;
    if bytes.is_empty() {
        return Err(DataError::Empty { path: path.into() });
    }
    String::from_utf8(bytes).map_err(|error| DataError::NotUtf8 {
        path: path.into(),
        offset: error.utf8_error().valid_up_to(),
    })
}

/// Files below a folder that are accepted: path within it (with `/`) and path, sorted by the former. Names that begin
/// with a dot are passed over; links are followed to files, not to folders.
pub(crate) fn files_below(
    folder: &Path,
    accept: impl Fn(&Path) -> bool,
) -> Result<Vec<(String, PathBuf)>, DataError> {
    let mut found = Vec::new();
    let mut folders = vec![(String::new(), folder.to_path_buf())];
    while let Some((prefix, folder)) = folders.pop() {
        for (name, path) in entries(&folder)? {
            let is_link = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
            let within = format!("{prefix}{name}");
            if path.is_dir() {
                if !is_link {
                    folders.push((format!("{within}/"), path));
                }
            } else if accept(&path) {
                found.push((within, path));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// What a folder holds, by name; names that begin with a dot are passed over.
pub(super) fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, DataError> {
    let failed = |source| DataError::io("list the folder", folder, source);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            found.push((name, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

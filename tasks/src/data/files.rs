//! Reading files and listing folders.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::error::DataError;
use crate::files::{FileError, text_of};

/// Opens a regular file. Pipes and devices are refused: a pipe would block until somebody writes to it, and a device
/// may have no end.
pub(super) fn open(path: &Path) -> Result<fs::File, DataError> {
    let failed = FileError::of("read", path);
    if !fs::metadata(path).map_err(&failed)?.is_file() {
        return Err(DataError::NotAFile { path: path.into() });
    }
    Ok(fs::File::open(path).map_err(failed)?)
}

/// Reads a regular text file, which must be UTF-8 and not empty, without a byte-order mark at its beginning.
pub(crate) fn read_text(path: &Path) -> Result<String, DataError> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes).map_err(FileError::of("read", path))?;
    let text = text_of(bytes).map_err(|reason| DataError::NotUtf8 { path: path.into(), reason })?;
    if text.is_empty() {
        return Err(DataError::Empty { path: path.into() });
    }
    Ok(text)
}

/// Lists the accepted files below a folder, as path within it (with `/`) and path, sorted by the former. Names that
/// begin with a dot are skipped; links to files are followed, links to folders are not.
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

/// Lists the entries of a folder, sorted by name. Names that begin with a dot are skipped.
pub(super) fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, DataError> {
    let failed = FileError::of("list the folder", folder);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            found.push((name, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

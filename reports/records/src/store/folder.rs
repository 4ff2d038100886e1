//! Results folders: the records of `dir/cells/*.json`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::error::RecordError;
use crate::record::RunRecord;

/// Reader of the packed records of a results folder that have no file of their own, for programs that unpack none
/// themselves. The results are one for each record; the error is that the folder or its packed file cannot be read.
pub type PackedReader = fn(&Path) -> Result<Vec<Result<RunRecord, RecordError>>, RecordError>;

/// Lists the files of records of a results folder, sorted.
///
/// # Errors
/// [`RecordError::Io`] if the folder cannot be listed.
pub fn record_files(dir: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let cells = dir.join("cells");
    files_in(&cells, "json").map_err(|error| RecordError::io("list", &cells, error))
}

/// Lists the files of a folder with an extension, sorted; none if the folder does not exist. Hidden files, such as
/// temporary ones of interrupted writes, are ignored.
///
/// # Errors
/// The error of the file system if the folder cannot be listed.
pub fn files_in(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && path.extension().is_some_and(|own| own == extension) {
            paths.push(path);
        }
    }
    // As bytes: comparing the components of paths takes many times as long.
    paths.par_sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    Ok(paths)
}

/// Reads a record and compares its key with the name of its file.
///
/// # Errors
/// Those of [`RunRecord::read`], and [`RecordError::Damaged`] if the names differ.
pub fn read_named(path: PathBuf) -> Result<RunRecord, RecordError> {
    let record = RunRecord::read(&path)?;
    if path.file_stem().is_some_and(|stem| *stem == *record.key) {
        return Ok(record);
    }
    let reason =
        format!("it contains the cell {}, but its name is the key of another cell", record.key);
    Err(RecordError::Damaged { path, reason })
}

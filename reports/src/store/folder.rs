//! Results folders: the records of `dir/cells/*.json` and of `dir/records.parquet`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::error::RecordError;
use super::packed::read_packed;
use crate::record::RunRecord;

/// Reads every record of a results folder: `dir/cells/*.json` in the order of their keys, then those of
/// `dir/records.parquet` that have no such file.
///
/// The result is empty for a folder with neither. Temporary files of interrupted writes (their names begin with a
/// dot) are ignored.
///
/// # Errors
/// The first error of [`read_each`].
pub fn read_dir(dir: &Path) -> Result<Vec<RunRecord>, RecordError> {
    read_each(dir)?.into_iter().collect()
}

/// Reads every record of a results folder like [`read_dir`], with one result for each record.
///
/// A file whose name is not its record's key is [`RecordError::Damaged`], because its cell would be counted twice.
///
/// A `records.parquet` that is no file of packed records is one such result.
///
/// # Errors
/// [`RecordError::Io`] if the folder cannot be listed or `records.parquet` cannot be read.
pub fn read_each(dir: &Path) -> Result<Vec<Result<RunRecord, RecordError>>, RecordError> {
    let mut found: Vec<_> = record_files(dir)?.into_par_iter().map(read_named).collect();
    found.extend(packed_only(dir)?);
    Ok(found)
}

/// Reads the packed records of a results folder that have no file of their own.
///
/// # Errors
/// [`RecordError::Io`] if the folder cannot be listed or `records.parquet` cannot be read.
pub fn packed_only(dir: &Path) -> Result<Vec<Result<RunRecord, RecordError>>, RecordError> {
    let mut packed = read_packed(dir)?;
    packed.retain(|found| !found.as_ref().is_ok_and(|record| has_file(dir, record)));
    Ok(packed)
}

/// Whether a record of a results folder has a file of its own.
fn has_file(dir: &Path, record: &RunRecord) -> bool {
    dir.join("cells").join(format!("{}.json", record.key)).exists()
}

/// Writes a file for each packed record of a results folder that has none, and returns their number.
///
/// A sweep looks for finished cells by their files.
///
/// # Errors
/// Those of [`read_dir`], and of writing.
pub fn unpack(dir: &Path) -> Result<usize, RecordError> {
    let packed = packed_only(dir)?.into_iter().collect::<Result<Vec<_>, _>>()?;
    for record in &packed {
        // Another process may have unpacked it and written a newer one in the meantime.
        if !has_file(dir, record) {
            record.write(dir)?;
        }
    }
    Ok(packed.len())
}

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
    let reason = format!("it holds the cell {}, not the one it is named after", record.key);
    Err(RecordError::Damaged { path, reason })
}

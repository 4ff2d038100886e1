//! Results folders: the records of `dir/cells/*.json` and of `dir/records.parquet`.

use std::path::Path;

use rayon::prelude::*;
use records::RunRecord;
use records::store::{RecordError, read_named, record_files};

use crate::packed::read_packed;

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

/// Reads the packed records of a results folder that have a file of their own, which [`read_each`] leaves out. Both should
/// have the same results.
///
/// # Errors
/// [`RecordError::Io`] if `records.parquet` cannot be read.
pub fn packed_with_file(dir: &Path) -> Result<Vec<RunRecord>, RecordError> {
    // Without this, packs of folders without files would be read for nothing.
    if !dir.join("cells").is_dir() {
        return Ok(Vec::new());
    }
    let packed = read_packed(dir)?.into_iter().flatten();
    Ok(packed.filter(|record| has_file(dir, record)).collect())
}

/// Whether a record of a results folder has a file of its own.
fn has_file(dir: &Path, record: &RunRecord) -> bool {
    dir.join("cells").join(format!("{}.json", record.key)).exists()
}

/// Writes a file for each packed record of a results folder that has none, and returns the errors of those that cannot be
/// read.
///
/// A sweep looks for finished cells by their files.
///
/// # Errors
/// Those of [`packed_only`], and of writing.
pub fn unpack(dir: &Path) -> Result<Vec<RecordError>, RecordError> {
    let mut damaged = Vec::new();
    for found in packed_only(dir)? {
        match found {
            // Another process may have unpacked it and written a newer one in the meantime.
            Ok(record) if has_file(dir, &record) => {}
            Ok(record) => drop(record.write(dir)?),
            Err(error) => damaged.push(error),
        }
    }
    Ok(damaged)
}

#[cfg(test)]
mod tests;

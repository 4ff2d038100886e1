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
mod tests {
    use std::fs;

    use records::store::set_aside;
    use records::testkit::TestCell;

    use super::*;
    use crate::packed::{PACKED, pack};

    #[test]
    fn advice_about_damaged_packed_records_does_not_lead_back_to_them() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(PACKED), "damaged").unwrap();
        let message = read_dir(dir.path()).unwrap_err().to_string();
        assert!(
            message.ends_with("or move the file away; `run` then computes its cells again"),
            "{message}"
        );
    }

    #[test]
    fn a_cell_that_is_packed_twice_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let record = TestCell::new("flip-flop", "rope", 0).record();
        let other = TestCell::new("flip-flop", "rope", 1).record();
        fs::write(dir.path().join(PACKED), pack(&[record.clone(), other, record]).unwrap())
            .unwrap();
        let each = read_each(dir.path()).unwrap();
        assert_eq!(each.iter().filter(|found| found.is_ok()).count(), 2);
        let said = each.into_iter().find_map(Result::err).unwrap().to_string();
        assert!(said.contains("more than once"), "{said}");
    }

    #[test]
    fn no_flipped_bit_of_packed_records_ends_the_program_or_hides_other_records() {
        let dir = tempfile::tempdir().unwrap();
        let own = TestCell::new("flip-flop", "alibi", 0).record();
        own.write(dir.path()).unwrap();
        let packed = [0, 1].map(|seed| TestCell::new("flip-flop", "rope", seed).record());
        let whole = pack(&packed).unwrap();
        let known: Vec<RunRecord> =
            packed.iter().chain([&own]).map(|r| r.as_written().unwrap()).collect();
        let (mut damaged, mut read) = (0, 0);
        for byte in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[byte] ^= 1 << (byte % 8);
            fs::write(dir.path().join(PACKED), flipped).unwrap();
            let each = read_each(dir.path()).unwrap();
            assert!(each[0].as_ref().is_ok_and(|record| record.key == own.key), "byte {byte}");
            for found in each {
                match found {
                    Ok(record) => assert!(known.contains(&record), "byte {byte}"),
                    Err(error) => {
                        assert!(
                            error.to_string().contains("records.parquet is damaged"),
                            "{error}"
                        );
                        damaged += 1;
                    }
                }
            }
            read += 1;
        }
        assert!(damaged > read / 2, "{damaged} of {read}");
    }

    #[test]
    fn a_folder_is_read_in_key_order_and_strangers_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_dir(dir.path()).unwrap(), []);
        let mut keys: Vec<String> = (0..5)
            .map(|seed| {
                let record = TestCell::new("flip-flop", "rope", seed).record();
                record.write(dir.path()).unwrap();
                record.key
            })
            .collect();
        keys.sort();
        fs::write(dir.path().join("cells/.half.json.1.0.tmp"), "{").unwrap();
        fs::write(dir.path().join("cells/notes.txt"), "x").unwrap();
        let read: Vec<String> = read_dir(dir.path()).unwrap().into_iter().map(|r| r.key).collect();
        assert_eq!(read, keys);
    }

    #[test]
    fn one_damaged_record_does_not_hide_the_others() {
        let dir = tempfile::tempdir().unwrap();
        for seed in 0..3 {
            TestCell::new("flip-flop", "rope", seed).record().write(dir.path()).unwrap();
        }
        let path = dir.path().join("cells").join("0000000000000000.json");
        fs::write(&path, "{").unwrap();
        let each = read_each(dir.path()).unwrap();
        assert_eq!(each.iter().filter(|one| one.is_ok()).count(), 3);
        assert!(each[0].as_ref().unwrap_err().to_string().contains("0000000000000000.json"));

        let aside = set_aside(&path).unwrap();
        assert!(aside.ends_with("0000000000000000.json.damaged") && aside.is_file());
        fs::write(&path, "[").unwrap();
        assert!(set_aside(&path).unwrap().ends_with("0000000000000000.json.damaged.2"));
        assert_eq!(read_dir(dir.path()).unwrap().len(), 3);
    }
}

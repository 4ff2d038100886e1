//! Frames of large results folders, stored as Parquet next to the records.
//!
//! `frames/<part>-<hash>/` holds the frames of the records of a part: those whose keys begin with the same digit, or in a
//! large store with the same six bits. The hash covers the key, size and times of every such file: when a record is added
//! or replaced, only its part is read again.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use polars::prelude::*;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::{FrameError, Frames};
use crate::folder::packed_only;
use records::RunRecord;
use records::store::{RecordError, hex, read_named, record_files};

/// Version of the frames; raised when a column changes.
const VERSION: u32 = 6;
/// Number of records from which frames are stored. Fewer are read within a tenth of a second.
const LEAST: usize = 2000;
/// Number of records from which parts are a quarter as large, so that they are read within a few tenths of a second.
const MANY: usize = 20_000;
/// File of checksums in the format of `sha256sum`.
const SUMS: &str = "SHA256SUMS";
/// Age from which the times of a file identify its content: file systems round times, some to two seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// Reads every record of a results folder as frames, with the errors of files that are not valid records.
///
/// From 2000 records on, the frames are kept in the folder `frames` beside `cells`, and later calls read only records
/// that changed. The folder may be deleted at any time; if it cannot be written, every call reads all records.
///
/// # Errors
/// If the folder cannot be listed, or polars fails.
pub fn read_frames(dir: &Path) -> Result<(Frames, Vec<RecordError>), FrameError> {
    read(dir, LEAST)
}

fn read(dir: &Path, least: usize) -> Result<(Frames, Vec<RecordError>), FrameError> {
    let paths = record_files(dir)?;
    let mut frames = Frames::of(&[])?;
    let mut errors = Vec::new();
    if paths.len() < least {
        frames.append(parsed(&paths, &mut errors)?)?;
        frames.append(framed(packed_only(dir)?, &mut errors)?)?;
        return Ok((frames, errors));
    }
    let kept = dir.join("frames");
    let count = if paths.len() < MANY { 1 } else { 2 };
    let part = |path: &PathBuf| digits(path, count);
    let folder =
        |paths: &[PathBuf]| Some(kept.join(format!("{}-{}", part(&paths[0]), fingerprint(paths)?)));
    let parts: Vec<(&[PathBuf], Option<PathBuf>)> =
        paths.chunk_by(|a, b| part(a) == part(b)).map(|paths| (paths, folder(paths))).collect();
    remove_others(&kept, &parts);
    let loaded: Vec<Option<Frames>> =
        parts.par_iter().map(|(_, folder)| load(folder.as_deref()?).ok().flatten()).collect();
    // One after the other: a part is read by all threads, and its records need not share memory with others.
    for ((paths, folder), loaded) in parts.iter().zip(loaded) {
        if let Some(part) = loaded {
            frames.append(part)?;
            continue;
        }
        let before = errors.len();
        let mut part = parsed(paths, &mut errors)?;
        if let Some(folder) = folder.as_ref().filter(|_| errors.len() == before) {
            // Without it, the records are read again.
            let _ = keep(&mut part, folder);
        }
        frames.append(part)?;
    }
    frames.append(framed(packed_only(dir)?, &mut errors)?)?;
    Ok((frames, errors))
}

/// Returns the part of a record by the first digits of its key, of which the second is rounded down to a multiple of four.
fn digits(path: &Path, count: usize) -> String {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digits = name.chars().take(count).enumerate();
    let rounded = |(place, digit): (usize, char)| match (place, digit.to_digit(16)) {
        (1, Some(value)) => char::from_digit(value / 4 * 4, 16).unwrap_or(digit),
        _ => digit,
    };
    digits.map(rounded).collect()
}

fn parsed(paths: &[PathBuf], errors: &mut Vec<RecordError>) -> PolarsResult<Frames> {
    framed(paths.par_iter().cloned().map(read_named).collect(), errors)
}

/// Builds the frames of the records that could be read.
fn framed(
    each: Vec<Result<RunRecord, RecordError>>,
    errors: &mut Vec<RecordError>,
) -> PolarsResult<Frames> {
    let mut records = Vec::with_capacity(each.len());
    for found in each {
        match found {
            Ok(record) => records.push(record),
            Err(error) => errors.push(error),
        }
    }
    let frames = Frames::of(&records);
    // One thread takes long to free many records.
    records.into_par_iter().for_each(drop);
    frames
}

/// Returns a hash of the names, sizes and times of files; `None` if one is too new or its metadata cannot be read.
fn fingerprint(paths: &[PathBuf]) -> Option<String> {
    let now = SystemTime::now();
    let stamp = |path: &PathBuf| {
        let metadata = fs::metadata(path).ok()?;
        let modified = metadata.modified().ok()?;
        let settled = now.duration_since(modified).is_ok_and(|age| age > SETTLED);
        let since = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
        let name = path.file_name()?.to_str()?;
        settled.then(|| format!("{name} {} {since} {}\n", metadata.len(), changed(&metadata)))
    };
    let stamps: Option<Vec<String>> = paths.par_iter().map(stamp).collect();
    let mut hash = Sha256::new_with_prefix(format!("{VERSION}\n"));
    stamps?.iter().for_each(|stamp| hash.update(stamp));
    Some(hex(&hash.finalize()[..8]))
}

/// Returns the time of the last change of a file or its attributes in nanoseconds; programs cannot set it.
#[cfg(unix)]
fn changed(metadata: &fs::Metadata) -> i128 {
    use std::os::unix::fs::MetadataExt as _;
    i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn changed(_: &fs::Metadata) -> i128 {
    0
}

fn remove_others(kept: &Path, parts: &[(&[PathBuf], Option<PathBuf>)]) {
    for entry in fs::read_dir(kept).into_iter().flatten().flatten() {
        let path = entry.path();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !hidden && !parts.iter().any(|(_, folder)| folder.as_ref() == Some(&path)) {
            // An old part that remains does no harm.
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn file(name: &str) -> String {
    format!("{name}.parquet")
}

/// Line of [`SUMS`] for a file.
fn sum(name: &str, bytes: &[u8]) -> String {
    format!("{}  {}\n", hex(&Sha256::digest(bytes)), file(name))
}

/// Writes the frames to a folder atomically.
fn keep(frames: &mut Frames, folder: &Path) -> Result<(), FrameError> {
    let failed = |source| FrameError::Keep { path: folder.to_owned(), source };
    let temporary = folder.with_file_name(format!(".{}", std::process::id()));
    fs::create_dir_all(&temporary).map_err(failed)?;
    let mut sums = Vec::new();
    for (name, frame) in frames.each() {
        let mut bytes = Vec::new();
        // Many records have no gates, for example; a frame without rows has no file.
        if frame.height() > 0 {
            ParquetWriter::new(&mut bytes).finish(frame)?;
            fs::write(temporary.join(file(name)), &bytes).map_err(failed)?;
        }
        sums.push(sum(name, &bytes));
    }
    // A damaged part has the same name.
    let _ = fs::remove_dir_all(folder);
    let written = fs::write(temporary.join(SUMS), sums.concat())
        .and_then(|()| fs::rename(&temporary, folder));
    if written.is_err() {
        let _ = fs::remove_dir_all(&temporary);
    }
    written.map_err(failed)
}

/// Reads stored frames; `None` if they are missing or incomplete.
fn load(folder: &Path) -> Result<Option<Frames>, FrameError> {
    let failed = |source| FrameError::Keep { path: folder.to_owned(), source };
    let sums = fs::read_to_string(folder.join(SUMS)).map_err(failed)?;
    let mut frames = Frames::of(&[])?;
    for (name, frame) in frames.each() {
        if sums.contains(&sum(name, &[])) {
            continue;
        }
        let bytes = fs::read(folder.join(file(name))).map_err(failed)?;
        if !sums.contains(&sum(name, &bytes)) {
            return Ok(None);
        }
        // Parts are loaded in parallel, not the columns of each.
        let reader = ParquetReader::new(Cursor::new(bytes));
        *frame = reader.read_parallel(ParallelStrategy::None).finish()?;
    }
    Ok(Some(frames))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::File;

    use super::*;
    use records::RunRecord;
    use records::testkit::{TestCell, suite};

    /// Writes a record with times in the past.
    fn put(record: &RunRecord, dir: &Path) -> PathBuf {
        let path = record.write(dir).unwrap();
        File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .set_modified(SystemTime::now() - 5 * SETTLED)
            .unwrap();
        path
    }

    fn frames(dir: &Path) -> Frames {
        let (frames, errors) = read(dir, 1).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        frames
    }

    /// Returns the names of the stored parts.
    fn kept(dir: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(dir.join("frames")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn assert_same(mut a: Frames, dir: &Path) {
        let records = crate::folder::read_dir(dir).unwrap();
        let mut b = Frames::of(&records).unwrap();
        for ((name, a), (_, b)) in a.each().into_iter().zip(b.each()) {
            assert!(a.equals_missing(b), "{name} differ");
        }
    }

    #[test]
    fn kept_frames_are_those_of_the_records_and_follow_them() {
        let dir = tempfile::tempdir().unwrap();
        let records = suite();
        for record in &records {
            put(record, dir.path());
        }
        assert_same(frames(dir.path()), dir.path());
        let first = kept(dir.path());
        let digits: BTreeSet<&str> = records.iter().map(|record| &record.key[..1]).collect();
        assert_eq!(first.len(), digits.len());
        assert!(load(&dir.path().join("frames").join(first.first().unwrap())).unwrap().is_some());
        assert_same(frames(dir.path()), dir.path());
        assert_eq!(kept(dir.path()), first);
        // Another number of as many digits: the file has the same size.
        let changed =
            TestCell::from(records[0].clone()).change(|r| r.peak_bytes = Some(65 << 20)).record();
        put(&changed, dir.path());
        assert_same(frames(dir.path()), dir.path());
        assert_eq!(kept(dir.path()).difference(&first).count(), 1, "the other parts are kept");
        fs::remove_file(dir.path().join("cells").join(format!("{}.json", records[1].key))).unwrap();
        assert_same(frames(dir.path()), dir.path());
    }

    #[test]
    fn damaged_frames_are_made_again_and_damaged_records_are_told_every_time() {
        let dir = tempfile::tempdir().unwrap();
        for record in &suite() {
            put(record, dir.path());
        }
        frames(dir.path());
        let parts = kept(dir.path());
        let cells = dir.path().join("frames").join(parts.first().unwrap()).join("cells.parquet");
        let mut bytes = fs::read(&cells).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&cells, bytes).unwrap();
        assert!(load(cells.parent().unwrap()).unwrap().is_none());
        assert_same(frames(dir.path()), dir.path());
        assert!(load(cells.parent().unwrap()).unwrap().is_some());
        fs::write(dir.path().join("cells/0000000000000000.json"), "{").unwrap();
        for _ in 0..2 {
            let (frames, errors) = read(dir.path(), 1).unwrap();
            assert_eq!((frames.cells.height(), errors.len()), (suite().len(), 1));
        }
    }

    #[test]
    fn a_record_that_was_just_written_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        TestCell::new("w", "rope", 0).record().write(dir.path()).unwrap();
        assert_eq!(frames(dir.path()).cells.height(), 1);
        assert!(!dir.path().join("frames").exists());
    }

    #[test]
    fn parts_of_a_large_store_are_in_the_order_of_keys() {
        let names = ["00f", "03e", "04a", "07b", "08c", "0fd", "100", "ffe"];
        let paths = names.map(|name| PathBuf::from(format!("cells/{name}.json")));
        let parts = |count| paths.iter().map(|path| digits(path, count)).collect::<Vec<_>>();
        assert_eq!(parts(1), ["0", "0", "0", "0", "0", "0", "1", "f"]);
        assert_eq!(parts(2), ["00", "00", "04", "04", "08", "0c", "10", "fc"]);
    }
}

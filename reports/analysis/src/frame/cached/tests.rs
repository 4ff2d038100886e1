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

//! Compares the tables of the committed results with stored hashes, column by column.
//!
//! `fixtures/tables.json` holds the number of rows of each table and a hash of each column, for each of its folders and for
//! all of them together. Folders and columns that it lacks may be added. With `PE_ZOO_WRITE_TABLES=1` the test writes it anew, for a change of numbers that is meant.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use polars::prelude::*;
use reports::{Frames, ReportMeta, Settings};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Table {
    rows: usize,
    columns: BTreeMap<String, String>,
}

/// Tables by name.
type Tables = BTreeMap<String, Table>;

/// Hashes the texts of each column of a CSV file.
fn hashed(csv: &[u8]) -> Table {
    let options = CsvReadOptions::default().with_infer_schema_length(Some(0));
    let frame = options.into_reader_with_file_handle(Cursor::new(csv)).finish().unwrap();
    let hash = |column: &Column| {
        let texts: Vec<&str> =
            column.str().unwrap().iter().map(Option::unwrap_or_default).collect();
        reports::store::hex(&Sha256::digest(texts.join("\n"))[..8])
    };
    let columns = frame.columns().iter().map(|column| (column.name().to_string(), hash(column)));
    Table { rows: frame.height(), columns: columns.collect() }
}

fn tables(folders: &[PathBuf]) -> Tables {
    let mut frames = Frames::of(&[]).unwrap();
    for folder in folders {
        let (found, errors) = reports::read_frames(folder).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        frames.append(found).unwrap();
    }
    let csv = ["csv".to_owned()];
    let rendered =
        reports::render_report(frames, &ReportMeta::default(), &Settings::default(), &csv).unwrap();
    rendered.files.iter().map(|file| (file.path.clone(), hashed(&file.bytes))).collect()
}

/// Returns the folders with committed records below a folder, sorted. They are named `<machine>_<month>`; those of other
/// names are the user's own.
fn results(folder: &Path) -> Vec<PathBuf> {
    if folder.join("cells").is_dir() {
        let is_committed =
            folder.file_name().is_some_and(|name| name.to_string_lossy().contains('_'));
        return is_committed.then(|| folder.to_owned()).into_iter().collect();
    }
    let mut below: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    below.sort();
    below.iter().flat_map(|folder| results(folder)).collect()
}

#[test]
fn tables_of_the_committed_results_have_not_moved() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.join("..");
    let golden = here.join("fixtures/tables.json");
    let mut folders = results(&root.join("results"));
    let name = |folder: &PathBuf| folder.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(&golden).unwrap();
    let wanted: BTreeMap<String, Tables> = serde_json::from_str(&text).unwrap();
    let is_writing = std::env::var_os("PE_ZOO_WRITE_TABLES").is_some();
    folders.retain(|folder| is_writing || wanted.contains_key(&name(folder)));
    let mut found: BTreeMap<String, Tables> =
        folders.iter().map(|folder| (name(folder), tables(std::slice::from_ref(folder)))).collect();
    found.insert("all".to_owned(), tables(&folders));
    if is_writing {
        std::fs::write(golden, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
        return;
    }
    let mut faults = Vec::new();
    for (folder, tables) in &wanted {
        for (path, table) in tables {
            let own = found.get(folder).and_then(|tables| tables.get(path));
            if own.map(|own| own.rows) != Some(table.rows) {
                faults.push(format!("{folder}: {path} has not {} rows", table.rows));
                continue;
            }
            let moved = table
                .columns
                .iter()
                .filter(|(name, hash)| own.unwrap().columns.get(*name) != Some(hash));
            faults.extend(moved.map(|(name, _)| format!("{folder}: {path}: column `{name}`")));
        }
    }
    assert!(wanted.len() > 5 && faults.is_empty(), "{}", faults.join("\n"));
}

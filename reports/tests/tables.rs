//! Compares the tables of the committed results with stored hashes, column by column.
//!
//! `fixtures/tables.json` holds the number of rows of each table and a hash of each column, for each of its folders and for
//! all of them together. Columns that it lacks may be added. With `PE_ZOO_WRITE_TABLES=1` the test writes it anew, for a change of numbers that is meant.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use analysis::ReportMeta;
use analysis::frame::Frames;
use polars::prelude::*;
use records::settings::Settings;
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
        records::store::hex(&Sha256::digest(texts.join("\n"))[..8])
    };
    let columns = frame.columns().iter().map(|column| (column.name().to_string(), hash(column)));
    Table { rows: frame.height(), columns: columns.collect() }
}

fn tables(folders: &[PathBuf]) -> Tables {
    let mut frames = Frames::of(&[]).unwrap();
    for folder in folders {
        let (found, errors) = analysis::frame::read_frames(folder).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        frames.append(found).unwrap();
    }
    let csv = ["csv".to_owned()];
    let rendered =
        reports::render_report(frames, &ReportMeta::default(), &Settings::default(), &csv).unwrap();
    rendered.files.iter().map(|file| (file.path.clone(), hashed(&file.bytes))).collect()
}

/// Folders of `results` whose tables are compared: small ones, with records in files and packed.
const FOLDERS: [&str; 6] = [
    "results/contextual/2-cores_2026-11",
    "results/cope-table-3/xeon-2-cores_2026-11",
    "results/coverage/epyc-2-cores_2026-11",
    "results/extend/smollm2-epyc-2-cores_2026-11",
    "results/extend/smollm2-tuned-epyc-2-cores_2026-11",
    "results/language/epyc-2-cores_2026-11",
];

#[test]
fn tables_of_the_committed_results_have_not_moved() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.join("..");
    let golden = here.join("fixtures/tables.json");
    let folders = FOLDERS.map(|folder| root.join(folder));
    let is_writing = std::env::var_os("PE_ZOO_WRITE_TABLES").is_some();
    let of_each = FOLDERS.iter().zip(&folders);
    let mut found: BTreeMap<String, Tables> = of_each
        .map(|(name, folder)| ((*name).to_owned(), tables(std::slice::from_ref(folder))))
        .collect();
    found.insert("all".to_owned(), tables(&folders));
    if is_writing {
        std::fs::write(golden, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
        return;
    }
    let text = std::fs::read_to_string(&golden).unwrap();
    let wanted: BTreeMap<String, Tables> = serde_json::from_str(&text).unwrap();
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
    assert!(wanted.len() == FOLDERS.len() + 1 && faults.is_empty(), "{}", faults.join("\n"));
}

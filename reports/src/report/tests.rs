use super::*;
use polars::prelude::*;
use records::testkit::{TestCell, suite};
use std::collections::BTreeMap;
use std::fs;

fn meta() -> ReportMeta {
    ReportMeta {
        title: "quick".into(),
        command: "pe-bench run quick".into(),
        skipped: vec!["text/cope: no corpus".into()],
        ..ReportMeta::default()
    }
}

/// Reads every file below `dir`, by relative path.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn the_same_records_in_any_order_give_the_same_bytes() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut records = suite();
    // Needs 17 digits: must not depend on whether the record has been on disk.
    records[0].evals[0].nll = 0.1 + 0.2;
    let written: Vec<_> = records.iter().map(|r| r.as_written().unwrap()).collect();
    assert_ne!(written, records);
    write_report(&written, one.path(), &meta(), &Settings::default()).unwrap();
    records.reverse();
    for record in &records {
        record.write(two.path()).unwrap();
    }
    let read = analysis::folder::read_dir(two.path()).unwrap();
    fs::remove_dir_all(two.path().join("cells")).unwrap();
    write_report(&read, two.path(), &meta(), &Settings::default()).unwrap();
    let (a, b) = (files(one.path()), files(two.path()));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, bytes) in &a {
        assert!(*bytes == b[name], "{} differs", name.display());
    }
    for name in [
        "index.html",
        "report.md",
        "data.parquet",
        "tables/evaluations.csv",
        "tables/ranks.csv",
        "tables/pairs.csv",
        "tables/costs.csv",
        "tables/training.csv",
        "tables/slices.csv",
        "tables/cells.csv",
        "tables/summary.tex",
        "figures/flip-flop-exact-match-split-sparse.svg",
    ] {
        assert!(a.contains_key(Path::new(name)), "{name} is not in {:?}", a.keys());
    }
    assert!(!a.keys().any(|name| name.to_string_lossy().contains(".tmp")));
}

#[test]
fn files_of_other_formats_are_not_linked() {
    for formats in [&["markdown"][..], &["html"], &["markdown", "html", "svg"], &[]] {
        let names: Vec<String> = formats.iter().map(|name| (*name).to_owned()).collect();
        let frames = Frames::of(&suite()).unwrap();
        let files = render_report(frames, &meta(), &Settings::default(), &names).unwrap().files;
        let paths: Vec<&str> = files.iter().map(|file| &*file.path).collect();
        for file in files.iter().filter(|file| ["index.html", "report.md"].contains(&&*file.path)) {
            let text = std::str::from_utf8(&file.bytes).unwrap();
            let (open, close) =
                if file.path == "report.md" { ("](", ')') } else { ("href=\"", '"') };
            for link in text.split(open).skip(1).map(|rest| rest.split(close).next().unwrap()) {
                let file = link.split('#').next().unwrap();
                let is_part = file.is_empty() || file.starts_with("data:");
                assert!(is_part || paths.contains(&file), "{formats:?}: {link}");
            }
        }
    }
}

#[test]
fn the_tables_on_disk_are_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let records = suite();
    let summary = write_report(&records, dir.path(), &meta(), &Settings::default()).unwrap();
    let report = Report::new(&records, &meta()).unwrap();
    let parquet = ParquetReader::new(fs::File::open(dir.path().join("data.parquet")).unwrap())
        .finish()
        .unwrap();
    assert!(
        parquet.equals_missing(&report.frames.clone().with_settings().unwrap().data().unwrap())
    );
    let csv = fs::File::open(dir.path().join("tables/evaluations.csv")).unwrap();
    let csv = CsvReader::new(csv).finish().unwrap();
    let rows = || report.workloads.iter().flat_map(|w| &w.rows);
    assert_eq!(csv.height(), rows().count());
    let mean = csv.column("exact_match_mean").unwrap().f64().unwrap().sum();
    assert_eq!(mean, Some(rows().map(|row| row.exact_match.mean).sum()));
    let cells = fs::read_to_string(dir.path().join("tables/cells.csv")).unwrap();
    assert_eq!(cells.lines().count(), records.len() + 1);
    let names = summary.table.rows.iter().map(|row| &row[0].text);
    assert!(report.encodings.iter().all(|own| names.clone().any(|name| *name == own.display)));
}

#[test]
fn nothing_and_one_cell_are_reports_too() {
    let dir = tempfile::tempdir().unwrap();
    let summary = write_report(&[][..], dir.path(), &meta(), &Settings::default()).unwrap();
    assert!(summary.table.rows.is_empty(), "{summary:?}");
    let one = vec![TestCell::new("w", "rope", 0).record()];
    let summary = write_report(one, dir.path(), &meta(), &Settings::default()).unwrap();
    assert_eq!(summary.table.rows[0][0].text, "RoPE");
}

#[test]
fn files_that_are_as_they_should_be_are_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["same", "damaged"];
    let of = |name: &str| OutFile { path: format!("sub/{name}"), bytes: b"bytes".to_vec() };
    let files = names.map(of);
    write_files(&files, dir.path()).unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::write(dir.path().join("sub/damaged"), "byte").unwrap();
    for name in names {
        let file = fs::File::options().write(true).open(dir.path().join("sub").join(name)).unwrap();
        file.set_modified(long_ago).unwrap();
    }
    write_files(&files, dir.path()).unwrap();
    let is_old = names.map(|name| {
        let path = dir.path().join("sub").join(name);
        assert_eq!(fs::read(&path).unwrap(), b"bytes");
        fs::metadata(path).unwrap().modified().unwrap() == long_ago
    });
    assert_eq!(is_old, [true, false]);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    let error =
        write_report(suite(), &file.join("out"), &meta(), &Settings::default()).unwrap_err();
    assert!(error.to_string().contains(&*file.to_string_lossy()), "{error}");
}

/// Pointers to the whole numbers of a value, without those of settings.
fn numbers(value: &serde_json::Value, path: &str, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Number(number) if number.is_u64() => found.push(path.to_owned()),
        serde_json::Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                numbers(item, &format!("{path}/{index}"), found);
            }
        }
        serde_json::Value::Object(fields) => {
            for (name, field) in fields.iter().filter(|(name, _)| *name != "config") {
                numbers(field, &format!("{path}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// A file without a checksum may have any number.
#[test]
fn counts_near_the_largest_number_do_not_overflow() {
    let slices = |record: &mut RunRecord| {
        record.evals[0].slices = vec![records::Slices {
            name: "distance".into(),
            unit: records::SliceUnit::Tokens,
            values: vec![1, 2, 40],
            counts: vec![3, 4, 5],
            accuracy: vec![0.5; 3],
            nll: vec![1.0; 3],
        }];
        record.host_peak_bytes = Some(1);
    };
    let whole = |encoding: &str, seed: u64| {
        let record = TestCell::new("flip-flop", encoding, seed).change(slices).record();
        serde_json::to_value(&record).unwrap()
    };
    let mut paths = Vec::new();
    numbers(&whole("rope", 0), "", &mut paths);
    assert!(paths.iter().any(|path| path == "/evals/0/slices/0/counts/2"), "{paths:?}");
    let large = |path: &String, largest: u64| -> serde_json::Result<Vec<RunRecord>> {
        let cells = [("rope", 0), ("rope", 1), ("cope", 0), ("cope", 1)];
        let changed = cells.map(|(encoding, seed)| {
            let mut value = whole(encoding, seed);
            *value.pointer_mut(path).unwrap() = largest.into();
            serde_json::from_value(value)
        });
        changed.into_iter().collect()
    };
    for path in &paths {
        let Ok(records) = large(path, u64::MAX).or_else(|_| large(path, u64::from(u32::MAX)))
        else {
            continue;
        };
        let frames = Frames::of(&records).unwrap();
        let reproduced = analysis::reproduction::reproduction(&frames).unwrap();
        assert!(!reproduced.tables.is_empty(), "{path}");
        let names = ["markdown".to_owned(), "csv".to_owned()];
        let rendered = render_report(frames, &meta(), &Settings::default(), &names);
        assert!(rendered.is_ok(), "{path}: {:?}", rendered.err());
        let request =
            analysis::compare::Request { a: "rope".into(), b: "cope".into(), ..Default::default() };
        assert!(analysis::compare::compare(&records, &request).is_ok(), "{path}");
        analysis::nightly::judge(&records, &records);
    }
}

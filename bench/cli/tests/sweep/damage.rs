//! Records that are not what was written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{Place, named};
use crate::program::{BENCH, files, text};

#[test]
fn damaged_records_are_told_left_alone_and_redone_on_request() {
    let place = Place::new(5);
    let out = place.out("damaged");
    assert!(place.run(&out, &[]).status.success());
    let records = files(&out.join("cells"));
    let whole = records.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
    let truncated = whole[0][..whole[0].len() / 2].to_vec();
    let flipped =
        String::from_utf8(whole[1].clone()).unwrap().replace("\"tokens\": ", "\"tokens\": 1");
    fs::write(&records[0], &truncated).unwrap();
    fs::write(&records[1], &flipped).unwrap();
    fs::write(out.join("cells/0123456789abcdef.json"), "of another suite").unwrap();

    let (events, output) = place.events(&out, &["--seed", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(named(&events, "began").is_empty());
    let said = text(&output);
    for expected in ["EOF", "checksum", "--retry damaged", records[0].to_str().unwrap()] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    // A cell more: the damaged ones do not stop it.
    let (events, output) = place.events(&out, &["--seed", "0", "--seed", "1"]);
    assert_eq!((output.status.code(), named(&events, "ended").len()), (Some(1), 2));
    assert_eq!(fs::read(&records[0]).unwrap(), truncated);
    let report = Command::new(BENCH).arg("report").arg(&out).output().unwrap();
    assert_eq!(report.status.code(), Some(1));
    assert!(text(&report).contains("index.html") && text(&report).contains("checksum"));
    let table = Command::new(BENCH).arg("table").arg(&out).output().unwrap();
    assert_eq!(table.status.code(), Some(1), "{}", text(&table));
    let error = String::from_utf8_lossy(&table.stderr);
    let (_, left_out) = error.split_once("left out of the table: ").expect("what was left out");
    assert!(left_out.contains(records[0].file_name().unwrap().to_str().unwrap()), "{error}");

    let (events, output) = place.events(&out, &["--seed", "0", "--retry", "damaged"]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(named(&events, "ended").len(), 2);
    let aside = |path: &Path| PathBuf::from(format!("{}.damaged", path.display()));
    assert_eq!(fs::read(aside(&records[0])).unwrap(), truncated);
    assert_eq!(fs::read(aside(&records[1])).unwrap(), flipped.as_bytes());
}

#[test]
fn a_record_under_another_cells_name_is_damaged_and_no_result_of_that_cell() {
    let place = Place::new(5);
    let out = place.out("swapped");
    assert!(place.run(&out, &[]).status.success());
    let records = files(&out.join("cells"));
    let own = fs::read(&records[1]).unwrap();
    fs::copy(&records[0], &records[1]).unwrap();

    let (events, output) = place.events(&out, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(named(&events, "began").is_empty());
    assert_eq!(events[0]["kept"], 1);
    let said = text(&output);
    assert!(said.contains("it contains the cell") && said.contains("--retry damaged"), "{said}");

    let (events, output) = place.events(&out, &["--retry", "damaged"]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(named(&events, "ended").len(), 1);
    let again = records::RunRecord::read(&records[1]).unwrap();
    let before = records::RunRecord::parse(&records[1], &own).unwrap();
    assert_eq!((again.key, again.evals.len()), (before.key, before.evals.len()));
}

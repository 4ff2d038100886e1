use super::*;
use crate::record::{RunRecord, Status};
use crate::testkit::TestCell;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

#[test]
fn the_key_ignores_the_order_of_settings_and_nothing_else() {
    let key = cell_key(&json!({"b": [1, {"y": 2, "x": null}], "a": "é\""}));
    let text = "{\"a\":\"é\\\"\",\"b\":[1,{\"x\":null,\"y\":2}]}";
    let digest = Sha256::digest(text.as_bytes());
    let expected = hex(&digest);
    assert_eq!(key, expected[..16]);
    assert_eq!(key, cell_key(&json!({"a": "é\"", "b": [1, {"x": null, "y": 2}]})));
    for changed in [
        json!({"a": "é\"", "b": [1, {"x": null, "y": 3}]}),
        json!({"a": "é\"", "b": [{"x": null, "y": 2}, 1]}),
        json!({"a": "é\"", "b": [1, {"x": null, "y": 2}], "c": null}),
    ] {
        assert_ne!(key, cell_key(&changed));
    }
}

#[test]
fn a_record_survives_the_file_and_leaves_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut record = TestCell::new("flip-flop", "rope", 0).exact(0.1 + 0.2).record();
    record.train.curve.truncate(2);
    let path = record.write(dir.path()).unwrap();
    assert_eq!(path, dir.path().join("cells").join(format!("{}.json", record.key)));
    let back = RunRecord::read(&path).unwrap();
    // 15 significant digits: 0.30000000000000004 is kept as 0.3.
    record.evals.iter_mut().for_each(|eval| eval.exact_match = 0.3);
    assert_eq!(back, record);
    back.write(dir.path()).unwrap();
    assert_eq!(RunRecord::read(&path).unwrap(), back);
    let names: Vec<_> = fs::read_dir(dir.path().join("cells"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, [path.file_name().unwrap()]);
}

#[test]
fn a_write_that_fails_leaves_no_temporary_file() {
    let dir = tempfile::tempdir().unwrap();
    let record = TestCell::new("flip-flop", "rope", 0).record();
    // A folder in the place of the file: the rename must fail.
    let place = dir.path().join("cells").join(format!("{}.json", record.key));
    fs::create_dir_all(place.join("x")).unwrap();
    let error = record.write(dir.path()).unwrap_err();
    assert!(error.to_string().contains(&record.key), "{error}");
    assert_eq!(fs::read_dir(dir.path().join("cells")).unwrap().count(), 1);
}

#[test]
fn numbers_that_are_not_finite_come_back_as_nan_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let mut record = TestCell::new("flip-flop", "rope", 0).record();
    record.evals[0].nll = f64::NAN;
    record.evals[0].perplexity = f64::INFINITY;
    record.evals[0].bits_per_byte = Some(f64::NEG_INFINITY);
    record.train.final_loss = Some(f64::NAN);
    record.train.curve[0].loss = f64::NAN;
    let back = RunRecord::read(record.write(dir.path()).unwrap()).unwrap();
    assert!(back.evals[0].nll.is_nan());
    assert!(back.evals[0].perplexity.is_nan());
    assert_eq!(back.evals[0].bits_per_byte, None);
    assert_eq!(back.train.final_loss, None);
    assert!(back.train.curve[0].loss.is_nan());
    assert!(!back.evals[0].exact_match.is_nan());
}

#[test]
fn every_status_has_its_own_json_and_is_read_back() {
    for (status, json) in [
        (Status::Done, json!({"state": "done"})),
        (
            Status::Diverged { step: 7, reason: "loss is NaN".into() },
            json!({"state": "diverged", "step": 7, "reason": "loss is NaN"}),
        ),
        (
            Status::Failed { reason: "no corpus".into() },
            json!({"state": "failed", "reason": "no corpus"}),
        ),
        (Status::Interrupted, json!({"state": "interrupted"})),
        (
            Status::TimedOut { reason: "60 s".into() },
            json!({"state": "timed-out", "reason": "60 s"}),
        ),
        (
            Status::OutOfMemory { reason: "1 GiB".into() },
            json!({"state": "out-of-memory", "reason": "1 GiB"}),
        ),
    ] {
        assert_eq!(serde_json::to_value(&status).unwrap(), json);
        assert_eq!(json["state"], status.name());
        assert_eq!(serde_json::from_value::<Status>(json).unwrap(), status);
    }
}

#[test]
fn only_done_and_diverged_cells_are_finished() {
    let finished = |status| TestCell::new("w", "rope", 0).status(status).record().is_finished();
    assert!(finished(Status::Done));
    assert!(finished(Status::Diverged { step: 1, reason: String::new() }));
    assert!(!finished(Status::Failed { reason: String::new() }));
    assert!(!finished(Status::Interrupted));
    assert!(!finished(Status::TimedOut { reason: String::new() }));
    assert!(!finished(Status::OutOfMemory { reason: String::new() }));
}

#[test]
fn a_newer_schema_is_refused_by_name_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let record = TestCell::new("flip-flop", "rope", 0).record();
    let path = record.write(dir.path()).unwrap();
    let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    value["schema"] = json!(6);
    value["of_the_future"] = json!(true);
    fs::write(&path, value.to_string()).unwrap();
    let before = fs::read(&path).unwrap();
    let error = read_named(path.clone()).unwrap_err();
    assert!(matches!(error, RecordError::NewerSchema { found: 6, supported: 5, .. }));
    let text = error.to_string();
    assert!(text.contains(&*path.to_string_lossy()), "{text}");
    assert!(text.contains("schema 6") && text.contains("up to 5"), "{text}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn damaged_files_are_named_with_the_field() {
    let dir = tempfile::tempdir().unwrap();
    let record = TestCell::new("flip-flop", "rope", 0).record();
    let path = record.write(dir.path()).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    for (text, expected) in [
        (String::new(), "EOF"),
        (whole[..whole.len() / 2].to_owned(), "EOF"),
        (whole.replace("\"train_len\": 64", "\"train_len\": \"64\""), "field `train_len`"),
        (whole.replace("\"samples\"", "\"sampels\""), "field `evals[0].sampels`"),
        (whole.replace("\"schema\": 5", "\"schema\": 0"), "record schema 0 does not exist"),
        (whole.replace("\"schema\": 5,", ""), "no numeric field `schema`"),
        (whole.replace("\"train_len\": 64", "\"train_len\": 65"), "checksum"),
        (whole.replace("\"sha256\": \"", "\"sha256\": \"0"), "checksum"),
    ] {
        assert_ne!(text, whole);
        fs::write(&path, text).unwrap();
        let error = read_named(path.clone()).unwrap_err();
        assert!(matches!(error, RecordError::Damaged { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains(&*path.to_string_lossy()), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_key_that_would_leave_the_folder_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut record = TestCell::new("flip-flop", "rope", 0).record();
    record.key = "../../../../../x".into();
    assert!(matches!(record.write(dir.path()), Err(RecordError::BadKey { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_record_under_another_cells_name_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let record = TestCell::new("flip-flop", "rope", 0).record();
    let path = record.write(dir.path()).unwrap();
    let renamed = path.with_file_name("0123456789abcdef.json");
    fs::rename(&path, &renamed).unwrap();
    let message = read_named(renamed).unwrap_err().to_string();
    assert!(message.contains(&format!("contains the cell {}", record.key)), "{message}");
}

#[test]
fn no_flipped_bit_changes_what_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut record = TestCell::new("flip-flop", "rope", 0).record();
    record.train.curve.truncate(2);
    let path = record.write(dir.path()).unwrap();
    let whole = fs::read(&path).unwrap();
    let record = RunRecord::parse(&path, &whole).unwrap();
    // Every seventh bit, because testing all of them takes long.
    for bit in (0..whole.len() * 8).step_by(7) {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match RunRecord::parse(&path, &flipped) {
            Ok(read) => assert_eq!(read, record, "bit {bit}"),
            Err(RecordError::Damaged { .. } | RecordError::NewerSchema { .. }) => {}
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
}

#[test]
fn layout_is_no_damage_and_old_records_have_no_checksum() {
    let dir = tempfile::tempdir().unwrap();
    let record = TestCell::new("flip-flop", "rope", 0).record();
    let path = record.write(dir.path()).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    let read = RunRecord::parse(&path, whole.as_bytes()).unwrap();
    let value: Value = serde_json::from_str(&whole).unwrap();
    let mut old = value.clone();
    assert!(old.as_object_mut().unwrap().remove("sha256").is_some());
    let marked = format!("\u{feff}{whole}");
    for text in [whole.replace('\n', "\r\n"), value.to_string(), old.to_string(), marked] {
        assert_eq!(RunRecord::parse(&path, text.as_bytes()).unwrap(), read);
    }
}

#[test]
fn leftovers_of_killed_writes_are_removed_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.json");
    for name in [".a.json.17.0.tmp", ".b.json.17.0.tmp", "a.json", "a.json.damaged"] {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    remove_leftovers(&path);
    let mut left: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".b.json.17.0.tmp", "a.json", "a.json.damaged"]);
}

#[test]
fn a_number_that_json_gives_back_one_digit_off_is_no_damage() {
    let setting = 0.021_415_710_636_902_698_f64;
    let back: f64 = serde_json::from_str(&setting.to_string()).unwrap();
    let record =
        TestCell::new("w", "rope", 0).change(|r| r.config = json!({ "x": setting })).record();
    let text = record.text().unwrap();
    let again = RunRecord::parse(Path::new("x.json"), text.as_bytes()).unwrap();
    assert_eq!(again.config, json!({ "x": back }));
}

#[test]
fn whole_files_are_read_without_a_tree_and_the_same_as_carefully() {
    let record = TestCell::new("w \"quoted\" \\ ü \n", "rope", 7).record();
    let text = record.text().unwrap();
    let path = Path::new("a.json");
    let read = |text: &str| scan::read(text.as_bytes());
    assert_eq!(read(&text), RunRecord::parse_carefully(path, text.as_bytes()).ok());
    assert!(read(&text).is_some(), "or every file would be read twice");
    let unsealed: String = text.lines().filter(|line| !line.contains("\"sha256\"")).collect();
    let unsealed = unsealed.replace(",}", "}");
    assert!(read(&unsealed).is_some(), "from before there was a checksum: {unsealed}");
    // The fast parser must reject all of these.
    for (from, to) in [
        ("\"seed\": 7", "\"seed\": 8"),
        ("\"seed\": 7", "\"seed\": 7, \"seed\": 7"),
        ("\"schema\": 5", "\"schema\": 6"),
        ("\"schema\": 5", "\"schema\": \"5\""),
        ("\"sha256\": \"", "\"sha256\": \"0"),
    ] {
        assert!(text.contains(from), "{from}");
        assert_eq!(read(&text.replacen(from, to, 1)), None, "{to}");
    }
    assert_eq!(read(&format!("{text} x")), None);
}

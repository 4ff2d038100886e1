use super::*;
use crate::record::Status;
use crate::testkit::Cell;
use serde_json::json;

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
    let mut record = Cell::new("flip-flop", "rope", 0).exact(0.1 + 0.2).record();
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
    let record = Cell::new("flip-flop", "rope", 0).record();
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
    let mut record = Cell::new("flip-flop", "rope", 0).record();
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
    ] {
        assert_eq!(serde_json::to_value(&status).unwrap(), json);
        assert_eq!(serde_json::from_value::<Status>(json).unwrap(), status);
    }
}

#[test]
fn only_done_and_diverged_cells_are_finished() {
    let finished = |status| Cell::new("w", "rope", 0).status(status).record().is_finished();
    assert!(finished(Status::Done));
    assert!(finished(Status::Diverged { step: 1, reason: String::new() }));
    assert!(!finished(Status::Failed { reason: String::new() }));
    assert!(!finished(Status::Interrupted));
}

#[test]
fn a_newer_schema_is_refused_by_name_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let record = Cell::new("flip-flop", "rope", 0).record();
    let path = record.write(dir.path()).unwrap();
    let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    value["schema"] = json!(3);
    value["of_the_future"] = json!(true);
    fs::write(&path, value.to_string()).unwrap();
    let before = fs::read(&path).unwrap();
    let error = read_dir(dir.path()).unwrap_err();
    assert!(matches!(error, RecordError::NewerSchema { found: 3, supported: 2, .. }));
    let text = error.to_string();
    assert!(text.contains(&*path.to_string_lossy()), "{text}");
    assert!(text.contains("schema 3") && text.contains("up to 2"), "{text}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn damaged_files_are_named_with_the_field() {
    let dir = tempfile::tempdir().unwrap();
    let record = Cell::new("flip-flop", "rope", 0).record();
    let path = record.write(dir.path()).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    for (text, expected) in [
        (String::new(), "EOF"),
        (whole[..whole.len() / 2].to_owned(), "EOF"),
        (whole.replace("\"train_len\": 64", "\"train_len\": \"64\""), "field `train_len`"),
        (whole.replace("\"samples\"", "\"sampels\""), "field `evals[0].sampels`"),
        (whole.replace("\"schema\": 2", "\"schema\": 0"), "no record schema 0"),
        (whole.replace("\"schema\": 2,", ""), "no number `schema`"),
        (whole.replace(&record.key, "0123456789abcdef"), "holds the cell 0123456789abcdef"),
    ] {
        assert_ne!(text, whole);
        fs::write(&path, text).unwrap();
        let error = read_dir(dir.path()).unwrap_err();
        assert!(matches!(error, RecordError::Damaged { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains(&*path.to_string_lossy()), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_key_that_would_leave_the_folder_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut record = Cell::new("flip-flop", "rope", 0).record();
    record.key = "../../../../../x".into();
    assert!(matches!(record.write(dir.path()), Err(RecordError::BadKey { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_is_read_in_key_order_and_strangers_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(read_dir(dir.path()).unwrap(), []);
    let mut keys: Vec<String> = (0..5)
        .map(|seed| {
            let record = Cell::new("flip-flop", "rope", seed).record();
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

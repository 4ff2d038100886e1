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
    let error = read_dir(dir.path()).unwrap_err();
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
        (whole.replace("\"schema\": 5", "\"schema\": 0"), "no record schema 0"),
        (whole.replace("\"schema\": 5,", ""), "no number `schema`"),
        (whole.replace("\"train_len\": 64", "\"train_len\": 65"), "checksum"),
        (whole.replace("\"sha256\": \"", "\"sha256\": \"0"), "checksum"),
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
fn advice_about_damaged_packed_records_does_not_lead_back_to_them() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(PACKED), "damaged").unwrap();
    let message = read_dir(dir.path()).unwrap_err().to_string();
    assert!(
        message.ends_with("or move the file away: `run` computes its cells again"),
        "{message}"
    );
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
                    assert!(error.to_string().contains("records.parquet is damaged"), "{error}");
                    damaged += 1;
                }
            }
        }
        read += 1;
    }
    assert!(damaged > read / 2, "{damaged} of {read}");
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
fn a_record_under_another_cells_name_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let record = TestCell::new("flip-flop", "rope", 0).record();
    let path = record.write(dir.path()).unwrap();
    fs::rename(&path, path.with_file_name("0123456789abcdef.json")).unwrap();
    let message = read_dir(dir.path()).unwrap_err().to_string();
    assert!(message.contains(&format!("holds the cell {}", record.key)), "{message}");
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
    for text in [whole.replace('\n', "\r\n"), value.to_string(), old.to_string()] {
        assert_eq!(RunRecord::parse(&path, text.as_bytes()).unwrap(), read);
    }
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

#[test]
fn lean_records_keep_four_digits_of_curves_and_all_of_results() {
    let mut record = TestCell::new("w", "rope", 0).beyond(0.123_456_789).record();
    record.train.curve[0].loss = 1.234_567_8;
    record.train.curve[1].loss = f64::NAN;
    let validation = crate::record::Validation {
        step: 50,
        exact_match: 57.0 / 128.0,
        token_accuracy: 0.750_499_001,
        nll: 1.234_567e-7,
        samples: 128,
        seconds: 12_345.678,
    };
    record.train.validations = vec![validation];
    let mut all = [record.clone()];
    lean(&mut all);
    let [lean] = all;
    assert!(lean.train.curve[1].loss.is_nan());
    let found = lean.train.validations[0];
    assert_eq!((found.nll, found.token_accuracy, found.seconds), (1.235e-7, 0.7505, 10_000.0));
    assert_eq!((lean.train.curve[0].loss, found.exact_match), (1.235, 57.0 / 128.0));
    assert_eq!((lean.evals, lean.train.seconds), (record.evals, record.train.seconds));
}

#[test]
fn a_second_lean_pack_changes_nothing_and_the_first_keeps_what_results_need() {
    let grid = |fresh: bool| {
        let axis = "train.optimizer.learning_rate".to_owned();
        Some(crate::record::GridPoint { axis, value: 1e-3, default: true, fresh })
    };
    let mut records: Vec<RunRecord> = Vec::new();
    for (workload, fresh) in [("grid", false), ("grid", true), ("text", true), ("no-fresh", false)]
    {
        let mut record = TestCell::new(workload, "rope", u64::from(fresh)).beyond(0.7).record();
        if workload == "text" {
            record.task.headline = "perplexity".into();
        }
        record.grid = grid(fresh);
        let point = |step: u64| crate::record::Validation {
            step,
            exact_match: 1.0 / 3.0,
            token_accuracy: 2.0 / 3.0,
            nll: 1.234_567,
            samples: 3,
            seconds: 1.0 / 3.0,
        };
        record.train.validations = vec![point(50), point(100)];
        let sums: Vec<f64> = (0..50_u32).map(|i| 2.0 + f64::from(i * i % 47) / 30.0).collect();
        let losses = crate::record::Losses::of(&sums, &[1; 50]).unwrap();
        for eval in &mut record.evals {
            (eval.nll, eval.perplexity, eval.seconds) = (1.0 / 3.0, 4.0 / 3.0, 2.0 / 3.0);
            let answers = crate::record::Answers::Nll(losses.clone());
            let questions = "0f".to_owned();
            eval.outcomes = Some(crate::record::Outcomes { questions, answers });
        }
        records.push(record.as_written().unwrap());
    }
    let mut once = records.clone();
    lean(&mut once);
    let steps = |r: &RunRecord| r.train.validations.iter().map(|v| v.step).collect::<Vec<_>>();
    assert_eq!(steps(&once[0]), [100], "it only chose");
    assert!(once[0].train.curve.is_empty() && once[0].evals[0].outcomes.is_none());
    for (lean, full) in once.iter().zip(&records).skip(1) {
        assert_eq!((steps(lean), lean.train.curve.len()), (vec![50, 100], full.train.curve.len()));
        assert!(
            lean.evals[0].outcomes.is_some() && lean.evals[0].outcomes != full.evals[0].outcomes
        );
    }
    let likelihoods = |r: &RunRecord| r.train.validations.iter().map(|v| v.nll).collect::<Vec<_>>();
    assert_eq!(likelihoods(&once[1]), [1.2, 1.235]);
    assert_eq!(likelihoods(&once[2]), [1.235; 2], "the figure of a text shows them");
    let eval = &once[2].evals[0];
    assert!((eval.nll - 1.0 / 3.0).abs() < 1e-14);
    assert_eq!((eval.perplexity, eval.seconds), (1.333_33, 0.67));
    // Read back and packed again.
    let dir = tempfile::tempdir().unwrap();
    let bytes = pack(&once).unwrap();
    fs::write(dir.path().join(PACKED), &bytes).unwrap();
    let mut read: Vec<RunRecord> =
        packed_only(dir.path()).unwrap().into_iter().collect::<Result<_, _>>().unwrap();
    lean(&mut read);
    assert!(pack(&read).unwrap() == bytes);
}

#[test]
fn what_records_share_is_packed_once() {
    let shared: String = (0..256_u32).map(|n| hex(&Sha256::digest(n.to_le_bytes()))).collect();
    let record = |seed| {
        let cell = TestCell::new("w", "rope", seed);
        cell.change(|r| r.host.cpu = shared.clone()).record()
    };
    // Of 18 MiB, 16 KiB in each record are the same, 8 KiB in compressed form. In pages of 1 MiB it would be 257,080 bytes.
    let bytes = pack(&(0..1024).map(record).collect::<Vec<_>>()).unwrap();
    assert!(bytes.len() < 150_000, "{}", bytes.len());
}

use std::fs;

use records::store::{LabelledEvaluation, set_aside};
use records::testkit::TestCell;
use records::{Answers, Outcomes, QuestionMarks};

use super::*;
use crate::packed::{PACKED, pack};

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

#[test]
fn older_records_are_labelled_by_their_questions_and_training_length() {
    let answers = Answers::ExactMatch(vec![true, false, true, false]);
    let outcomes = Outcomes { questions: "0f".into(), answers };
    let mut record = TestCell::new("w", "rope", 0).record();
    record.evals[1].outcomes = Some(outcomes);
    record.schema = 4;
    let label = LabelledEvaluation {
        task: "flip-flop".into(),
        split: "sparse".into(),
        len: 128,
        train_len: record.train_len,
        questions: "0f".into(),
        unseen: Some(QuestionMarks(vec![false, true, true, true])),
        chance: Some(0.25),
        ceiling: Some(0.9),
    };
    let folder = tempfile::tempdir().unwrap();
    let labels = LabelledQuestions { evaluations: vec![label] };
    let text = serde_json::to_string(&labels).unwrap();
    std::fs::write(LabelledQuestions::path(folder.path()), &text).unwrap();
    record.write(folder.path()).unwrap();
    let read = read_labelled(folder.path()).unwrap().remove(0);
    let unseen = read.evals[1].unseen.as_ref().unwrap();
    assert!((unseen.exact_match - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!((unseen.chance, read.evals[1].ceiling), (Some(0.25), Some(0.9)));
    assert_eq!(read.evals[0], record.evals[0]);
    // Records that know their own labels, and those of other lengths, keep what they say.
    for change in [(|r: &mut RunRecord| r.schema = 5) as fn(&mut RunRecord), |r: &mut RunRecord| {
        r.train_len += 1;
    }] {
        let mut other = record.clone();
        change(&mut other);
        let before = other.clone();
        labels.label(&mut other);
        assert_eq!(other, before);
    }
    std::fs::write(LabelledQuestions::path(folder.path()), "{}").unwrap();
    let error = read_labelled(folder.path()).unwrap_err().to_string();
    assert!(error.contains("unseen.json") && error.contains("evaluations"), "{error}");
}

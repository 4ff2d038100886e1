use std::fs;

use records::store::hex;
use records::testkit::TestCell;
use sha2::{Digest, Sha256};

use super::*;
use crate::folder::packed_only;

#[test]
fn lean_records_keep_four_digits_of_curves_and_all_of_results() {
    let mut record = TestCell::new("w", "rope", 0).beyond(0.123_456_789).record();
    record.train.curve[0].loss = 1.234_567_8;
    record.train.curve[1].loss = f64::NAN;
    let validation = records::Validation {
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
        Some(records::GridPoint { axis, value: 1e-3, default: true, fresh })
    };
    let mut records: Vec<RunRecord> = Vec::new();
    for (workload, fresh) in [("grid", false), ("grid", true), ("text", true), ("no-fresh", false)]
    {
        let mut record = TestCell::new(workload, "rope", u64::from(fresh)).beyond(0.7).record();
        if workload == "text" {
            record.task.headline = "perplexity".into();
        }
        record.grid = grid(fresh);
        let point = |step: u64| records::Validation {
            step,
            exact_match: 1.0 / 3.0,
            token_accuracy: 2.0 / 3.0,
            nll: 1.234_567,
            samples: 3,
            seconds: 1.0 / 3.0,
        };
        record.train.validations = vec![point(50), point(100)];
        let sums: Vec<f64> = (0..50_u32).map(|i| 2.0 + f64::from(i * i % 47) / 30.0).collect();
        let losses = records::Losses::of(&sums, &[1; 50]).unwrap();
        for eval in &mut record.evals {
            (eval.nll, eval.perplexity, eval.seconds) = (1.0 / 3.0, 4.0 / 3.0, 2.0 / 3.0);
            let answers = records::Answers::Nll(losses.clone());
            let questions = "0f".to_owned();
            eval.outcomes = Some(records::Outcomes { questions, answers });
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

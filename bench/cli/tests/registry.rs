//! Every encoding of the registry through the ordinary runner.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use pe_zoo::Combination;
use pe_zoo::attention::Engine;
use pe_zoo::model::ModelConfig;
use pe_zoo::ops::MatmulPrecision;
use records::Status;
use tasks::TaskConfig;
use train::experiment::OptimizerConfig;
use train::experiment::{EvalConfig, Experiment, TrainConfig};
use train::run::{RunContext, RunHooks, execute, plan};

fn cell(encoding: &str) -> Experiment {
    Experiment {
        workload: "flip-flop".to_owned(),
        name: encoding.to_owned(),
        encoding: Combination::parse(encoding).unwrap(),
        task: TaskConfig::from_id("flip-flop").unwrap(),
        model: ModelConfig { width: 32, ..ModelConfig::default() },
        train: TrainConfig {
            validation: None,
            steps: 50,
            batch_size: 8,
            len: 16,
            curve_points: 5,
            micro_batch_size: None,
            gradient_checkpointing: false,
            precision: MatmulPrecision::F32,
            optimizer: OptimizerConfig { warmup_steps: 5, ..OptimizerConfig::default() },
        },
        eval: EvalConfig { lens: vec![16, 24], samples: 8, ..EvalConfig::default() },
        grid: None,
        budget: train::experiment::Budget::default(),
        seed: 0,
        backend: "flex".to_owned(),
        engine: Engine::Fused,
    }
}

#[test]
fn every_encoding_trains_for_fifty_steps_with_a_finite_loss_that_falls() {
    let combined = [
        "cope+rope",
        "cope+relative",
        "randomized{longest=99}(fire)",
        "randomized{longest=99}(learned-absolute)",
        "tape(yarn)",
        "dape(fire)",
    ];
    let ids = pe_zoo::Registry::builtin()
        .cards()
        .map(|card| card.id)
        .collect::<Vec<_>>()
        .into_iter()
        .chain(combined);
    let mut found = Vec::new();
    for id in ids {
        let cell = cell(id);
        let task = cell.task.build().unwrap();
        let context =
            RunContext { suite: "test".to_owned(), suite_sha256: None, threads: 1, jobs: 1 };
        let record = execute(plan(&cell, &*task, &context), RunHooks::new(&mut |_| {}));
        let losses = record.train.curve.iter().map(|point| point.loss).collect::<Vec<_>>();
        let falls = losses.len() == 5 && losses[4] < losses[0];
        let finite = losses.iter().all(|loss| loss.is_finite());
        if record.status != Status::Done || !falls || !finite || !record.skipped_evals.is_empty() {
            found
                .push(format!("{id}: {:?}, {losses:?}, {:?}", record.status, record.skipped_evals));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Reports keep the colours, markers and dashes of these encodings without knowing the registry; those of others follow from their
/// names.
#[test]
fn fixed_looks_of_reports_are_those_of_encodings() {
    let registry = pe_zoo::Registry::builtin();
    let ids: Vec<&str> = registry.cards().map(|card| card.id).collect();
    let fixed = analysis::FAMILIES.concat();
    let unknown: Vec<&&str> = fixed.iter().filter(|id| !ids.contains(id)).collect();
    assert!(unknown.is_empty(), "no encoding has these ids: {unknown:?}");
}

/// The default `digits` of abacus are ids, which only this crate can compare with the task's vocabulary.
#[test]
fn the_default_digits_of_abacus_are_the_digits_of_addition() {
    let task = TaskConfig::from_id("addition").unwrap().build().unwrap();
    let [first, last] = pe_zoo::zoo::abacus::AbacusConfig::default().digits;
    let texts: Vec<String> = (first..=last).map(|id| task.token_text(id as u32)).collect();
    assert_eq!(texts, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
}

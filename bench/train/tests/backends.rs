//! Comparison of backends: run with `cargo test --features tch -- --ignored`.
#![cfg(feature = "tch")]
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use pe_zoo::Combination;
use pe_zoo::model::ModelConfig;
use tasks::TaskConfig;
use train::backend;
use train::experiment::{EvalConfig, Experiment, TrainConfig};
use train::run::{RunContext, run};

/// Mean losses of five steps each, over 50 steps.
fn losses(encoding: &str, backend: &str) -> Vec<f64> {
    let cell = Experiment {
        workload: "flip-flop".to_owned(),
        name: encoding.to_owned(),
        encoding: Combination::parse(encoding).unwrap(),
        task: TaskConfig::from_id("flip-flop").unwrap(),
        model: ModelConfig { width: 32, ..ModelConfig::default() },
        train: TrainConfig {
            validation: None,
            steps: 50,
            batch_size: 8,
            len: 32,
            curve_points: 10,
            micro_batch_size: None,
            gradient_checkpointing: false,
            ..TrainConfig::default()
        },
        eval: EvalConfig { samples: 8, ..EvalConfig::default() },
        grid: None,
        budget: train::experiment::Budget::default(),
        seed: 1,
        backend: backend.to_owned(),
        engine: backend::engine(None, backend).unwrap(),
    };
    let context = RunContext { suite: "test".to_owned(), suite_sha256: None, threads: 1, jobs: 1 };
    let record = run(&cell, &*cell.task.build().unwrap(), &context, &mut |_| {});
    assert_eq!(record.status, records::Status::Done);
    record.train.curve.iter().map(|point| point.loss).collect()
}

#[test]
#[ignore = "needs LibTorch: LIBTORCH_USE_PYTORCH=1 with PyTorch 2.9.0 in the active Python"]
fn flex_and_tch_give_the_same_loss_curve() {
    for meta in pe_zoo::Registry::builtin().cards() {
        let (flex, tch) = (losses(meta.id, "flex"), losses(meta.id, "tch"));
        eprintln!("{}: flex {flex:.5?} tch {tch:.5?}", meta.id);
        assert_eq!(flex.len(), 10);
        for (a, b) in flex.iter().zip(&tch) {
            // Sums in another order drift apart over fifty optimizer steps.
            assert!((a - b).abs() < 2e-3 * a.abs().max(0.1), "{}: {flex:?} {tch:?}", meta.id);
        }
    }
}

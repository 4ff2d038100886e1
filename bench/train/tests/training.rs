//! Training: batches from a thread of their own, validations, early stop, slices.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::ops::ControlFlow;
use std::process::Command;

use pe_zoo::Combination;
use pe_zoo::attention::Engine;
use pe_zoo::model::ModelConfig;
use records::{RunRecord, SliceUnit, Status};
use tasks::{Task, TaskConfig};
use train::experiment::OptimizerConfig;
use train::experiment::{EarlyStop, EvalConfig, Experiment, TrainConfig, ValidationConfig};
use train::run::train::{TrainObserver, Trainer, train};
use train::run::{self, RunContext, RunHooks};

fn cell(task: &str, train: TrainConfig) -> (Experiment, Box<dyn Task>) {
    let task = TaskConfig::from_id(task).unwrap();
    let built = task.build().unwrap();
    let cell = Experiment {
        workload: "test".into(),
        name: "cope".into(),
        encoding: Combination::parse("cope").unwrap(),
        task,
        model: ModelConfig { width: 32, dropout: 0.1, ..ModelConfig::default() },
        train,
        eval: EvalConfig { samples: 40, ..EvalConfig::default() },
        grid: None,
        budget: train::experiment::Budget::default(),
        seed: 3,
        backend: "flex".into(),
        engine: Engine::Fused,
    };
    (cell, built)
}

fn context() -> RunContext {
    RunContext { suite: "test".into(), suite_sha256: None, threads: 1, jobs: 1 }
}

/// Trains and evaluates without checkpoints and limits.
fn undisturbed(cell: &Experiment, task: &dyn Task) -> RunRecord {
    run::execute(run::plan(cell, task, &context()), RunHooks::new(&mut |_| {}))
}

/// Keeps the losses, and stops after so many steps.
struct Losses(Vec<f64>, usize);

impl TrainObserver for Losses {
    fn stepped(&mut self, _: &Trainer<'_>, loss: f64) -> ControlFlow<Status> {
        self.0.push(loss);
        if self.0.len() < self.1 {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(Status::Interrupted)
    }
}

#[test]
fn drawing_ahead_changes_no_bit() {
    let config = TrainConfig { steps: 12, batch_size: 4, len: 16, ..TrainConfig::default() };
    let (cell, task) = cell("flip-flop", config);
    let trainer = || {
        let (model, device) = run::build(&cell, &*task).unwrap();
        Trainer::new(model, "cope", &cell.train, 0.1, &*task, cell.seed, &device)
    };
    let mut by_hand = trainer();
    let one_by_one = (0..12).map(|_| by_hand.step().unwrap().0).collect::<Vec<_>>();
    let mut ahead = Losses(Vec::new(), usize::MAX);
    assert!(train(trainer(), &mut ahead).unwrap().stopped.is_none());
    assert_eq!(ahead.0, one_by_one);
    let mut stopped = Losses(Vec::new(), 5);
    let trained = train(trainer(), &mut stopped).unwrap();
    assert_eq!(trained.stopped, Some(Status::Interrupted));
    assert_eq!(stopped.0, one_by_one[..5]);
}

/// In a process of its own, each of whose threads asks for more memory than there are addresses.
#[test]
fn a_thread_that_cannot_be_started_is_an_error() {
    const CHILD: &str = "PE_ZOO_TEST_OF_THREADS";
    if std::env::var_os(CHILD).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "a_thread_that_cannot_be_started_is_an_error", "--nocapture"]);
        child.envs([(CHILD, "1"), ("RUST_MIN_STACK", "9000000000000000")]);
        let output = child.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && printed.contains("1 passed"), "{printed}{said}");
        return;
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build_global().unwrap();
    let (cell, task) = cell("flip-flop", TrainConfig { steps: 1, ..TrainConfig::default() });
    let (model, device) = run::build(&cell, &*task).unwrap();
    let trainer = Trainer::new(model, "cope", &cell.train, 0.1, &*task, cell.seed, &device);
    let error = train(trainer, &mut Losses(Vec::new(), usize::MAX)).unwrap_err().to_string();
    assert!(error.contains("cannot start a thread that draws batches"), "{error}");
}

#[test]
fn validations_change_no_bit_and_a_solved_training_ends_early() {
    let config = TrainConfig {
        steps: 300,
        batch_size: 16,
        len: 8,
        optimizer: OptimizerConfig { learning_rate: 3e-3, ..OptimizerConfig::default() },
        ..TrainConfig::default()
    };
    let validation = ValidationConfig {
        every_steps: Some(20),
        solved_exact_match: 0.8,
        ..ValidationConfig::default()
    };
    let run = |validation| {
        let (cell, task) = cell("flip-flop", TrainConfig { validation, ..config.clone() });
        undisturbed(&cell, &*task)
    };
    let plain = run(None);
    let looked = run(Some(validation.clone()));
    let stop = Some(EarlyStop { cooldown_steps: 30 });
    let ended = run(Some(ValidationConfig { stop, ..validation }));
    assert_eq!(
        (&plain.status, &looked.status, &ended.status),
        (&Status::Done, &Status::Done, &Status::Done)
    );
    assert_ne!(plain.key, looked.key);

    let losses = |record: &records::RunRecord| {
        record.train.curve.iter().map(|point| point.loss).collect::<Vec<_>>()
    };
    assert_eq!(losses(&plain), losses(&looked));
    assert_eq!(plain.evals[0].nll.to_bits(), looked.evals[0].nll.to_bits());
    assert!(plain.train.validations.is_empty() && plain.train.solved.is_none());

    assert_eq!(looked.train.validations.len(), 15);
    let solved = looked.train.solved.expect("the tiny task is solved within 300 steps");
    assert!(!looked.train.stopped_early && looked.train.steps == 300);
    let (solved, seen) = (solved.step, solved.step + 20);
    assert_eq!(ended.train.solved.unwrap().step, solved);
    assert!(ended.train.stopped_early);
    assert_eq!(ended.train.steps, seen + 30);
    assert_eq!(ended.train.validations.last().unwrap().step, seen + 30);
    assert!(ended.train.curve.last().unwrap().learning_rate < 3e-3 / 20.0);
}

#[test]
fn chosen_splits_are_validated_at_the_same_steps_and_change_nothing() {
    let config = TrainConfig {
        steps: 40,
        batch_size: 8,
        len: 16,
        validation: Some(ValidationConfig { every_steps: Some(10), ..ValidationConfig::default() }),
        ..TrainConfig::default()
    };
    let with = |splits: &[&str]| {
        let mut config = config.clone();
        let validation = config.validation.as_mut().unwrap();
        validation.splits = splits.iter().map(|split| (*split).to_owned()).collect();
        cell("flip-flop", config)
    };
    let run = |splits: &[&str]| {
        let (cell, task) = with(splits);
        undisturbed(&cell, &*task)
    };
    let (plain, looked) = (run(&[]), run(&["sparse", "dense"]));
    assert_eq!((&plain.status, &looked.status), (&Status::Done, &Status::Done));
    assert_ne!(plain.key, looked.key);
    assert!(plain.train.split_validations.is_empty());
    let seen = looked.train.split_validations.iter();
    let seen: Vec<(&str, u64)> = seen.map(|v| (v.split.as_str(), v.result.step)).collect();
    let steps = [10, 20, 30, 40];
    let expected = steps.into_iter().flat_map(|step| [("sparse", step), ("dense", step)]);
    assert_eq!(seen, expected.collect::<Vec<_>>());
    let of = |record: &records::RunRecord| {
        let validations = record.train.validations.iter();
        validations.map(|v| (v.step, v.nll.to_bits())).collect::<Vec<_>>()
    };
    assert_eq!(of(&plain), of(&looked));
    assert_eq!(plain.evals[0].nll.to_bits(), looked.evals[0].nll.to_bits());
    // Other samples than those of the first split.
    let losses: std::collections::BTreeSet<u64> =
        looked.train.split_validations.iter().map(|v| v.result.nll.to_bits()).collect();
    assert!(losses.len() > 4 && of(&looked).iter().all(|(_, nll)| !losses.contains(nll)));

    for (splits, told) in [
        (&["spars"][..], "did you mean `sparse`?"),
        (&["in-distribution"], "train.validation.splits"),
        (&["sparse", "sparse"], "each split once"),
    ] {
        let (cell, task) = with(splits);
        let said = cell.check(&*task).unwrap_err().to_string();
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn slices_add_up_to_the_whole() {
    let config = TrainConfig { steps: 5, batch_size: 4, len: 32, ..TrainConfig::default() };
    let (cell, task) = cell("flip-flop", config);
    let record = undisturbed(&cell, &*task);
    let sum = |values: &[f64], counts: &[u64]| {
        values.iter().zip(counts).map(|(value, count)| value * *count as f64).sum::<f64>()
    };
    let mut seen = 0;
    for eval in &record.evals {
        for slice in &eval.slices {
            let total = match slice.unit {
                SliceUnit::Samples => eval.exact_match * eval.samples as f64,
                SliceUnit::Tokens => eval.token_accuracy * eval.scored_tokens as f64,
            };
            assert!((sum(&slice.accuracy, &slice.counts) - total).abs() < 1e-6, "{slice:?}");
            if slice.unit == SliceUnit::Tokens {
                let nll = eval.nll * eval.scored_tokens as f64;
                assert!((sum(&slice.nll, &slice.counts) / nll - 1.0).abs() < 1e-6, "{slice:?}");
            }
            seen += 1;
        }
        assert!(eval.chance.is_some(), "{}", eval.split);
    }
    assert!(seen >= 3, "{seen}");
}

#[test]
fn validation_samples_must_not_be_the_evaluation_s() {
    let same = ValidationConfig { seed: EvalConfig::default().seed, ..ValidationConfig::default() };
    let config = TrainConfig { validation: Some(same), ..TrainConfig::default() };
    let (cell, task) = cell("flip-flop", config);
    let told = cell.check(&*task).unwrap_err().to_string();
    assert!(told.contains("train.validation.seed") && told.contains("eval.seed"), "{told}");
}

/// Losses of a short training without dropout, so that pieces of a batch see what the whole sees.
fn losses(encoding: &str, engine: Engine, change: impl Fn(&mut TrainConfig)) -> Vec<f64> {
    let mut config = TrainConfig { steps: 6, batch_size: 6, len: 16, ..TrainConfig::default() };
    change(&mut config);
    let (mut cell, task) = cell("flip-flop", config);
    cell.encoding = Combination::parse(encoding).unwrap();
    cell.model.dropout = 0.0;
    cell.engine = engine;
    let (model, device) = run::build(&cell, &*task).unwrap();
    let id = cell.encoding.id();
    let trainer = Trainer::new(model, id, &cell.train, 0.0, &*task, cell.seed, &device);
    let mut seen = Losses(Vec::new(), usize::MAX);
    train(trainer, &mut seen).unwrap();
    seen.0
}

#[test]
fn a_step_in_pieces_is_the_whole_step() {
    for encoding in ["rope", "cope", "learned-absolute"] {
        let whole = losses(encoding, Engine::Fused, |_| ());
        for pieces in [1, 4] {
            let found =
                losses(encoding, Engine::Fused, |train| train.micro_batch_size = Some(pieces));
            for (found, whole) in found.iter().zip(&whole) {
                assert!((found - whole).abs() < 1e-4, "{encoding}: {found} and {whole}");
            }
        }
    }
    let (mut cell, task) = cell("flip-flop", TrainConfig::default());
    for pieces in [0, cell.train.batch_size + 1] {
        cell.train.micro_batch_size = Some(pieces);
        let said = cell.check(&*task).unwrap_err().to_string();
        assert!(said.contains("train.micro_batch_size"), "{said}");
    }
}

#[test]
fn gradient_checkpointing_changes_no_loss() {
    for engine in [Engine::Reference, Engine::Fused] {
        for encoding in ["rope", "cope", "fire", "tape", "path"] {
            let kept = losses(encoding, engine, |_| ());
            let again = losses(encoding, engine, |train| train.gradient_checkpointing = true);
            for (again, kept) in again.iter().zip(&kept) {
                assert!((again - kept).abs() < 1e-5, "{encoding}: {again} and {kept}");
            }
        }
    }
}

#[test]
fn longer_evaluations_have_fewer_sequences() {
    let task = TaskConfig::from_id("flip-flop").unwrap().build().unwrap();
    let eval = EvalConfig { samples: 50, tokens: Some(1000), ..EvalConfig::default() };
    let asked = [8, 64, 512, 4096].map(|len| eval.samples_at(&*task, len));
    assert_eq!(asked[0], 50);
    assert!(asked[1] < 17 && asked[2] < asked[1] && asked[3] == 1, "{asked:?}");
}

//! A training resumed from a checkpoint gives the same bits as an uninterrupted one.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use pe_zoo::Combination;
use pe_zoo::attention::Engine;
use pe_zoo::model::ModelConfig;
use records::{RunRecord, Status};
use tasks::{Task, TaskConfig};
use train::experiment::{EvalConfig, Experiment, TrainConfig, ValidationConfig};
use train::run::checkpoint::{CheckpointFolder, Checkpointer, pack, unpack};
use train::run::train::{TrainState, Trainer};
use train::run::{self, Progress, RunContext, RunEvent, RunHooks};
use train::weights::NamedTensors;

const STEPS: usize = 24;

fn cell(encoding: &str, dropout: f64) -> (Experiment, Box<dyn Task>) {
    let task = TaskConfig::from_id("flip-flop").unwrap();
    let built = task.build().unwrap();
    let validation =
        ValidationConfig { every_steps: Some(5), samples: 8, ..ValidationConfig::default() };
    let cell = Experiment {
        workload: "test".into(),
        name: encoding.into(),
        encoding: Combination::parse(encoding).unwrap(),
        task,
        model: ModelConfig { width: 32, dropout, ..ModelConfig::default() },
        train: TrainConfig {
            steps: STEPS,
            batch_size: 4,
            len: 16,
            curve_points: 8,
            micro_batch_size: None,
            gradient_checkpointing: true,
            validation: Some(validation),
            ..TrainConfig::default()
        },
        eval: EvalConfig { lens: vec![16, 32], samples: 8, ..EvalConfig::default() },
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

fn trainer<'a>(cell: &'a Experiment, task: &'a dyn Task) -> Trainer<'a> {
    let (model, device) = run::build(cell, task).unwrap();
    let id = cell.encoding.id();
    Trainer::new(model, id, &cell.train, cell.model.dropout, task, cell.seed, &device)
}

struct Bits(Vec<u32>);

impl ModuleVisitor for Bits {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let values = param.val().into_data().try_to_vec::<f32>().unwrap();
        self.0.extend(values.into_iter().map(f32::to_bits));
    }
}

fn weights(state: &TrainState) -> Vec<u32> {
    let mut bits = Bits(Vec::new());
    state.model.visit(&mut bits);
    assert!(bits.0.len() > 1000);
    bits.0
}

fn losses(trainer: &mut Trainer<'_>, steps: usize) -> Vec<u64> {
    (0..steps).map(|_| trainer.step().unwrap().0.to_bits()).collect()
}

#[test]
fn losses_and_weights_are_the_same_bits_after_any_step() {
    for (encoding, dropout) in [
        ("rope", 0.0),
        ("cope{max_positions=8}+rope", 0.1),
        ("tape", 0.0),
        ("randomized{longest=64}(rope)", 0.0),
        ("learned-absolute", 0.2),
    ] {
        let (cell, task) = cell(encoding, dropout);
        let mut undisturbed = trainer(&cell, &*task);
        for step in 0..10 {
            let bytes = pack(undisturbed.state(), 1.5).unwrap();
            let mut resumed = trainer(&cell, &*task);
            let kept = unpack(&bytes, resumed.state_mut()).unwrap();
            assert_eq!((kept.step, kept.cell_seconds), (step, 1.5));
            let progress = |trainer: &Trainer<'_>| serde_json::to_value(&trainer.state().progress);
            assert_eq!(progress(&resumed).unwrap(), progress(&undisturbed).unwrap());
            assert_eq!(weights(resumed.state()), weights(undisturbed.state()), "{encoding} {step}");
            if step % 3 == 0 {
                let mut copy = trainer(&cell, &*task);
                unpack(&bytes, copy.state_mut()).unwrap();
                assert_eq!(losses(&mut resumed, 4), losses(&mut copy, 4), "{encoding} {step}");
            }
            let expected = losses(&mut undisturbed, 1);
            let mut resumed = trainer(&cell, &*task);
            unpack(&bytes, resumed.state_mut()).unwrap();
            assert_eq!(losses(&mut resumed, 1), expected, "{encoding} after {step}");
            assert_eq!(weights(resumed.state()), weights(undisturbed.state()), "{encoding} {step}");
        }
        let state = |trainer: &Trainer<'_>| {
            let tensors = NamedTensors::parse(&pack(trainer.state(), 0.0).unwrap()).unwrap();
            // The header holds times; the tensors are weights and moments.
            let tensors = tensors.renamed(|name| Some(name.to_owned()));
            assert!(tensors.shapes().any(|(name, _)| name.starts_with("exp_avg_sq.")));
            tensors
        };
        let mut resumed = trainer(&cell, &*task);
        unpack(&pack(undisturbed.state(), 0.0).unwrap(), resumed.state_mut()).unwrap();
        assert_eq!(losses(&mut resumed, 6), losses(&mut undisturbed, 6), "{encoding}");
        assert!(state(&resumed) == state(&undisturbed), "{encoding}: moments differ");
    }
}

#[test]
fn a_checkpoint_of_another_model_or_a_cut_one_changes_nothing() {
    let (rope, task) = cell("rope", 0.0);
    let mut trained = trainer(&rope, &*task);
    trained.step().unwrap();
    let bytes = pack(trained.state(), 0.0).unwrap();
    let (other, _) = cell("learned-absolute", 0.0);
    let mut into = trainer(&other, &*task);
    let before = pack(into.state(), 0.0).unwrap();
    let error = unpack(&bytes, into.state_mut()).unwrap_err();
    assert!(error.to_string().contains("for the model"), "{error}");
    let mut into_rope = trainer(&rope, &*task);
    let own = pack(into_rope.state(), 0.0).unwrap();
    for len in [0, 7, 20, bytes.len() / 2, bytes.len() - 4] {
        assert!(unpack(&bytes[..len], into_rope.state_mut()).is_err(), "cut to {len}");
    }
    assert!(pack(into.state(), 0.0).unwrap() == before);
    assert!(pack(into_rope.state(), 0.0).unwrap() == own);
}

/// Runs a cell that is stopped after so many steps, if it is; returns the record and the troubles.
fn run(
    cell: &Experiment,
    task: &dyn Task,
    results: &Path,
    stop_after: Option<usize>,
) -> (RunRecord, Option<usize>, Vec<String>) {
    let stop = AtomicBool::new(false);
    let (mut from, mut troubles) = (None, Vec::new());
    let mut news = |news: RunEvent| match news {
        RunEvent::Progress(Progress::Train { done, .. }) if Some(done) == stop_after => {
            stop.store(true, Ordering::SeqCst);
        }
        RunEvent::Progress(_) | RunEvent::Point(_) | RunEvent::Validated(_) => {}
        RunEvent::Resumed { step, .. } => from = Some(step),
        RunEvent::Trouble(text) => troubles.push(text),
    };
    let checkpointer =
        Checkpointer::new(CheckpointFolder::new(results, &cell.key(task)), Duration::ZERO);
    let mut hooks = RunHooks::new(&mut news);
    (hooks.checkpointer, hooks.stop) = (Some(checkpointer), Some(&stop));
    (run::execute(run::plan(cell, task, &context()), hooks), from, troubles)
}

/// What must be equal; times need not be. To 15 digits, which is what a record keeps.
fn essence(record: &RunRecord) -> String {
    let digits = |x: f64| format!("{x:.14e}");
    let evals = record.evals.iter();
    let evals = evals.map(|e| (&e.split, e.len, digits(e.exact_match), digits(e.nll), &e.slices));
    let curve = record.train.curve.iter();
    let curve = curve.map(|p| (p.step, digits(p.loss), digits(p.learning_rate)));
    let looks = record.train.validations.iter();
    let looks = looks.map(|v| (v.step, digits(v.exact_match), digits(v.nll)));
    format!(
        "{:?} {} {} {:?} {:?} {:?}",
        record.status,
        record.train.steps,
        record.train.tokens,
        curve.collect::<Vec<_>>(),
        looks.collect::<Vec<_>>(),
        evals.collect::<Vec<_>>()
    )
}

#[test]
fn a_cell_that_is_stopped_again_and_again_leaves_the_same_record() {
    let (cell, task) = cell("cope", 0.1);
    let results = tempfile::tempdir().unwrap();
    let undisturbed = undisturbed(&cell, &*task);
    assert_eq!(undisturbed.status, Status::Done);
    let mut last = None;
    for stop_after in [3, 4, 11, STEPS] {
        let (record, from, troubles) = run(&cell, &*task, results.path(), Some(stop_after));
        assert_eq!((&record.status, from, troubles), (&Status::Interrupted, last, Vec::new()));
        last = Some(stop_after);
    }
    let (record, from, troubles) = run(&cell, &*task, results.path(), None);
    assert_eq!((from, troubles), (Some(STEPS), Vec::new()));
    assert_eq!(essence(&record), essence(&undisturbed));
}

#[test]
fn a_damaged_checkpoint_is_passed_over_and_said() {
    let (cell, task) = cell("rope", 0.0);
    let results = tempfile::tempdir().unwrap();
    let (_, _, troubles) = run(&cell, &*task, results.path(), Some(10));
    assert_eq!(troubles, [] as [String; 0]);
    let folder = CheckpointFolder::new(results.path(), &cell.key(&*task));
    let files = folder.newest_first().unwrap();
    assert_eq!(files.len(), 2);
    let flip = |file: &Path| {
        let mut bytes = std::fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file, bytes).unwrap();
    };
    flip(&files[0]);
    let (record, from, troubles) = run(&cell, &*task, results.path(), Some(12));
    assert_eq!((record.status, from, troubles.len()), (Status::Interrupted, Some(9), 1));
    assert!(troubles[0].contains("checksum") && troubles[0].contains("the previous checkpoint"));

    let files = folder.newest_first().unwrap();
    flip(&files[0]);
    let bytes = std::fs::read(&files[1]).unwrap();
    std::fs::write(&files[1], &bytes[..bytes.len() - 1]).unwrap();
    let (record, from, troubles) = run(&cell, &*task, results.path(), None);
    assert_eq!((from, troubles.len()), (None, 2));
    assert!(troubles[1].contains("truncated") && troubles[1].contains("from the first step"));
    let undisturbed = undisturbed(&cell, &*task);
    assert_eq!(essence(&record), essence(&undisturbed));
}

#[test]
fn a_cell_out_of_time_says_how_far_it_came_and_goes_on_with_more() {
    let (cell, task) = cell("rope", 0.0);
    let results = tempfile::tempdir().unwrap();
    let within = |seconds: f64| {
        let mut news = |_| {};
        let checkpointer = Checkpointer::new(
            CheckpointFolder::new(results.path(), &cell.key(&*task)),
            Duration::MAX,
        );
        let mut hooks = RunHooks::new(&mut news);
        (hooks.checkpointer, hooks.seconds) = (Some(checkpointer), Some(seconds));
        run::execute(run::plan(&cell, &*task, &context()), hooks)
    };
    let record = within(1e-6);
    assert!(matches!(record.status, Status::TimedOut { .. }), "{:?}", record.status);
    assert!(record.status.reason().contains("1 of 24 steps"), "{}", record.status.reason());
    assert_eq!((record.train.steps, record.evals.len()), (1, 0));
    let undisturbed = undisturbed(&cell, &*task);
    assert_eq!(essence(&within(1e6)), essence(&undisturbed));
}

#[test]
fn a_cell_stopped_between_evaluations_has_none() {
    let (cell, task) = cell("rope", 0.0);
    let stop = AtomicBool::new(false);
    let mut evaluated = 0;
    let mut news = |event| {
        if let RunEvent::Progress(Progress::Eval { done, .. }) = event {
            evaluated = done;
            stop.store(done == 1, Ordering::SeqCst);
        }
    };
    let mut hooks = RunHooks::new(&mut news);
    hooks.stop = Some(&stop);
    let record = run::execute(run::plan(&cell, &*task, &context()), hooks);
    assert_eq!((record.status, evaluated), (Status::Interrupted, 1));
    assert_eq!((record.evals, record.skipped_evals), (vec![], vec![]));
}

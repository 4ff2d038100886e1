//! Data parallel training: several devices give the bits of one. On the CPU a device is a group of threads.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod program;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use pe_zoo::Combination;
use pe_zoo::attention::Engine;
use pe_zoo::model::ModelConfig;
use program::Place;
use tasks::{Task, TaskConfig};
use train::experiment::{Budget, EvalConfig, Experiment, TrainConfig};
use train::run;
use train::run::train::{Replicas, Trainer};

const STEPS: usize = 5;

fn cell(encoding: &str, engine: Engine) -> (Experiment, Box<dyn Task>) {
    let task = TaskConfig::from_id("flip-flop").unwrap();
    let built = task.build().unwrap();
    let cell = Experiment {
        workload: "test".into(),
        name: encoding.into(),
        encoding: Combination::parse(encoding).unwrap(),
        task,
        model: ModelConfig { width: 32, dropout: 0.1, ..ModelConfig::default() },
        // The last of six micro-batches is smaller than the others.
        train: TrainConfig {
            steps: STEPS,
            batch_size: 17,
            micro_batch_size: Some(3),
            len: 16,
            ..TrainConfig::default()
        },
        eval: EvalConfig::default(),
        grid: None,
        budget: Budget::default(),
        seed: 3,
        backend: "flex".into(),
        engine,
    };
    (cell, built)
}

struct Bits(Vec<u32>);

impl ModuleVisitor for Bits {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let values = param.val().into_data().try_to_vec::<f32>().unwrap();
        self.0.extend(values.into_iter().map(f32::to_bits));
    }
}

/// Bits of the losses and of the weights after some steps.
fn trained(cell: &Experiment, task: &dyn Task, devices: usize) -> (Vec<u64>, Vec<u32>) {
    let (model, device) = run::build(cell, task).unwrap();
    let (id, dropout) = (cell.encoding.id(), cell.model.dropout);
    let mut trainer = Trainer::new(model, id, &cell.train, dropout, task, cell.seed, &device);
    if devices > 1 {
        trainer = trainer.across(Replicas::new("flex", devices, 1, &cell.train).unwrap());
    }
    let losses = (0..STEPS).map(|_| trainer.step().unwrap().0.to_bits()).collect();
    let mut bits = Bits(Vec::new());
    trainer.state().model.visit(&mut bits);
    assert!(bits.0.len() > 1000);
    (losses, bits.0)
}

#[test]
fn several_devices_give_the_bits_of_one() {
    // Learned tables, contextual positions, random positions, state through the layers, gates and dropout.
    for encoding in ["learned-absolute", "cope", "randomized", "tape", "fox+rope", "path", "fire"] {
        for engine in [Engine::Fused, Engine::Reference] {
            let (cell, task) = cell(encoding, engine);
            let one = trained(&cell, &*task, 1);
            for devices in [2, 3, 6] {
                let several = trained(&cell, &*task, devices);
                assert_eq!(several.0, one.0, "{encoding}, {engine:?}: losses on {devices} devices");
                assert!(several.1 == one.1, "{encoding}, {engine:?}: weights on {devices} devices");
            }
        }
    }
}

#[test]
fn micro_batches_that_cannot_be_divided_are_refused() {
    let (mut cell, _) = cell("rope", Engine::Fused);
    let refused = |train: &TrainConfig, devices, expected: &str| {
        let said = Replicas::new("flex", devices, 1, train).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    };
    refused(&cell.train, 4, "in a step is 6 (batch_size 17, micro_batch_size 3)");
    refused(&cell.train, 12, "in a step is 6");
    cell.train.micro_batch_size = None;
    refused(&cell.train, 2, "in a step is 1 (batch_size 17, micro_batch_size 17)");
    refused(&cell.train, 2, "set train.micro_batch_size, for instance to 9");
}

#[test]
fn a_sweep_on_several_devices_has_the_records_of_one_and_resumes_from_its_checkpoints() {
    let place = Place::new(
        "seeds = [0]\nencodings = [\"rope\", \"cope\"]\nmodel.dropout = 0.1\neval.lens = [12, 20]\n\
         [train]\nsteps = 1500\nbatch_size = 8\nmicro_batch_size = 2\nlen = 12\n\
         validation = { every_steps = 500, samples = 8 }",
    );
    place.run("one", &[]);
    place.run("two", &["--data-parallel", "2"]);
    // Interrupted on four devices, one cell at a time, and finished on one.
    let stopped = ["--data-parallel", "4", "--jobs", "1", "--cell-seconds", "0.3"];
    place.refused("four", &stopped, "--retry timed-out");
    let resumed = place.run("four", &["--retry", "timed-out", "--json"]);
    assert!(resumed.contains(r#""event":"resumed""#), "{resumed}");
    place.assert_equal("one", "two");
    place.assert_equal("one", "four");
    let shares = |out: &str| {
        let records = place.records(out);
        records.iter().map(|record| record.train.data_parallel).collect::<Vec<_>>()
    };
    assert_eq!((shares("one"), shares("two")), (vec![None; 2], vec![Some(2); 2]));

    if std::thread::available_parallelism().unwrap().get() > 1 {
        let bound = place.run("bound", &["--data-parallel", "2", "--devices", "0-1", "--json"]);
        assert!(bound.contains(r#""devices":[0,1]"#), "{bound}");
        place.assert_equal("one", "bound");
    }
    for (options, expected) in [
        (
            &["--data-parallel", "3"][..],
            "workload `flip-flop`: the number of micro-batches in a step is 4",
        ),
        (&["--data-parallel", "0"], "expected a whole number from 1 to "),
        (&["--data-parallel", "2", "--devices", "0"], "expected a multiple of --data-parallel 2"),
    ] {
        place.refused("none", options, expected);
    }
}

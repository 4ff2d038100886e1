//! Exact match by teacher forcing is exact match by greedy decoding: checked for every sample with
//! small trained models that are right on some samples and wrong on others, by decoding token by token with the
//! cache and feeding each answer back.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::ops::ControlFlow;

use burn::tensor::{Device, Int, Tensor, TensorData};
use pe_zoo::Combination;
use pe_zoo::attention::{Engine, Weights};
use pe_zoo::encoding::PositionRequest;
use pe_zoo::erased::positions;
use pe_zoo::model::{Cache, Decoder, Dropout, ModelConfig};
use records::Status;
use serde_json::{Value, json};
use tasks::{Sample, Task, TaskConfig};
use train::experiment::Budget;
use train::experiment::OptimizerConfig;
use train::experiment::{EvalConfig, Experiment, TrainConfig};
use train::run;
use train::run::evaluate::{EvalRequest, evaluate};
use train::run::train::{TrainObserver, Trainer, train};

/// Static, contextual, additive, with a state that travels through the layers, and positions of its own. Random
/// positions are asked for in order: drawn ones change with the number of tokens, which no cache can follow.
const ENCODINGS: [&str; 5] =
    ["rope", "cope", "alibi", "tape", "randomized{longest=64,evaluation={type=contiguous}}(rope)"];

/// Samples of each length.
const SAMPLES: usize = 24;

struct Unwatched;

impl TrainObserver for Unwatched {
    fn stepped(&mut self, _: &Trainer<'_>, _: f64) -> ControlFlow<Status> {
        ControlFlow::Continue(())
    }
}

fn cell(encoding: &str, task: &Value, len: usize, steps: usize, lens: &[usize]) -> Experiment {
    Experiment {
        workload: "greedy".into(),
        name: encoding.into(),
        encoding: Combination::parse(encoding).unwrap(),
        task: serde_json::from_value::<TaskConfig>(task.clone()).unwrap(),
        model: ModelConfig { layers: 2, width: 32, ..ModelConfig::default() },
        train: TrainConfig {
            steps,
            batch_size: 16,
            len,
            optimizer: OptimizerConfig {
                learning_rate: 5e-3,
                warmup_steps: 10,
                ..OptimizerConfig::default()
            },
            ..TrainConfig::default()
        },
        eval: EvalConfig { lens: lens.to_vec(), ..EvalConfig::default() },
        grid: None,
        budget: Budget::default(),
        seed: 1,
        backend: "flex".into(),
        engine: Engine::Fused,
    }
}

/// The most likely next token at each row of hidden states `[B, T, C]`, row-major.
fn choices(model: &Decoder, hidden: Tensor<3>) -> Vec<u32> {
    let [batch, tokens, width] = hidden.dims();
    let logits = model.logits(hidden.reshape([batch * tokens, width]));
    let chosen = logits.argmax(1).into_data().convert::<i64>();
    chosen.iter::<i64>().map(|token| token as u32).collect()
}

fn ints(tokens: &[u32], device: &Device) -> Tensor<2, Int> {
    let values = tokens.iter().map(|token| *token as i32).collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(values, [1, tokens.len()]), device)
}

fn request(cached_tokens: usize, new_tokens: usize) -> PositionRequest<'static> {
    PositionRequest { cached_tokens, new_tokens, training_rng: None }
}

/// The scored tokens as the model gives them when it reads the right answer.
fn teacher_forced(model: &Decoder, sample: &Sample, device: &Device) -> Vec<u32> {
    let inputs = &sample.tokens[..sample.tokens.len() - 1];
    let at = positions(&model.encoding, "test", request(0, inputs.len())).unwrap();
    let pass = model.forward(ints(inputs, device), &at, None, Dropout::off(), Weights::Drop);
    let chosen = choices(model, pass.hidden);
    let scored = chosen.into_iter().zip(&sample.scored[1..]);
    scored.filter(|(_, scored)| **scored).map(|(token, _)| token).collect()
}

/// The scored tokens as the model gives them when it reads its own answer; all others are given.
fn decoded(model: &Decoder, layers: usize, sample: &Sample, device: &Device) -> Vec<u32> {
    let mut cache = Cache::new(layers);
    let (mut fed, mut answer) = (sample.tokens[0], Vec::new());
    for (place, scored) in sample.scored.iter().enumerate().skip(1) {
        let at = positions(&model.encoding, "test", request(place - 1, 1)).unwrap();
        let token = ints(&[fed], device);
        let pass = model.forward(token, &at, Some(&mut cache), Dropout::off(), Weights::Drop);
        fed = if *scored {
            let chosen = choices(model, pass.hidden)[0];
            answer.push(chosen);
            chosen
        } else {
            sample.tokens[place]
        };
    }
    answer
}

fn wanted(sample: &Sample) -> Vec<u32> {
    let tokens = sample.tokens.iter().zip(&sample.scored);
    tokens.filter(|(_, scored)| **scored).map(|(token, _)| *token).collect()
}

/// What was seen of one task under one encoding.
#[derive(Default)]
struct Seen {
    right: usize,
    wrong: usize,
    /// Wrong samples on which the two ways to answer gave other tokens after the first mistake.
    parted: usize,
}

fn compare(cell: &Experiment, task: &dyn Task) -> Seen {
    let (model, device) = run::build(cell, task).unwrap();
    let id = cell.encoding.id();
    let trainer = Trainer::new(model, id, &cell.train, 0.0, task, cell.seed, &device);
    let model = train(trainer, &mut Unwatched).unwrap().model;
    let device = device.inner();
    let split = task.splits()[0].name;
    let mut seen = Seen::default();
    for len in &cell.eval.lens {
        let mut exact = 0;
        for sample in task.eval_set(split, *len, SAMPLES, cell.eval.seed).unwrap() {
            let forced = teacher_forced(&model, &sample, &device);
            let free = decoded(&model, cell.model.layers, &sample, &device);
            let wanted = wanted(&sample);
            assert_eq!(forced == wanted, free == wanted, "{forced:?} {free:?} {wanted:?}");
            let first = |answer: &[u32]| answer.iter().zip(&wanted).position(|(a, b)| a != b);
            assert_eq!(first(&forced), first(&free), "the first mistake is the same");
            exact += usize::from(free == wanted);
            seen.parted += usize::from(forced != free);
        }
        let request = EvalRequest {
            split,
            len: *len,
            samples: SAMPLES,
            batch_size: 8,
            seed: cell.eval.seed,
            train_len: cell.train.len,
            slices: false,
        };
        let evaluated = evaluate(&model, id, task, request, &device).unwrap();
        let share = exact as f64 / SAMPLES as f64;
        assert!((evaluated.exact_match - share).abs() < 1e-12, "{} {share}", evaluated.exact_match);
        seen.right += exact;
        seen.wrong += SAMPLES - exact;
    }
    seen
}

/// Holds a task under encodings; `parts` says whether answers are long enough to go different ways after
/// a mistake.
fn hold(encodings: &[&str], task: &Value, len: usize, steps: usize, lens: &[usize], parts: bool) {
    let mut parted = 0;
    for encoding in encodings {
        let cell = cell(encoding, task, len, steps, lens);
        let task = cell.task.build().unwrap();
        let seen = compare(&cell, &*task);
        assert!(
            seen.right > 0 && seen.wrong > 0,
            "{encoding}: a model that is partly right is needed"
        );
        parted += seen.parted;
    }
    // Else decoding would be teacher forcing under another name.
    assert_eq!(parted > 0, parts);
}

#[test]
fn where_the_answer_ends_the_sequence() {
    hold(&ENCODINGS, &json!({ "kind": "copy", "letters": 4 }), 5, 250, &[1, 3, 5, 8], true);
    hold(&ENCODINGS[1..3], &json!({ "kind": "sort", "letters": 3 }), 5, 200, &[1, 3, 5, 8], true);
}

#[test]
fn where_the_answer_is_one_token() {
    hold(&ENCODINGS, &json!({ "kind": "counting" }), 24, 150, &[24, 48], false);
}

#[test]
fn where_answers_stand_between_what_is_given() {
    hold(&ENCODINGS, &json!({ "kind": "flip-flop" }), 16, 120, &[16, 32], true);
    hold(
        &ENCODINGS[..2],
        &json!({ "kind": "mqar", "pairs": 2, "vocab": 12 }),
        12,
        200,
        &[12, 24],
        true,
    );
}

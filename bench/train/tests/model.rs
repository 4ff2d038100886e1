//! Tests of the decoder: sizes, decoding with a cache, reproducibility, learning.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};
use pe_zoo::attention::{AttentionKind, Engine, Weights};
use pe_zoo::model::{
    ActivationKind, Cache, Decoder, Dropout, Init, ModelConfig, NormKind, NormPlace, QkNormKind,
};
use pe_zoo::ops::MatmulPrecision;
use pe_zoo::testkit::close::{self, F32, F32_REORDERED, Tolerance, numbers};
use pe_zoo::testkit::{randomise, randomise_by};
use pe_zoo::{Combination, Positions};
use records::{RunRecord, Status};
use tasks::TaskConfig;
use train::experiment::{Decay, OptimizerConfig};
use train::experiment::{EvalConfig, Experiment, TrainConfig};
use train::run::{RunContext, RunHooks, execute, plan};
use train::streams::{Stream, stream};

const VOCABULARY: usize = 11;
const TOKENS: usize = 10;

fn decoder(model: &ModelConfig, encoding: &Combination, device: &Device) -> Decoder {
    Decoder::new(
        model,
        VOCABULARY,
        encoding,
        &model.dims(TOKENS, TOKENS),
        &mut stream(1, Stream::Model),
        &mut stream(1, Stream::Encoding),
        device,
    )
    .unwrap()
}

/// The recipes of the literature, at a size for tests.
fn recipes() -> Vec<(&'static str, ModelConfig)> {
    let small = ModelConfig { layers: 2, width: 24, heads: 3, ..ModelConfig::default() };
    let llama = ModelConfig {
        kv_heads: Some(1),
        norm: NormKind::RmsNorm,
        norm_epsilon: Some(1e-3),
        activation: ActivationKind::SwiGlu,
        feed_forward_width: Some(40),
        bias: false,
        init: Init::Normal002,
        ..small.clone()
    };
    vec![
        ("flip-flop", small.clone()),
        (
            "cope-counting",
            ModelConfig {
                norm_place: NormPlace::Post,
                tied_head: true,
                dropout: 0.1,
                ..small.clone()
            },
        ),
        (
            "gpt2",
            ModelConfig {
                activation: ActivationKind::Gelu,
                tied_head: true,
                init: Init::Gpt2,
                ..small
            },
        ),
        ("qwen3", ModelConfig { qk_norm: QkNormKind::Head, ..llama.clone() }),
        (
            "gated",
            ModelConfig {
                qk_norm: QkNormKind::Width,
                output_gate: true,
                bias: true,
                ..llama.clone()
            },
        ),
        (
            "olmo2",
            ModelConfig {
                norm_place: NormPlace::Output,
                qk_norm: QkNormKind::Width,
                ..llama.clone()
            },
        ),
        (
            "gemma2",
            ModelConfig {
                // The heads have more channels than the width.
                head_dim: Some(12),
                norm_place: NormPlace::Both,
                activation: ActivationKind::GeGlu,
                tied_head: true,
                scaled_embedding: true,
                head_cap: Some(30.0),
                ..llama.clone()
            },
        ),
        ("llama", llama),
    ]
}

fn tokens(device: &Device) -> Tensor<2, Int> {
    let values =
        (0..2 * TOKENS).map(|n| (n * n * 7 + n) as i32 % VOCABULARY as i32).collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(values, [2, TOKENS]), device)
}

#[test]
fn parameters_are_known_before_a_model_is_built() {
    let device = Device::flex();
    for (name, model) in recipes() {
        for meta in pe_zoo::Registry::builtin().cards() {
            let encoding = Combination::parse(meta.id).unwrap();
            let expected = model.param_count(VOCABULARY)
                + encoding.param_count(&model.dims(TOKENS, TOKENS)).unwrap();
            let built = decoder(&model, &encoding, &device).num_params();
            assert_eq!(built, expected, "{name} with {}", meta.id);
        }
    }
}

#[test]
fn decoding_with_a_cache_equals_the_full_pass() {
    let device = Device::flex();
    for (name, model) in recipes() {
        for meta in pe_zoo::Registry::builtin().cards() {
            let encoding = Combination::parse(meta.id).unwrap();
            let model = randomise(decoder(&model, &encoding, &device), 5);
            let full = model.forward(
                tokens(&device),
                &Positions::contiguous(0, TOKENS),
                None,
                Dropout::off(),
                Weights::Drop,
            );
            for step in [1, 3] {
                let mut cache = Cache::new(2);
                let parts = (0..TOKENS).step_by(step).map(|start| {
                    let end = (start + step).min(TOKENS);
                    assert_eq!(cache.len(), start);
                    let at = Positions::contiguous(start, end - start);
                    let part = tokens(&device).slice_dim(1, start..end);
                    model.forward(part, &at, Some(&mut cache), Dropout::off(), Weights::Drop).hidden
                });
                let decoded = numbers(Tensor::cat(parts.collect(), 1));
                close::compare(&decoded, &numbers(full.hidden.clone()), F32_REORDERED)
                    .unwrap_or_else(|e| panic!("{name}, {}, {step} at a time: {e}", meta.id));
            }
        }
    }
}

/// Gradients of all parameters, in their order; `None` for a parameter without one.
struct ParamGrads<'a>(&'a Gradients, Vec<Option<Vec<f64>>>);

impl ModuleVisitor for ParamGrads<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.1.push(param.val().grad(self.0).map(numbers));
    }
}

#[test]
fn the_last_block_needs_only_the_chosen_rows() {
    let device = Device::flex().autodiff();
    let chosen = [3, 9, 10, 11, 19];
    let rows = Tensor::<1, Int>::from_ints(chosen, &device);
    let at = Positions::contiguous(0, TOKENS);
    for (name, config) in recipes() {
        for meta in pe_zoo::Registry::builtin().cards() {
            let encoding = Combination::parse(meta.id).unwrap();
            // Larger weights make TAPE's gradients so sensitive that the order of sums shows in the fourth digit.
            let model = randomise_by(0.2, decoder(&config, &encoding, &device), 5);
            let full = || {
                let pass = model.forward(tokens(&device), &at, None, Dropout::off(), Weights::Drop);
                pass.hidden.reshape([2 * TOKENS, config.width]).select(0, rows.clone())
            };
            let few = || model.hidden_of(tokens(&device), &rows, &at, Dropout::off());
            close::compare(&numbers(few()), &numbers(full()), F32_REORDERED)
                .map_err(|error| format!("{name} with {}: {error}", meta.id))
                .unwrap();
            let grads = |hidden: Tensor<2>| {
                let grads = hidden.clone().mul(hidden).sum().backward();
                let mut seen = ParamGrads(&grads, Vec::new());
                model.visit(&mut seen);
                seen.1
            };
            let (found, expected) = (grads(few()), grads(full()));
            let present =
                |all: &[Option<Vec<f64>>]| all.iter().map(Option::is_some).collect::<Vec<_>>();
            assert_eq!(present(&found), present(&expected), "{name} with {}", meta.id);
            let flat = |all: Vec<Option<Vec<f64>>>| {
                all.into_iter().flatten().flatten().collect::<Vec<_>>()
            };
            let (found, expected) = (flat(found), flat(expected));
            let largest = expected.iter().fold(1.0_f64, |most, x| most.max(x.abs()));
            let tolerance = Tolerance { absolute: largest * F32.absolute, ..F32 };
            close::compare(&found, &expected, tolerance)
                .map_err(|error| format!("{name} with {}: {error}", meta.id))
                .unwrap();
        }
    }
    // Masks of dropout are drawn for every row, so that the random numbers of later batches stay the same.
    let config = ModelConfig { layers: 1, width: 8, heads: 1, ..ModelConfig::default() };
    let model = decoder(&config, &Combination::parse("nope").unwrap(), &device);
    let mut rng = stream(1, Stream::Dropout);
    let mut others = stream(1, Stream::Dropout);
    let dropout = Dropout { rate: 0.5, rng: Some(&mut rng) };
    let some = model.hidden_of(tokens(&device), &rows, &at, dropout);
    let dropout = Dropout { rate: 0.5, rng: Some(&mut others) };
    let all = model.forward(tokens(&device), &at, None, dropout, Weights::Drop).hidden;
    assert_eq!(numbers(some), numbers(all.reshape([2 * TOKENS, 8]).select(0, rows)));
    assert_eq!(rng, others);
}

#[test]
fn attention_weights_are_returned_per_layer_and_sum_to_one() {
    let device = Device::flex();
    let encoding = Combination::parse("cope").unwrap();
    let model = decoder(&ModelConfig { width: 24, ..ModelConfig::default() }, &encoding, &device);
    let at = Positions::contiguous(0, TOKENS);
    let pass = model.forward(tokens(&device), &at, None, Dropout::off(), Weights::Return);
    assert_eq!(pass.weights.len(), 2);
    for map in pass.weights {
        let sums = numbers(map.sum_dim(3));
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-5), "{sums:?}");
    }
}

#[test]
fn tape_starts_as_rope_and_its_feed_forward_update_reaches_the_next_layer() {
    let device = Device::flex();
    let hidden = |model: &Decoder| {
        let at = Positions::contiguous(0, TOKENS);
        let pass = model.forward(tokens(&device), &at, None, Dropout::off(), Weights::Drop);
        numbers(pass.hidden)
    };
    for (name, model) in recipes() {
        let rope = decoder(&model, &Combination::parse("rope").unwrap(), &device);
        let serde_json::Value::Object(feed_forward_only) =
            serde_json::json!({ "attention_update": "none" })
        else {
            unreachable!()
        };
        let tape =
            pe_zoo::Registry::builtin().parse_with_settings("tape", feed_forward_only).unwrap();
        let mut tape = decoder(&model, &tape, &device);
        close::compare(&hidden(&tape), &hidden(&rope), F32_REORDERED)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        // Large, since some recipes start with feed-forward parts that give next to nothing.
        tape.encoding = randomise_by(20.0, tape.encoding, 3);
        assert!(close::compare(&hidden(&tape), &hidden(&rope), F32_REORDERED).is_err(), "{name}");
    }
}

/// The product with the embedding, which is the head too, is rounded as all others are.
#[test]
fn a_tied_head_has_the_chosen_precision() {
    let device = Device::flex();
    if !MatmulPrecision::Bf16.available(&device) {
        return;
    }
    let model = ModelConfig { width: 24, tied_head: true, ..ModelConfig::default() };
    let mut decoder = decoder(&model, &Combination::parse("nope").unwrap(), &device);
    let values = (0..3 * 24).map(|n| (0.7 * f64::from(n)).sin() as f32).collect::<Vec<_>>();
    let hidden = Tensor::<2>::from_data(TensorData::new(values, [3, 24]), &device);
    let exact = numbers(decoder.logits(hidden.clone()));
    decoder.precision = MatmulPrecision::Bf16;
    let rounded = numbers(decoder.logits(hidden));
    assert_ne!(rounded, exact, "nothing was rounded");
    close::compare(&rounded, &exact, Tolerance { absolute: 5e-2, relative: 5e-2 }).unwrap();
}

#[test]
fn hard_attention_looks_at_one_token_decodes_and_learns() {
    let device = Device::flex();
    let model = ModelConfig { width: 24, attention: AttentionKind::Hard, ..ModelConfig::default() };
    let decoder = decoder(&model, &Combination::parse("learned-absolute").unwrap(), &device);
    let at = Positions::contiguous(0, TOKENS);
    let full = decoder.forward(tokens(&device), &at, None, Dropout::off(), Weights::Return);
    for map in full.weights {
        let weights = numbers(map);
        assert!(weights.iter().all(|w| [0.0, 1.0].contains(w)));
        assert!(weights.chunks(TOKENS).all(|row| row.iter().filter(|w| **w > 0.0).count() == 1));
    }
    let mut cache = Cache::new(2);
    let parts = (0..TOKENS).map(|start| {
        let at = Positions::contiguous(start, 1);
        let part = tokens(&device).slice_dim(1, start..start + 1);
        decoder.forward(part, &at, Some(&mut cache), Dropout::off(), Weights::Drop).hidden
    });
    let decoded = numbers(Tensor::cat(parts.collect(), 1));
    close::compare(&decoded, &numbers(full.hidden), F32_REORDERED).unwrap();

    let mut cell = cell("learned-absolute", "flip-flop", 0);
    cell.model.attention = AttentionKind::Hard;
    let record = record(&cell);
    let curve = &record.train.curve;
    assert_eq!(record.status, Status::Done);
    assert!(curve[curve.len() - 1].loss < curve[0].loss, "{curve:?}");
}

fn cell(encoding: &str, task: &str, seed: u64) -> Experiment {
    let task = TaskConfig::from_id(task).unwrap();
    let built = task.build().unwrap();
    let len = [16, 24].into_iter().find(|len| built.check_len(*len).is_ok()).unwrap();
    Experiment {
        workload: built.meta().id.to_owned(),
        name: encoding.to_owned(),
        encoding: Combination::parse(encoding).unwrap(),
        task,
        model: ModelConfig { width: 32, dropout: 0.1, ..ModelConfig::default() },
        train: TrainConfig {
            validation: None,
            steps: 40,
            batch_size: 8,
            len,
            curve_points: 4,
            micro_batch_size: None,
            gradient_checkpointing: false,
            precision: MatmulPrecision::F32,
            // Fast, so that forty steps tell a vocabulary of thousands from the noise of samples.
            optimizer: OptimizerConfig {
                learning_rate: 1e-2,
                warmup_steps: 5,
                ..OptimizerConfig::default()
            },
        },
        eval: EvalConfig { lens: vec![len, 32], samples: 20, ..EvalConfig::default() },
        grid: None,
        budget: train::experiment::Budget::default(),
        seed,
        backend: "flex".to_owned(),
        engine: Engine::Fused,
    }
}

fn record(cell: &Experiment) -> RunRecord {
    let context = RunContext { suite: "test".to_owned(), suite_sha256: None, threads: 1, jobs: 1 };
    let task = cell.task.build().unwrap();
    execute(plan(cell, &*task, &context), RunHooks::new(&mut |_| {}))
}

/// What must repeat: everything but time and memory.
fn results(record: &RunRecord) -> Vec<f64> {
    let losses = record.train.curve.iter().map(|point| point.loss);
    let evals = record.evals.iter().flat_map(|e| [e.exact_match, e.token_accuracy, e.nll]);
    losses.chain(evals).collect()
}

#[test]
fn the_same_seed_gives_the_same_bits_and_another_seed_does_not() {
    let first = record(&cell("cope", "flip-flop", 3));
    assert_eq!(first.status, Status::Done);
    assert_eq!(results(&first), results(&record(&cell("cope", "flip-flop", 3))));
    assert_ne!(results(&first), results(&record(&cell("cope", "flip-flop", 4))));
}

#[test]
fn every_encoding_learns_every_task_that_needs_no_network() {
    for meta in pe_zoo::Registry::builtin().cards() {
        for task in tasks::ALL.iter().filter(|task| !task.takes_path) {
            let record = record(&cell(meta.id, task.id, 0));
            assert_eq!(record.status, Status::Done, "{} on {}", meta.id, task.id);
            let curve = &record.train.curve;
            assert!(
                curve[curve.len() - 1].loss < curve[0].loss,
                "{} on {}: {curve:?}",
                meta.id,
                task.id
            );
            assert_eq!(
                record.evals.len(),
                2 * TaskConfig::from_id(task.id).unwrap().build().unwrap().splits().len()
            );
        }
    }
}

#[test]
fn a_loss_that_leaves_the_numbers_is_recorded_as_diverged() {
    let mut cell = cell("nope", "flip-flop", 0);
    cell.train.optimizer = OptimizerConfig {
        learning_rate: 1e30,
        warmup_steps: 0,
        decay: Decay::Constant,
        clip_norm: None,
        ..OptimizerConfig::default()
    };
    let record = record(&cell);
    assert!(matches!(record.status, Status::Diverged { .. }), "{:?}", record.status);
}

#[test]
fn a_model_that_the_last_update_ruins_is_recorded_as_diverged() {
    // With 1e30 the weights are finite and the logits are not; with 1e39 the weights are infinite.
    for rate in [1e30, 1e39] {
        for encoding in ["nope", "rope", "alibi", "learned-absolute"] {
            let mut cell = cell(encoding, "flip-flop", 0);
            cell.train.steps = 1;
            cell.train.optimizer = OptimizerConfig {
                learning_rate: rate,
                warmup_steps: 0,
                decay: Decay::Constant,
                ..OptimizerConfig::default()
            };
            let record = record(&cell);
            assert!(
                matches!(&record.status, Status::Diverged { step: 0, reason } if reason.contains("last update")),
                "{encoding}: {:?}",
                record.status
            );
            assert!(record.evals.is_empty() && record.train.curve[0].loss.is_finite());
        }
    }
}

#[test]
fn all_encodings_of_a_seed_meet_the_same_model_and_data() {
    // CoPE's table starts at zero: its first step is NoPE's, number for number.
    let one_step = |id: &str| {
        let mut cell = cell(id, "flip-flop", 0);
        cell.train.curve_points = 40;
        record(&cell).train.curve[0].loss
    };
    let (nope, cope) = (one_step("nope"), one_step("cope"));
    assert!((nope - cope).abs() < 1e-6, "{nope} {cope}");
}

#[test]
fn what_cannot_work_is_refused_by_name_before_training() {
    let refused = |change: &dyn Fn(&mut Experiment), expected: &str| {
        let mut cell = cell("rope", "flip-flop", 0);
        change(&mut cell);
        let task = cell.task.build().unwrap();
        let error = cell.check(&*task).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(&|c| c.model.heads = 5, "model.heads is 5");
    refused(&|c| (c.model.width, c.model.heads) = (30, 2), "model.head_dim is 15");
    refused(&|c| c.train.len = 0, "len is 0");
    refused(&|c| c.train.steps = 0, "train.steps is 0");
    refused(&|c| c.eval.splits = Some(vec!["sparce".to_owned()]), "sparse");
    refused(&|c| c.eval.splits = Some(Vec::new()), "eval.splits is [], expected at least one");
    refused(
        &|c| c.eval.splits = Some(vec!["dense".to_owned(); 2]),
        "eval.splits is [\"dense\", \"dense\"], expected each value once, but \"dense\" is repeated",
    );
    refused(
        &|c| c.eval.lens = vec![16, 8, 16],
        "eval.lens is [16, 8, 16], expected each value once, but 16 is repeated",
    );
    refused(
        &|c| {
            let serde_json::Value::Object(fields) = serde_json::json!({ "max_len": 8 }) else {
                unreachable!()
            };
            c.encoding = pe_zoo::Registry::builtin()
                .parse_with_settings("learned-absolute", fields)
                .unwrap();
        },
        "max_len is 8",
    );
}

#[test]
fn hard_attention_is_recorded_under_the_engine_that_ran_it() {
    let soft = cell("rope", "flip-flop", 1);
    let model = ModelConfig { attention: AttentionKind::Hard, ..soft.model.clone() };
    let hard = Experiment { model, ..soft.clone() };
    let task = soft.task.build().unwrap();
    assert_eq!((soft.attending(), hard.attending()), (Engine::Fused, Engine::Reference));
    assert_eq!(soft.config(&*task)["engine"], "fused");
    assert_eq!(hard.config(&*task)["engine"], "reference");
    let [soft, hard] = [record(&soft), record(&hard)];
    assert_eq!(hard.engine, "reference");
    assert_eq!(soft.score_form.as_deref(), Some("fused"));
    assert_eq!(hard.score_form.as_deref(), Some("reference"));
}

//! One run's complete configuration. Its key is a hash of all of it, so that a finished run is
//! found again and a changed one is not mistaken for it.

use burn::tensor::Device;
use pe_zoo::attention::{AttentionKind, Engine};
use pe_zoo::ops::MatmulPrecision;
use pe_zoo::{EncodingConfig, PeError};
use reports::GridPoint;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tasks::TaskConfig;

use crate::model::{MOST_STEP_OPERATIONS, ModelConfig, ModelError};
use crate::optimizer::OptimizerConfig;
use crate::sweep::Budget;

/// Most steps of a training.
const MOST_STEPS: usize = 1_000_000_000;

/// Most sequences of a batch or an evaluation.
const MOST_SEQUENCES: usize = 1 << 24;

/// Most tokens of an evaluation.
const MOST_EVAL_TOKENS: usize = 1 << 40;

/// How a model is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Optimizer steps.
    pub steps: usize,
    /// Sequences per step.
    pub batch_size: usize,
    /// Length of training sequences, in the task's unit.
    pub len: usize,
    /// Points of the training curve.
    pub curve_points: usize,
    /// Sequences that go through the model at once; gradients are summed over a step, so this changes memory and
    /// time, and results by rounding only (encodings that draw positions at random draw them anew each time). `None`:
    /// all of a step. Like the two below not written where it is not set, so that the keys of records from before
    /// there was a choice stay valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_batch_size: Option<usize>,
    /// Activations that are cheap to make are made again on the way back instead of being kept; less memory, more
    /// time, the same results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gradient_checkpointing: bool,
    /// Optimizer and learning rate.
    pub optimizer: OptimizerConfig,
    /// Looks at the model on the way; `None`: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<ValidationConfig>,
    /// How wide the factors of linear maps are. Not written where they are f32, for the same reason.
    #[serde(skip_serializing_if = "is_f32")]
    pub precision: MatmulPrecision,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_f32(precision: &MatmulPrecision) -> bool {
    *precision == MatmulPrecision::F32
}

impl TrainConfig {
    /// Sequences that go through the model at once.
    pub fn at_once(&self) -> usize {
        self.micro_batch_size.unwrap_or(self.batch_size)
    }

    /// The device to train on.
    pub fn autodiff(&self, device: Device) -> Device {
        let device = device.autodiff();
        if self.gradient_checkpointing { device.gradient_checkpointing() } else { device }
    }
}

/// Looks at a model in the course of training: the task's first split at the training length, on
/// samples that neither training nor the final evaluation sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValidationConfig {
    /// Steps between two looks; `None`: only after the last step.
    pub every_steps: Option<usize>,
    /// Sequences of each look.
    pub samples: usize,
    /// Seed of these sequences; it must not be `eval.seed`.
    pub seed: u64,
    /// Training counts as solved with an exact match of at least this ...
    pub solved_exact_match: f64,
    /// ... in so many looks in a row.
    pub solved_checks: usize,
    /// Ends training early once it is solved; `None`: all steps are taken.
    pub stop: Option<EarlyStop>,
}

/// The end of a training that is solved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EarlyStop {
    /// Steps in which the learning rate falls to 0 in a straight line from where its schedule has it.
    pub cooldown_steps: usize,
}

impl Default for ValidationConfig {
    fn default() -> Self {
        Self {
            every_steps: None,
            samples: 64,
            seed: 2_000_003,
            solved_exact_match: 0.99,
            solved_checks: 2,
            stop: None,
        }
    }
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            steps: 1000,
            batch_size: 32,
            len: 64,
            curve_points: 50,
            micro_batch_size: None,
            gradient_checkpointing: false,
            optimizer: OptimizerConfig::default(),
            validation: None,
            precision: MatmulPrecision::F32,
        }
    }
}

/// How a model is evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalConfig {
    /// Lengths, in the task's unit; empty: the training length.
    pub lens: Vec<usize>,
    /// Splits of the task; `None`: all.
    pub splits: Option<Vec<String>>,
    /// Sequences per split and length, at most.
    pub samples: usize,
    /// Tokens per split and length, at most: longer sequences are fewer, so that each length is asked about as much
    /// (at least one sequence). `None`: no limit but `samples`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// Sequences per pass; it changes time and memory, not results.
    pub batch_size: usize,
    /// Seed of the evaluation data: the same for all cells, so that all answer the same questions.
    pub seed: u64,
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self {
            lens: Vec::new(),
            splits: None,
            samples: 500,
            tokens: None,
            batch_size: 32,
            seed: 1_000_003,
        }
    }
}

impl EvalConfig {
    /// The lengths, with the default put in.
    pub fn lens_or<'a>(&'a self, train_len: &'a usize) -> &'a [usize] {
        if self.lens.is_empty() { std::slice::from_ref(train_len) } else { &self.lens }
    }

    /// Sequences that are evaluated at a length: no more than asked for, and than the task has.
    pub fn samples_at(&self, task: &dyn tasks::Task, len: usize) -> usize {
        let input = task.max_tokens(len).saturating_sub(1).max(1);
        let by_tokens = self.tokens.map_or(usize::MAX, |tokens| (tokens / input).max(1));
        let there_are = task.max_eval_samples(len).unwrap_or(usize::MAX);
        self.samples.min(by_tokens).min(there_are)
    }
}

/// One run: an encoding on a task at a seed.
#[derive(Debug, Clone)]
pub struct Cell<C> {
    /// Name of the workload (task and sizes) within its suite.
    pub workload: String,
    /// Name of the encoding within its suite; its canonical text unless the suite gives one.
    pub name: String,
    /// The encoding's settings.
    pub encoding: C,
    /// The task's settings.
    pub task: TaskConfig,
    /// The model.
    pub model: ModelConfig,
    /// Training.
    pub train: TrainConfig,
    /// Evaluation.
    pub eval: EvalConfig,
    /// Which point of the suite's grid it is; a name, and no part of what is run.
    pub grid: Option<GridPoint>,
    /// What it may take of time and memory; no part of what is run.
    pub budget: Budget,
    /// Seed of weights, data and dropout.
    pub seed: u64,
    /// Name of the backend.
    pub backend: String,
    /// The attention engine.
    pub engine: Engine,
}

/// A cell that is refused before anything is trained.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// The encoding refuses the sizes.
    #[error(transparent)]
    Encoding(#[from] PeError),
    /// The model cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The task refuses its settings or a length.
    #[error(transparent)]
    Task(#[from] tasks::TaskError),
    /// A number under `[train]` or `[eval]` that cannot be used.
    #[error("{field} is {value}, expected {expected}; change it in the suite")]
    Number {
        /// The field, with its section.
        field: &'static str,
        /// Its value.
        value: String,
        /// What would be accepted.
        expected: String,
    },
}

impl<C: EncodingConfig> Cell<C> {
    /// The complete configuration, defaults included; what [`key`](Self::key) is a
    /// hash of.
    pub fn config(&self, task: &dyn tasks::Task) -> Value {
        json!({
            "encoding": self.encoding.identity(),
            "task": self.task,
            "task_version": task.meta().version,
            "task_data_sha256": task.data_sha256(),
            "model": self.model,
            "train": self.train,
            "eval": self.eval,
            "seed": self.seed,
            "backend": self.backend,
            "engine": self.attending(),
        })
    }

    /// The engine that does the work: hard attention is the reference engine's alone.
    pub fn attending(&self) -> Engine {
        match self.model.attention {
            AttentionKind::Soft => self.engine,
            AttentionKind::Hard => Engine::Reference,
        }
    }

    /// Sixteen hexadecimal digits that stand for the complete configuration.
    pub fn key(&self, task: &dyn tasks::Task) -> String {
        reports::cell_key(&self.config(task))
    }

    /// Refuses what cannot work, before anything is trained.
    ///
    /// # Errors
    /// [`CellError`], the field named.
    pub fn check(&self, task: &dyn tasks::Task) -> Result<(), CellError> {
        self.model.check()?;
        for (field, value, most) in [
            ("train.steps", self.train.steps, MOST_STEPS),
            ("train.batch_size", self.train.batch_size, MOST_SEQUENCES),
            ("train.curve_points", self.train.curve_points, MOST_STEPS),
            (
                "train.micro_batch_size",
                self.train.micro_batch_size.unwrap_or(self.train.batch_size),
                self.train.batch_size.min(MOST_SEQUENCES),
            ),
            ("eval.samples", self.eval.samples, MOST_SEQUENCES),
            ("eval.tokens", self.eval.tokens.unwrap_or(1), MOST_EVAL_TOKENS),
            ("eval.batch_size", self.eval.batch_size, MOST_SEQUENCES),
        ] {
            if value == 0 || value > most {
                let expected = format!("1 to {most}");
                return Err(CellError::Number { field, value: value.to_string(), expected });
            }
        }
        self.train.optimizer.check()?;
        self.check_validation()?;
        task.check_len(self.train.len)?;
        for len in self.eval.lens_or(&self.train.len) {
            task.check_len(*len)?;
        }
        self.check_operations(task)?;
        for split in self.eval.splits.iter().flatten() {
            // Refuses an unknown split, with the nearest name.
            task.eval_set(split, self.train.len, 1, 0)?;
        }
        self.encoding.check(&self.dims(task))?;
        Ok(())
    }

    /// Refuses what cannot be counted, and so could not be trained in any time.
    fn check_operations(&self, task: &dyn tasks::Task) -> Result<(), CellError> {
        let [tokens, longest] = self.token_lens(task);
        for (field, batch_size, len) in [
            ("train.batch_size", self.train.at_once(), tokens),
            ("eval.batch_size", self.eval.batch_size, longest),
        ] {
            let operations = self.model.step_operations(task.vocab_size(), len, batch_size);
            if operations > MOST_STEP_OPERATIONS {
                let expected = format!(
                    "a batch of at most {MOST_STEP_OPERATIONS:e} operations, and this one of {len} tokens \
                     each has about {operations:.0e}; or a smaller model"
                );
                return Err(CellError::Number { field, value: batch_size.to_string(), expected });
            }
        }
        Ok(())
    }

    fn check_validation(&self) -> Result<(), CellError> {
        let Some(validation) = &self.train.validation else { return Ok(()) };
        let limit = validation.solved_exact_match;
        let checks = [
            (
                "train.validation.every_steps",
                validation.every_steps.unwrap_or(1).to_string(),
                validation.every_steps != Some(0),
                "at least 1, or left out",
            ),
            (
                "train.validation.samples",
                validation.samples.to_string(),
                (1..=MOST_SEQUENCES).contains(&validation.samples),
                "1 to 16777216",
            ),
            (
                "train.validation.stop.cooldown_steps",
                validation.stop.as_ref().map_or(0, |stop| stop.cooldown_steps).to_string(),
                validation.stop.as_ref().is_none_or(|stop| stop.cooldown_steps <= MOST_STEPS),
                "at most 1000000000",
            ),
            (
                "train.validation.solved_checks",
                validation.solved_checks.to_string(),
                validation.solved_checks > 0,
                "at least 1",
            ),
            (
                "train.validation.solved_exact_match",
                limit.to_string(),
                limit > 0.0 && limit <= 1.0,
                "a share above 0, at most 1",
            ),
            (
                "train.validation.seed",
                validation.seed.to_string(),
                validation.seed != self.eval.seed,
                "a seed other than eval.seed, whose samples are for the final evaluation alone",
            ),
        ];
        match checks.into_iter().find(|(_, _, fine, _)| !fine) {
            None => Ok(()),
            Some((field, value, _, expected)) => {
                Err(CellError::Number { field, value, expected: expected.to_owned() })
            }
        }
    }

    /// The sizes that the encoding is built for.
    pub fn dims(&self, task: &dyn tasks::Task) -> pe_zoo::Dims {
        let [train_len, max_len] = self.token_lens(task);
        self.model.dims(train_len, max_len)
    }

    /// Longest input in tokens, in training and ever.
    pub fn token_lens(&self, task: &dyn tasks::Task) -> [usize; 2] {
        let input = |len: usize| task.max_tokens(len).saturating_sub(1);
        let train = task.max_train_tokens(self.train.len).saturating_sub(1);
        let longest = self.eval.lens_or(&self.train.len).iter().map(|len| input(*len)).max();
        [train, longest.unwrap_or(train).max(train)]
    }
}

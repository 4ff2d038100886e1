//! The run record: the result of one cell (encoding x task x sizes x seed).
//!
//! Units are part of the field names or documented at the fields. A quantity that was not measured is `None`, never
//! 0. For numbers that are not finite see [`RunRecord`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::eval::{EvalPoint, GateScore, SkippedEval};
use super::json_float;
use super::train::{KeptWeights, TrainSummary};

/// Schema that this crate writes, and the newest one that it reads.
pub const SCHEMA: u32 = 5;

/// Complete result of one cell, stored as one JSON file `cells/<key>.json`.
///
/// Numbers are written with 15 significant digits. NaN and infinities are written as `null`, which is read as NaN for
/// a plain `f64` and as `None` for an `Option<f64>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Version of the file layout; see [`SCHEMA`].
    pub schema: u32,
    /// Key of the cell, 16 lower-case hex digits: [`crate::store::cell_key`] of its complete configuration.
    pub key: String,
    /// Name of the suite.
    pub suite: String,
    /// SHA-256 of the text of the suite, 64 lower-case hex digits; `None` in records of schema 2 and before, and for cells
    /// without a suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite_sha256: Option<String>,
    /// Display name of the workload (a task at one size) in the suite, for example `flip-flop`.
    pub workload: String,
    /// Position encoding of the model.
    pub encoding: EncodingInfo,
    /// Task of the cell.
    pub task: TaskInfo,
    /// Complete configuration of the cell, including defaults.
    pub config: Value,
    /// Seed of initialisation and data.
    pub seed: u64,
    /// Position in a grid; absent if the suite has no grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<GridPoint>,
    /// Status of the cell.
    pub status: Status,
    /// Sequence length in training, in `task.len_unit`.
    pub train_len: u64,
    /// Numbers of parameters of the model.
    pub params: ParamCount,
    /// Analytic floating-point operations of training and inference.
    pub flops: FlopCount,
    /// Allocations of one training step; `None` if not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_allocations: Option<Allocations>,
    /// Instructions of one training step, those of the operating system excluded; `None` if not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_instructions: Option<u64>,
    /// Cost and course of training.
    pub train: TrainSummary,
    /// Evaluations, one per split and length.
    pub evals: Vec<EvalPoint>,
    /// Evaluations that the suite requests and that were not possible.
    pub skipped_evals: Vec<SkippedEval>,
    /// Agreement of gates with the counted tokens, by layer and head; empty if the encoding has no gates or the task
    /// counts no tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateScore>,
    /// Peak memory in bytes of the device that computed; `None` if not measured. Records of GPU cells without
    /// [`device`](Self::device), which older programs wrote, have the memory of the process here.
    pub peak_bytes: Option<u64>,
    /// Peak memory of the process in bytes, if the device is not the processor; not written otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_peak_bytes: Option<u64>,
    /// The device that computed, if it is not the processor; not written otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceInfo>,
    /// Machine that the cell ran on.
    pub host: Host,
    /// Tensor backend, for example `flex`.
    pub backend: String,
    /// Attention engine, for example `reference`.
    pub engine: String,
    /// The form in which the engine evaluates the logits: `fused`, `dense` (a part is a tensor of size T x S) or
    /// `reference`; not written by older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_form: Option<String>,
    /// Number format of training, for example `f32`.
    pub precision: String,
    /// Commit of the source; `None` if unknown.
    pub commit: Option<String>,
    /// Whether the source had uncommitted changes; `None` if unknown.
    pub dirty: Option<bool>,
    /// Versions of the programs and libraries that affect the numbers, by name.
    pub versions: BTreeMap<String, String>,
    /// Start time of the cell, RFC 3339, UTC.
    pub started_utc: String,
    /// Kept weights that were evaluated; `None` if they were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<KeptWeights>,
    /// Program that made the evaluations from kept weights; `None`: the one that trained, which the fields above
    /// describe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluated_by: Option<Program>,
}

/// Point of a grid that is the same for all encodings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridPoint {
    /// Path into the cell's configuration of the setting that varies, for example `train.optimizer.learning_rate`.
    pub axis: String,
    /// Value of the setting in this cell.
    #[serde(with = "json_float")]
    pub value: f64,
    /// Whether it is the value of the suite without a grid.
    pub default: bool,
    /// Whether the cell's seed had no part in choosing the value: results at the chosen value are those of such seeds,
    /// if there are any. Not written if it had.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
}

impl GridPoint {
    /// Workload of a cell with the value of the setting that varies, if one does: `copy learning_rate=0.003`.
    pub fn label(point: Option<&Self>, workload: &str) -> String {
        let setting = |point: &Self| {
            let name = point.axis.rsplit('.').next().unwrap_or_default();
            format!("{workload} {name}={}", point.value)
        };
        point.map_or_else(|| workload.to_owned(), setting)
    }
}

/// Status of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Status {
    /// The cell was trained and evaluated to the end.
    Done,
    /// Loss or weights became infinite or NaN during training; a final result of the encoding.
    Diverged {
        /// Step at which the divergence was detected.
        step: u64,
        /// Reason, for example a loss that is NaN.
        reason: String,
    },
    /// The run exceeded its time budget; it is not repeated unless requested.
    TimedOut {
        /// Budget and progress made.
        reason: String,
    },
    /// The run exceeded its memory budget or the memory of the machine; it is not repeated unless requested.
    OutOfMemory {
        /// Budget and memory used.
        reason: String,
    },
    /// The run failed with an error; it is repeated if requested.
    Failed {
        /// Description of the failure.
        reason: String,
    },
    /// The run was stopped by the user; the next sweep resumes it.
    Interrupted,
}

impl Status {
    /// Returns the name of the status in JSON and in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Diverged { .. } => "diverged",
            Self::TimedOut { .. } => "timed-out",
            Self::OutOfMemory { .. } => "out-of-memory",
            Self::Failed { .. } => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns the reason why the cell did not finish; empty for [`Status::Done`].
    pub fn reason(&self) -> String {
        match self {
            Self::Done => String::new(),
            Self::Diverged { step, reason } => format!("at step {step}: {reason}"),
            Self::TimedOut { reason } | Self::OutOfMemory { reason } | Self::Failed { reason } => {
                reason.clone()
            }
            Self::Interrupted => "stopped before its end; run the suite again".to_owned(),
        }
    }
}

/// Encoding of a cell with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncodingInfo {
    /// Registry id, for example `rope`.
    pub id: String,
    /// Expression of the encoding, unique in a suite: `rope`, `rope(linear)`.
    pub name: String,
    /// Display name, for example `RoPE`.
    pub label: String,
    /// Complete settings, including defaults.
    pub config: Value,
}

/// Task of a cell with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskInfo {
    /// Registry id, for example `flip-flop`.
    pub id: String,
    /// Display name of the task.
    pub label: String,
    /// Version of the generator; results of different versions are not comparable.
    pub version: u32,
    /// Metric that ranks encodings: `exact-match` or `perplexity`.
    pub headline: String,
    /// Unit of lengths, for example `tokens`.
    pub len_unit: String,
    /// Headline metric of guessing, if it is known.
    #[serde(with = "json_float::option")]
    pub chance: Option<f64>,
    /// Complete settings, including defaults.
    pub config: Value,
}

/// Numbers of learned parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamCount {
    /// Number of parameters of the whole model.
    pub total: u64,
    /// Number of parameters of the encoding, over all layers.
    pub encoding: u64,
}

/// Analytic floating-point operations (a multiply-add counts as two).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlopCount {
    /// Operations of a training step: forward and backward pass of the whole batch.
    pub train_step: u64,
    /// Operations per token of a forward pass at the training length.
    pub forward_per_token: u64,
}

/// Number and size of memory allocations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allocations {
    /// Number of allocations and reallocations.
    pub count: u64,
    /// Total size of these blocks in bytes.
    pub bytes: u64,
}

/// The GPU that a cell ran on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceInfo {
    /// Model name; the name of the backend if it does not report one.
    pub name: String,
    /// Version of its driver; `None` if unknown.
    pub driver: Option<String>,
    /// Memory of the device in bytes; `None` if unknown.
    pub memory_bytes: Option<u64>,
}

/// The machine that a cell ran on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Model name of the CPU.
    pub cpu: String,
    /// Logical CPUs that the process may use.
    pub logical_cpus: u64,
    /// Operating system of the machine.
    pub os: String,
    /// Number of threads given to the cell.
    pub threads: u64,
    /// Number of cells that ran at the same time.
    pub jobs: u64,
}

/// Program and machine that made a part of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Commit of the source; `None`: unknown.
    pub commit: Option<String>,
    /// Whether the source had uncommitted changes; `None` if unknown.
    pub dirty: Option<bool>,
    /// Versions of the programs and libraries that affect the numbers, by name.
    pub versions: BTreeMap<String, String>,
    /// Machine that it ran on.
    pub host: Host,
    /// Start time, RFC 3339, UTC.
    pub started_utc: String,
}

impl RunRecord {
    /// Reports whether the result is final: [`Status::Done`] or [`Status::Diverged`].
    pub fn is_finished(&self) -> bool {
        matches!(self.status, Status::Done | Status::Diverged { .. })
    }

    /// Returns the reason why the times of the cell are unreliable, for example `2 cells at a time`; `None` if no
    /// disturbance is known.
    pub fn disturbance(&self) -> Option<String> {
        let Host { jobs, threads, .. } = self.host;
        if jobs > 1 {
            return Some(format!("{jobs} cells at a time"));
        }
        // A load of half a process besides the cell's own threads is normal system activity.
        let threads = threads * self.train.data_parallel.unwrap_or(1);
        let load = self.train.machine_load.filter(|load| *load > threads as f64 + 0.5)?;
        Some(format!("a load of {load:.1} with {}", crate::number::count(threads, "thread")))
    }

    /// Returns the evaluation of a split at a length; `None` if there is none.
    pub fn eval(&self, split: &str, len: u64) -> Option<&EvalPoint> {
        self.evals.iter().find(|eval| eval.split == split && eval.len == len)
    }

    /// Start time of the last part and key: the order from oldest to newest.
    pub fn started(&self) -> (&str, &str) {
        let evaluated = self.evaluated_by.as_ref().map(|program| &program.started_utc);
        (evaluated.unwrap_or(&self.started_utc), &self.key)
    }
}

/// Maps each key to its newest record: the one started last, and among those started at the same time the one
/// with the greatest cell key.
pub fn newest_by<'a, K: Ord>(
    records: impl IntoIterator<Item = &'a RunRecord>,
    key: impl Fn(&'a RunRecord) -> K,
) -> BTreeMap<K, &'a RunRecord> {
    let mut newest: BTreeMap<K, &RunRecord> = BTreeMap::new();
    for record in records {
        let held = newest.entry(key(record)).or_insert(record);
        if record.started() > held.started() {
            *held = record;
        }
    }
    newest
}

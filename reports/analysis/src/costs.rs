//! Costs of encodings on a workload.

use std::collections::BTreeSet;

use polars::prelude::*;

use super::selection::{Selection, mean};
use crate::frame::rows;
use records::number::count;

/// Name of the encoding in the denominator of all cost ratios.
pub const YARDSTICK: &str = "rope";

rows! {
    /// Costs of an encoding on a workload: means over seeds of finished cells.
    #[derive(Debug, Clone, PartialEq)]
    pub struct EncodingCost {
        /// Name of the encoding.
        pub encoding: String,
        /// Parameters of the model.
        pub params_total: u64,
        /// Parameters of the encoding.
        pub params_encoding: u64,
        /// Analytic FLOPs of a training step.
        pub flops_train_step: u64,
        /// Analytic FLOPs of the whole training, which an early stop ends: mean over seeds.
        pub flops_training: Option<f64>,
        /// Ratio of its FLOPs of the whole training to those of `rope`.
        pub flops_training_ratio: Option<f64>,
        /// Seconds of the whole training without its validations: mean over seeds.
        pub training_seconds: Option<f64>,
        /// Ratio of its seconds of the whole training to those of `rope`, whatever disturbed either.
        pub training_ratio: Option<f64>,
        /// Analytic FLOPs of a forward pass at the trained length, for each token.
        pub flops_forward_per_token: u64,
        /// Allocations of a training step.
        pub step_allocations: Option<f64>,
        /// Bytes allocated in a training step.
        pub step_allocated_bytes: Option<f64>,
        /// Instructions of a training step.
        pub step_instructions: Option<f64>,
        /// Ratio of its FLOPs per training step to those of `rope`.
        pub flops_ratio: Option<f64>,
        /// Tokens per second in training.
        pub tokens_per_second: Option<f64>,
        /// Seconds of a step (mean over seeds of the median).
        pub step_seconds: Option<f64>,
        /// Whether the times of a cell were disturbed by concurrent cells or other load; see
        /// [`records::RunRecord::disturbance`].
        pub disturbed: bool,
        /// Whether the times of all cells are medians of enough steps on a machine that is known to have been undisturbed.
        pub sound_times: bool,
        /// Ratio of its step time to that of `rope`, whatever disturbed either; see [`EncodingCost::sound_step_ratio`].
        pub step_ratio: Option<f64>,
        /// Whether the times of `rope` were disturbed.
        pub rope_disturbed: bool,
        /// Whether the times of `rope` are sound.
        pub rope_sound: bool,
        /// Highest peak memory of a seed, in bytes.
        pub peak_bytes: Option<u64>,
        /// Ratio of its peak memory to that of `rope`.
        pub memory_ratio: Option<f64>,
    }
}

/// Number of steps from which a median step time supports a sentence. In shorter trainings the first steps, which fill
/// caches and measure the machine, are a large part of all.
const TIMED_STEPS: u64 = 100;

impl EncodingCost {
    /// Returns a count of parameters or FLOPs as a number; `None` for 0, which stands for an unknown one: trainings of other programs
    /// need not state their costs.
    pub fn known(count: u64) -> Option<f64> {
        (count > 0).then_some(count as f64)
    }

    /// Returns the parameters of the encoding, if those of the model are known.
    pub fn known_params_of_encoding(&self) -> Option<u64> {
        (self.params_total > 0).then_some(self.params_encoding)
    }

    /// Returns the ratio of its step time to that of `rope`; `None` unless the times of both are sound.
    pub fn sound_step_ratio(&self) -> Option<f64> {
        self.step_ratio.filter(|_| self.sound_times && self.rope_sound)
    }

    /// Returns the ratio of the seconds of its whole training to those of `rope`; `None` unless the times of both are sound.
    pub fn sound_training_ratio(&self) -> Option<f64> {
        self.training_ratio.filter(|_| self.sound_times && self.rope_sound)
    }

    /// Returns the ratio of its number of training steps to that of `rope`.
    pub fn steps_ratio(&self) -> Option<f64> {
        Some(self.flops_training_ratio? / self.flops_ratio?).filter(|ratio| ratio.is_finite())
    }
}

/// Divides a column by the first value of another, where both are finite. Polars would multiply by the reciprocal,
/// which rounds twice.
fn ratios(columns: &mut [Column]) -> PolarsResult<Column> {
    let under = columns[1].f64()?.get(0);
    let ratio = |over: Option<f64>| Some(over? / under?).filter(|ratio| ratio.is_finite());
    let ratios: Vec<Option<f64>> = columns[0].f64()?.iter().map(ratio).collect();
    Ok(Column::new(columns[0].name().clone(), ratios))
}

/// Costs of each encoding, sorted by name.
///
/// # Errors
/// If the query fails.
pub(super) fn costs(counted: &Selection<'_>) -> PolarsResult<Vec<EncodingCost>> {
    let real = |name: &str| col(name).cast(DataType::Float64);
    let over_rope = |name: &str, alias: &str| {
        let rope = real(name).filter(col("encoding").eq(lit(YARDSTICK))).first();
        real(name).map_many(ratios, &[rope], |_, fields| Ok(fields[0].clone())).alias(alias)
    };
    let of_rope = |is: Expr| is.and(col("encoding").eq(lit(YARDSTICK))).any(true);
    // Records of schema 2 and before lack the load of the machine.
    let sound = col("load_known")
        .and(col("disturbed").not())
        .and(col("timed_steps").gt_eq(lit(TIMED_STEPS)));
    let first = ["params_total", "params_encoding", "flops_train_step", "flops_forward_per_token"];
    let means = [
        (real("flops_train_step") * real("train_steps")).mean().alias("flops_training"),
        mean("train_seconds").alias("training_seconds"),
        mean("step_allocations"),
        mean("step_allocated_bytes"),
        mean("step_instructions"),
        mean("tokens_per_second"),
        mean("step_seconds_median").alias("step_seconds"),
        col("train_steps").min().alias("timed_steps"),
        col("machine_load").is_not_null().all(true).alias("load_known"),
        col("disturbed").any(true),
        col("peak_bytes").max(),
    ];
    let costs = counted
        .cells()
        .group_by_stable([col("encoding")])
        .agg([&first.map(|name| col(name).first())[..], &means].concat())
        .with_columns([
            over_rope("flops_train_step", "flops_ratio"),
            over_rope("flops_training", "flops_training_ratio"),
            over_rope("training_seconds", "training_ratio"),
            over_rope("step_seconds", "step_ratio"),
            over_rope("peak_bytes", "memory_ratio"),
            sound.clone().alias("sound_times"),
            of_rope(sound).alias("rope_sound"),
            of_rope(col("disturbed")).alias("rope_disturbed"),
        ]);
    EncodingCost::of(costs)
}

rows! {
    struct MachineCondition {
        host_cpu: String,
        threads: u64,
        jobs: u64,
        engine: String,
    }
}

/// Returns the distinct machine settings of the cells: CPU, threads, concurrent cells, engine.
///
/// # Errors
/// If the query fails.
pub(super) fn machines(counted: &Selection<'_>) -> PolarsResult<Vec<String>> {
    let columns = ["host_cpu", "threads", "jobs", "engine"];
    let text = |condition: &MachineCondition| {
        let MachineCondition { host_cpu, threads, jobs, engine } = condition;
        let side = match jobs {
            0 | 1 => "alone".to_owned(),
            jobs => format!("{jobs} concurrent cells"),
        };
        format!("{host_cpu}, {}, {side}, {engine}", count(*threads, "thread"))
    };
    let distinct = counted.cells().select(columns.map(col)).unique(None, UniqueKeepStrategy::Any);
    let texts: BTreeSet<String> = MachineCondition::of(distinct)?.iter().map(text).collect();
    Ok(texts.into_iter().collect())
}

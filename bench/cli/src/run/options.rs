//! Options of `run` that control the execution of a sweep, not its contents.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use sweep::{Retry, RetryPolicy, Shard, SweepOptions};
use train::backend::pool::PooledDevices;
use train::experiment::budget::{Budget, bytes};
use train::run::kept::{Reuse, WeightsPolicy};

/// Options of a sweep.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct SweepArgs {
    /// Run all cells again from the start, finished ones included.
    #[arg(long, conflicts_with_all = ["retry", "retry_before"])]
    pub(crate) force: bool,
    /// Run cells again that ended with this status; may be repeated or separated by commas.
    ///
    /// By default a cell with a record is not run again, whatever its status; only interrupted cells are
    /// resumed. Cells that timed out or ran out of memory resume from their last checkpoint and need a
    /// larger budget. With `damaged`, an unreadable record is renamed to KEY.json.damaged and its cell
    /// is run again.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "HOW")]
    pub(crate) retry: Vec<Retry>,
    /// With --retry, run only cells again that started before this time, RFC 3339 in UTC; given to the workers of a cluster.
    #[arg(long, value_name = "TIME", hide = true, requires = "retry")]
    pub(crate) retry_before: Option<String>,
    /// Run only shard K of N of the cells, such as 2/3.
    ///
    /// Shards are disjoint, complete and the same on every machine. They may share a results folder or
    /// have one each: `pe-bench report` accepts several.
    #[arg(long, value_name = "K/N", default_value_t)]
    pub(crate) shard: Shard,
    /// Number of this process among those that share the results folder, such as $SLURM_ARRAY_TASK_ID.
    ///
    /// Processes with different numbers begin with different cells, so that they do not wait for each
    /// other when they start at the same time. Results do not depend on it.
    #[arg(long, value_name = "N")]
    pub(crate) worker: Option<u32>,
    /// Seconds between checkpoints of a cell, the most work that a kill can lose.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    checkpoint_seconds: f64,
    /// Seconds after which a cell claimed by another `pe-bench` is taken over, if its claim was not renewed.
    ///
    /// Several `pe-bench` processes may share a results folder; no cell is trained twice. A process that
    /// died is detected at once on the same machine (Linux), and after this time on another one.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    claim_seconds: f64,
    /// Time limit of a cell in seconds, over all attempts; overrides the suite's budget.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    cell_seconds: Option<f64>,
    /// Memory limit of a cell, such as 4GiB; overrides the suite's budget. Linux only.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) cell_memory: Option<u64>,
    /// Weights to keep in the folder `weights` of the results; `inspect`, `eval`, `export` and others read them.
    /// Default: the last, if all of them take at most 2 GiB.
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(crate) keep_weights: Option<KeepWeights>,
    /// Do not wait at the end for cells that other `pe-bench` processes are running; list them.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Do not write the report; `pe-bench report` does it later.
    #[arg(long)]
    pub(crate) no_report: bool,
    /// Print only problems and the path of the report.
    #[arg(long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print one JSON object per event, one per line.
    ///
    /// The field `event` is start, began, resumed, progress, point, validated, held, picked-up, ended, interrupted, lost,
    /// trouble or finish. All events but start and finish have the key, workload, encoding and seed of the
    /// cell. Field names contain the units.
    #[arg(long)]
    pub(crate) json: bool,
}

impl SweepArgs {
    /// Builds the options of a sweep from the arguments.
    pub(crate) fn options(
        &self,
        out: PathBuf,
        jobs: usize,
        threads: usize,
        devices: Vec<PooledDevices>,
    ) -> SweepOptions {
        let given = Budget { seconds: self.cell_seconds, memory_bytes: self.cell_memory };
        let jobs = if devices.is_empty() { jobs } else { devices.len() };
        let reuse = if self.force { Reuse::Never } else { Reuse::IfKept };
        SweepOptions {
            weights: WeightsPolicy { results: out.clone(), keep: None, reuse },
            out,
            jobs,
            threads,
            retry: RetryPolicy {
                force: self.force,
                retry: self.retry.iter().copied().collect(),
                before: self.retry_before.clone(),
            },
            shard: self.shard,
            worker: self.worker,
            budget: given,
            checkpoint_seconds: self.checkpoint_seconds,
            claim_seconds: self.claim_seconds,
            packed: analysis::folder::packed_only,
            wait: !self.no_wait,
            data_parallel: 1,
            devices: devices.into(),
        }
    }
}

/// Weights that a sweep keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeepWeights {
    /// Those after the last step.
    Last,
    /// Also those of the validation with the lowest loss.
    Best,
    /// No weights.
    None,
}

/// Parses a positive, finite number of seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds > 0.0 => Ok(seconds),
        _ => Err(format!(
            "`{text}` is not a number of seconds, expected a number above 0 such as 2.5"
        )),
    }
}

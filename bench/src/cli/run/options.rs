//! Options of `run` that say how a sweep goes, and not what is in it.

use std::path::PathBuf;

use clap::Args;

use crate::experiment::budget::{Budget, bytes};
use crate::sweep::{Retry, RetryPolicy, Shard, SweepOptions};

/// Options of a sweep.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct SweepArgs {
    /// Run finished cells again, from the start.
    #[arg(long)]
    force: bool,
    /// Run cells again that ended like this; may be repeated or separated by commas.
    ///
    /// Without it a cell that has a record is left as it is, however it ended; only interrupted ones
    /// go on by themselves. Those timed out or out of memory go on from their last checkpoint: give
    /// them a larger budget. A damaged record is never changed by itself: with `damaged` it is kept
    /// as KEY.json.damaged, and its cell is run again.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "HOW")]
    retry: Vec<Retry>,
    /// Only part K of N of the cells, as 2/3.
    ///
    /// The parts are disjoint and complete, and the same on every machine. They may share one folder
    /// of results, or have one each: `pe-bench report` takes several.
    #[arg(long, value_name = "K/N", default_value_t)]
    shard: Shard,
    /// Seconds between two checkpoints of a cell; what a kill can cost.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    checkpoint_seconds: f64,
    /// A cell that another `pe-bench` has claimed and not touched for so long is taken over.
    ///
    /// Several may work on one folder of results: no cell is trained by two. One that died on this
    /// machine is seen at once (on Linux), one on another machine after this time.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    claim_seconds: f64,
    /// Seconds that a cell may take, all attempts together; instead of the suite's budget.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    cell_seconds: Option<f64>,
    /// Memory that a cell may take, as 4GiB; instead of the suite's budget. Linux only.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    cell_memory: Option<u64>,
    /// At the end, list cells that other `pe-bench` still work on instead of waiting for them.
    #[arg(long)]
    no_wait: bool,
    /// Print troubles and the path of the report, nothing else.
    #[arg(long, conflicts_with = "json")]
    pub(super) quiet: bool,
    /// Print one JSON object a line for every event, for programs.
    ///
    /// Each has a field `event`: start, began, resumed, progress, held, picked-up, ended, interrupted,
    /// lost, trouble or finish. All but start and finish have the cell's key, workload, encoding and
    /// seed. Units are in the fields' names.
    #[arg(long)]
    pub(super) json: bool,
}

impl SweepArgs {
    /// The options of a sweep.
    pub(super) fn options(&self, out: PathBuf, jobs: usize, threads: usize) -> SweepOptions {
        let given = Budget { seconds: self.cell_seconds, memory_bytes: self.cell_memory };
        SweepOptions {
            out,
            jobs,
            threads,
            retry: RetryPolicy { force: self.force, retry: self.retry.iter().copied().collect() },
            shard: self.shard,
            budget: given,
            checkpoint_seconds: self.checkpoint_seconds,
            claim_seconds: self.claim_seconds,
            wait: !self.no_wait,
        }
    }
}

/// Seconds of which there are some.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds > 0.0 => Ok(seconds),
        _ => Err(format!("`{text}` is no number of seconds, expected a number above 0, as 2.5")),
    }
}

//! Options of `run`: what is run, and how the sweep is executed.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use crate::compute::{ComputeArgs, DeviceArgs};
use crate::page::OpenArgs;
use crate::parsers::{MOST, Suggested, number, seconds};
use crate::report::Criteria;
use sweep::{Retry, RetryPolicy, Shard, SweepOptions};
use train::backend::pool::{self, DeviceList};
use train::backend::{self, Hardware};
use train::experiment::budget::{Budget, bytes};
use train::host;
use train::run::kept::{Reuse, WeightsPolicy};

/// Arguments of `run`.
#[derive(Args, Clone)]
pub(crate) struct RunArgs {
    /// A built-in suite (`pe-bench list suites`) or the path of a TOML file.
    #[arg(value_parser = Suggested::SUITES)]
    pub(crate) suite: String,
    /// Seeds that replace the seeds of the suite, separated by commas.
    #[arg(long, alias = "seed", value_name = "SEEDS", value_delimiter = ',')]
    pub(crate) seeds: Vec<u64>,
    /// Encodings that replace the encodings of the suite, separated by commas: names from the suite, ids, or
    /// combinations such as 'cope{max_positions=16}+rope'.
    #[arg(long, value_parser = Suggested::ENCODINGS)]
    pub(crate) encodings: Vec<String>,
    /// Workloads to run, separated by commas: names from the suite, such as counting or 'counting variables=3'.
    #[arg(long, value_parser = Suggested::TASKS)]
    pub(crate) workloads: Vec<String>,
    /// Text file or folder of texts that replaces the corpus of every text workload.
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) compute: ComputeArgs,
    #[command(flatten)]
    pub(crate) pool: PoolArgs,
    /// Number of devices that train one cell together; each device computes its share of the micro-batches of a step.
    ///
    /// Every cell needs train.micro_batch_size, and its number of micro-batches must be a multiple of N. Results do not
    /// depend on N, not even in the last bit. Records have the same keys for every N, and several devices can resume
    /// from a checkpoint that one device wrote. With --devices, each group of N devices trains one cell at a time.
    /// On a CPU backend a device has --threads threads.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number(1..=MOST))]
    pub(crate) data_parallel: usize,
    /// Results folder; default: results/<suite>.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) criteria: Criteria,
    #[command(flatten)]
    pub(crate) page: OpenArgs,
    #[command(flatten)]
    pub(crate) sweep: SweepArgs,
    /// Print the cells and their estimated training times without running them; with --json, print JSON Lines.
    #[arg(long, conflicts_with = "open")]
    pub(crate) dry_run: bool,
}

/// Options of a sweep.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct SweepArgs {
    /// Run all cells again from the start, finished ones included.
    #[arg(long, conflicts_with_all = ["retry", "retry_before"])]
    pub(crate) force: bool,
    /// Run again the cells that ended with this status; may be repeated or separated by commas.
    ///
    /// By default a cell with a record is not run again, whatever its status; only interrupted cells are resumed.
    /// Cells that timed out or ran out of memory resume from their last checkpoint, and need a larger --cell-seconds
    /// or --cell-memory, or a larger budget in the suite. With `damaged`, an unreadable record is renamed to
    /// KEY.json.damaged and its cell is run again.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STATUS")]
    pub(crate) retry: Vec<Retry>,
    /// With --retry, run again only cells that started before this time (RFC 3339 in UTC). Cluster scripts pass this
    /// option to their workers.
    #[arg(long, value_name = "TIME", hide = true, requires = "retry")]
    pub(crate) retry_before: Option<String>,
    /// Run only shard K of N of the cells, such as 2/3.
    ///
    /// Every cell is in exactly one shard, and the shards are the same on every machine. They may share one results
    /// folder or use one folder each: `pe-bench report` accepts several folders.
    #[arg(long, value_name = "K/N", default_value_t)]
    pub(crate) shard: Shard,
    /// Index of this process among the processes that share the results folder, such as $SLURM_ARRAY_TASK_ID.
    ///
    /// Processes with different indices begin with different cells, so they do not wait for each other when they start
    /// at the same time. Results do not depend on the index.
    #[arg(long, value_name = "N")]
    pub(crate) worker: Option<u32>,
    /// Seconds between checkpoints of a cell; if the process is killed, at most this much work is lost.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    checkpoint_seconds: f64,
    /// Take over a cell of another `pe-bench` process if that process has not renewed its claim for this many seconds.
    ///
    /// Several `pe-bench` processes may share a results folder; no cell is trained twice. A process that died is
    /// detected at once on the same machine (Linux), and after this time on another machine.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    claim_seconds: f64,
    /// Time limit of a cell in seconds, over all attempts; overrides the suite's budget.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    cell_seconds: Option<f64>,
    /// Memory limit of a cell, such as 4GiB; overrides the suite's budget. Linux only.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) cell_memory: Option<u64>,
    /// Weights to save in the folder `weights` of the results; `inspect`, `eval`, `export` and other commands read
    /// them. Default: the last weights, if the weights of all cells together take at most 2 GiB, otherwise none.
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(crate) keep_weights: Option<KeepWeights>,
    /// Do not wait at the end for cells that other `pe-bench` processes are running: list these cells and exit.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Do not write the report; `pe-bench report` can write it later.
    #[arg(long, conflicts_with = "open")]
    pub(crate) no_report: bool,
    /// Print only problems and the path of the report.
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print one JSON object per event, one per line.
    ///
    /// The field `event` is start, began, resumed, progress, point, validated, held, picked-up, ended, interrupted,
    /// lost, trouble or finish. `point` is a new point of the training curve. `held` means that another process is
    /// running the cell, or that another cell is training the weights of this cell. `picked-up` means that another
    /// process has ended the cell, and `lost` that another process took it over because its claim was not renewed in
    /// time. `trouble` is a problem that does not end the cell. All events but start and finish have the key, workload,
    /// encoding and seed of the cell. Field names contain the units.
    #[arg(long, conflicts_with = "open")]
    pub(crate) json: bool,
}

impl SweepArgs {
    /// Options of a sweep on the default devices, one cell on each.
    ///
    /// # Errors
    /// If the budget of a cell is out of range.
    pub(crate) fn options(
        &self,
        out: PathBuf,
        jobs: usize,
        threads: usize,
    ) -> anyhow::Result<SweepOptions> {
        let budget = Budget { seconds: self.cell_seconds, memory_bytes: self.cell_memory };
        budget.check().context("budget of a cell")?;
        let reuse = if self.force { Reuse::Never } else { Reuse::IfKept };
        Ok(SweepOptions {
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
            budget,
            checkpoint_seconds: self.checkpoint_seconds,
            claim_seconds: self.claim_seconds,
            packed: analysis::folder::packed_only,
            wait: !self.no_wait,
            data_parallel: 1,
            devices: Vec::new().into(),
        })
    }
}

/// Processors and devices of the cells of a sweep.
#[derive(Args, Clone, Debug)]
pub(crate) struct PoolArgs {
    /// Devices to run cells on, such as 0-7 or 0,2. Each device runs one cell at a time; --jobs is then the number of
    /// devices.
    ///
    /// On a GPU backend, the list has GPU indices. With CUDA, the indices refer to the GPUs that CUDA_VISIBLE_DEVICES names. On a
    /// CPU backend, device I is the I-th group of --threads processors, and its worker is bound to them (Linux).
    /// Two sweeps with --devices cannot use the same device at the same time.
    #[arg(long, value_name = "LIST", conflicts_with_all = ["device", "jobs"])]
    pub(crate) devices: Option<DeviceList>,
    /// Number of CPU threads per cell; with `run --data-parallel`, per device of a cell.
    #[arg(long, default_value_t = 1, value_parser = number(1..=MOST))]
    pub(crate) threads: usize,
    /// Number of cells to run in parallel; default: number of CPUs divided by --threads (1 on a GPU).
    #[arg(short, long, value_parser = number(1..=MOST))]
    pub(crate) jobs: Option<usize>,
}

impl PoolArgs {
    /// Options of a sweep, `each` devices for a cell. Those that --devices or `place` names are reserved; none if all workers
    /// use the first devices of a CPU backend, or device 0. Without `hold` they are checked and not locked.
    ///
    /// # Errors
    /// If a device does not exist or is in use, or --jobs cells were to share one.
    pub(crate) fn options(
        &self,
        sweep: &SweepArgs,
        out: PathBuf,
        place: &DeviceArgs,
        each: usize,
        hold: bool,
    ) -> anyhow::Result<SweepOptions> {
        let is_processor = backend::meta(place.backend())?.hardware == Hardware::Processor;
        let is_named = place.device > 0 || (each > 1 && !is_processor);
        let named = is_named.then(|| DeviceList::range(place.device, each));
        anyhow::ensure!(
            self.devices.is_some() || named.is_none() || self.jobs.is_none_or(|jobs| jobs == 1),
            "--device {} with {each} devices for each cell runs one cell at a time; leave out --jobs, or \
             list more devices with --devices",
            place.device
        );
        let devices = match self.devices.as_ref().or(named.as_ref()) {
            Some(list) => pool::reserve(place.backend(), list, self.threads, each, hold)?,
            None => Vec::new(),
        };
        let all = if is_processor { host::logical_cpus() / (self.threads * each) } else { 1 };
        let jobs = self.jobs.unwrap_or_else(|| all.max(1));
        let jobs = if devices.is_empty() { jobs } else { devices.len() };
        let options = sweep.options(out, jobs, self.threads)?;
        Ok(SweepOptions { data_parallel: each, devices: devices.into(), ..options })
    }
}

/// Weights that a sweep keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeepWeights {
    /// The weights after the last step.
    Last,
    /// The last weights, and the weights with the lowest validation loss.
    Best,
    /// No weights.
    None,
}

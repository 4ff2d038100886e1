//! Workers of a sweep on other machines: their command, and the time and memory to ask for.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use reports::Status;

use super::out::complain;
use super::run::{self, rate};
use super::{Cli, Command, RunArgs};
use sweep::{
    CellFile, CellStatus, FLOPS_PER_SECOND, GPU_FLOPS_PER_SECOND, SweepPlan, look_up_all,
    training_seconds,
};
use train::backend::pool::{DeviceList, PoolError};
use train::backend::{self, BackendError, Hardware};
use train::suite::{self, Suite};

/// Factor from estimated seconds of training to seconds to ask for: evaluation, start and slower machines.
const TIME_RESERVE: f64 = 1.5;

/// Bytes of the process that starts the cells.
const SWEEP_BYTES: u64 = 256 << 20;

/// Step to which the memory of a worker is rounded up, in bytes.
const MEMORY_STEP: u64 = 256 << 20;

/// Bytes of memory of the machine, besides the weights, for a cell that computes on a GPU.
const GPU_HOST_BYTES: u64 = 4 << 30;

/// Factor from the peak memory of a record to the memory to ask for.
const MEMORY_RESERVE: f64 = 1.25;

/// Options about the workers of a sweep.
#[derive(Args, Clone)]
pub(super) struct WorkersArgs {
    /// A built-in suite (`pe-bench list suites`) or the path of a TOML file.
    pub(super) suite: String,
    /// Maximum number of workers.
    #[arg(long = "max", value_name = "N", default_value_t = 16)]
    most: usize,
    /// How workers divide the cells among themselves; default: claims, and with Slurm shards where locks do not hold.
    #[arg(long, value_enum, value_name = "HOW")]
    pub(super) divide: Option<Division>,
    /// Options of `run` for every worker, after `--`.
    #[arg(last = true, value_name = "RUN OPTIONS")]
    run: Vec<String>,
}

/// Division of the cells among workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Division {
    /// Each worker takes the next open cell; needs a shared folder whose locks hold.
    Claims,
    /// Each worker has its own share of the cells (`run --shard`).
    Shards,
}

/// Workers of a sweep.
pub(super) struct Workers {
    /// Name of the suite.
    pub(super) suite: String,
    /// Number of all cells.
    pub(super) cells: usize,
    /// Number of workers: at most one for each open cell.
    pub(super) count: usize,
    /// CPUs of a worker.
    pub(super) cpus: usize,
    /// Expected seconds of all open cells, one at a time.
    pub(super) seconds: f64,
    /// Expected seconds of the longest cell.
    longest_seconds: f64,
    /// Number of cells that a worker runs at the same time.
    jobs: usize,
    /// Memory of a worker in bytes.
    pub(super) memory_bytes: u64,
    /// Results folder.
    pub(super) out: PathBuf,
    /// Arguments of a worker without its number or shard.
    pub(super) run: Vec<String>,
}

impl Workers {
    /// Expected seconds of a worker among `count`, with a reserve; no less than the longest cell takes.
    pub(super) fn seconds_each(&self, count: usize) -> f64 {
        let at_a_time = (count * self.jobs).max(1) as f64;
        TIME_RESERVE * (self.seconds / at_a_time).max(self.longest_seconds)
    }
}

/// Plans the workers of a sweep; finished cells do not count. `fetch` says whether texts are fetched: workers that share the
/// cache folder with this machine may have no network. `out` is the results folder unless the options of `run` name one.
///
/// # Errors
///
/// If an option or the suite is wrong, or no cell is open.
pub(super) fn plan(
    arguments: &WorkersArgs,
    fetch: bool,
    out: Option<&str>,
) -> anyhow::Result<Workers> {
    anyhow::ensure!(arguments.most > 0, "--max is 0, expected at least 1");
    let run = parsed(arguments)?;
    let opened = match run.compute.open() {
        Ok(compute) => Some(compute),
        Err(BackendError::NoDevice { .. } | BackendError::NotCompiled { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let name = run.compute.place.backend();
    let engine = match &opened {
        Some(compute) => compute.engine,
        None => run.compute.engine_elsewhere()?,
    };
    let (source, text, overrides) = run::asked(&run, name, engine)?;
    let suite = suite::parse(&source, &text, &overrides)?;
    let out = match (&run.out, out) {
        (None, Some(out)) => PathBuf::from(out).join(&suite.name),
        _ => run::out_of(&run, &suite),
    };
    run::criteria(&run, &suite, &source, &text, &overrides)?;
    let suite_name = suite.name.clone();
    let mut following = suite.following().count();
    let planned =
        |suite: Suite| if fetch { SweepPlan::new(suite) } else { SweepPlan::offline(suite) };
    let mut plan = planned(suite.clone())?;
    let each = run.data_parallel;
    let devices = run.devices.as_ref().map(DeviceList::count);
    if let Some(count) = devices.filter(|count| count % each > 0) {
        return Err(PoolError::Uneven { count, each }.into());
    }
    let jobs = devices.map_or(run.jobs.unwrap_or(1), |count| count / each);
    let mut options = run.sweep.options(out.clone(), jobs, run.threads, Vec::new());
    options.budget.check().context("budget of a cell")?;
    run::check(&run, &suite, &plan, &mut options)?;
    run::complain_about(&plan);
    let mut found = look_up_all(&plan, &out, &options.retry);
    if following > 0 && found.iter().all(|one| one.kept().is_some()) {
        let records = found.iter().filter_map(CellFile::kept).cloned().collect::<Vec<_>>();
        let cells = run::fresh_cells(&suite, &records)?;
        let fresh = planned(Suite { cells, ..suite })?;
        found.extend(look_up_all(&fresh, &out, &options.retry));
        plan.append(fresh);
        following = 0;
    }
    let open = found.iter().filter(|one| !one.is_settled()).count();
    anyhow::ensure!(
        !plan.cells.is_empty(),
        "no cell of `{suite_name}` can be run: the data of its workloads are missing, see above"
    );
    if open == 0 {
        let is_done = |found: &CellFile| match &found.status {
            CellStatus::Kept(record) => record.status == Status::Done,
            CellStatus::Open | CellStatus::Unreadable(_) => false,
        };
        let again = if found.iter().all(is_done) {
            "choose another folder with --out after `--`"
        } else {
            "run those that failed again with --retry after `--`"
        };
        anyhow::bail!(
            "{}: every cell of `{suite_name}` has a record; write the report with `pe-bench report`, or {again}",
            out.display()
        );
    }
    let hardware = backend::meta(name)?.hardware;
    let seconds = training_seconds(&plan, &found, &options, || {
        each as f64
            * match &opened {
                Some(compute) => rate::operations_per_second(&run.compute, compute, run.threads),
                None => assumed(name, hardware, run.threads),
            }
    });
    let memory = memory(&plan, &found, hardware);
    let of_cell = run.sweep.cell_memory.unwrap_or(memory);
    let needed = SWEEP_BYTES.saturating_add(of_cell.saturating_mul(jobs as u64));
    Ok(Workers {
        cells: plan.cells.len() + following,
        count: arguments.most.min(open),
        cpus: jobs * each * run.threads,
        seconds: seconds.iter().sum::<f64>() * (open + following) as f64 / open as f64,
        longest_seconds: seconds.iter().copied().fold(0.0, f64::max),
        jobs,
        memory_bytes: needed.checked_next_multiple_of(MEMORY_STEP).unwrap_or(needed),
        run: words(arguments, &run, &out)?,
        suite: suite_name,
        out,
    })
}

/// Parses the options of `run`, and refuses those that the workers set themselves.
fn parsed(arguments: &WorkersArgs) -> anyhow::Result<RunArgs> {
    let words = ["pe-bench", "run", &arguments.suite].map(str::to_owned);
    let parsed = super::parse(words.into_iter().chain(arguments.run.iter().cloned()));
    let run = match parsed {
        Ok(Cli { command: Command::Run(run) }) => run,
        Ok(_) => anyhow::bail!("the options after `--` are not options of `run`"),
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            anyhow::bail!("options of `run` after `--`: {first}; see `pe-bench run --help`")
        }
    };
    let sweep = &run.sweep;
    for (name, is_given) in [
        ("--dry-run", run.dry_run),
        ("--force", sweep.force),
        ("--json", sweep.json),
        ("--no-report", sweep.no_report),
        ("--no-wait", sweep.no_wait),
        ("--retry-before", sweep.retry_before.is_some()),
        ("--shard", sweep.shard != sweep::Shard::WHOLE),
        ("--worker", sweep.worker.is_some()),
    ] {
        let why = match name {
            "--force" => "a worker that is queued again would start its cells again",
            _ => "workers set it themselves",
        };
        anyhow::ensure!(!is_given, "{name} after `--`: {why}; leave it out");
    }
    Ok(run)
}

/// Arguments of a worker.
fn words(
    arguments: &WorkersArgs,
    run: &RunArgs,
    out: &std::path::Path,
) -> anyhow::Result<Vec<String>> {
    let mut words = vec!["run".to_owned(), arguments.suite.clone()];
    words.extend(arguments.run.iter().cloned());
    if run.out.is_none() {
        let out =
            out.to_str().with_context(|| format!("{}: not UTF-8; use --out", out.display()))?;
        words.extend(["--out".to_owned(), out.to_owned()]);
    }
    if run.jobs.is_none() && run.devices.is_none() {
        words.extend(["--jobs".to_owned(), "1".to_owned()]);
    }
    if !run.sweep.retry.is_empty() {
        words.extend(["--retry-before".to_owned(), train::host::now_utc()]);
    }
    let quiet = (!run.sweep.quiet).then(|| "--quiet".to_owned());
    words.extend(quiet.into_iter().chain(["--no-wait".to_owned(), "--no-report".to_owned()]));
    Ok(words)
}

/// Assumed operations per second of a backend that cannot be opened on this machine.
fn assumed(name: &str, hardware: Hardware, threads: usize) -> f64 {
    let rate = match hardware {
        Hardware::Processor => FLOPS_PER_SECOND * threads as f64,
        Hardware::Cuda | Hardware::Metal | Hardware::Wgpu => GPU_FLOPS_PER_SECOND,
    };
    complain(&format!(
        "note: backend `{name}` cannot be opened on this machine; times assume {rate:.0e} operations per second, and follow \
         the records as soon as there are some"
    ));
    rate
}

/// Memory of the machine that a cell of a plan needs in bytes: the most of its records, or an estimate.
fn memory(plan: &SweepPlan, found: &[CellFile], hardware: Hardware) -> u64 {
    let mut known = std::collections::BTreeMap::<_, u64>::new();
    for record in found.iter().filter_map(CellFile::kept) {
        if let Some(bytes) = record.host_peak_bytes.or(record.peak_bytes) {
            let most = known.entry((&record.workload, &record.encoding.name)).or_default();
            *most = (*most).max((bytes as f64 * MEMORY_RESERVE) as u64);
        }
    }
    let open = plan.cells.iter().zip(found).filter(|(_, found)| !found.is_settled());
    let of_cell = |planned: &sweep::PlannedCell| {
        let kind = (&planned.cell.workload, &planned.cell.name);
        known.get(&kind).copied().unwrap_or_else(|| match hardware {
            Hardware::Processor => planned.cell.memory_bytes(&*planned.task),
            Hardware::Cuda | Hardware::Metal | Hardware::Wgpu => {
                let weights = planned.cell.model.param_count(planned.task.vocab_size());
                GPU_HOST_BYTES + (weights as u64) * 20
            }
        })
    };
    open.map(|(planned, _)| of_cell(planned)).max().unwrap_or(0)
}

/// Command line of this process for the comments of a script, without its program.
pub(super) fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let words = words.collect::<Vec<_>>();
    format!("pe-bench {}", sweep::cluster::shell::line(&words))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use train::experiment::as_configured;

    /// Kept records of trainings, without those on texts, which this machine may not have.
    #[test]
    fn the_estimate_covers_what_cells_took_and_is_not_far_above() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
        let mut ratios = Vec::new();
        for folder in [
            "contextual/2-cores_2026-11",
            "coverage/epyc-2-cores_2026-11",
            "cope-flip-flop-sizes/epyc-2-cores_2026-11",
        ] {
            for record in reports::read_dir(&results.join(folder)).unwrap() {
                let Some(peak) = record.peak_bytes.filter(|_| record.task.id != "text") else {
                    continue;
                };
                let (cell, task) = as_configured(&record).unwrap();
                let bytes = cell.memory_bytes(&*task);
                ratios.push((bytes as f64 / peak as f64, record.key));
            }
        }
        assert!(ratios.len() > 150, "{}", ratios.len());
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (least, most) = (&ratios[0], &ratios[ratios.len() - 1]);
        assert!(least.0 > 1.1 && most.0 < 8.0, "{least:?} {most:?}");
    }
}

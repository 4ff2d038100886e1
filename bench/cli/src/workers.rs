//! Workers of a sweep on other machines: how many, and their command.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;

use sweep::cluster::command_line;
use sweep::{CellFile, Shard, SweepPlan, look_up_all};
use train::suite::Suite;

use super::Command;
use super::out::{counted, text_of};
use super::parsers::{MOST, number};
use super::run::{self, RunArgs, RunRequest};

/// Options about the workers of a sweep.
#[derive(Args, Clone)]
pub(super) struct WorkersArgs {
    /// A built-in suite (`pe-bench list suites`) or the path of a TOML file.
    pub(super) suite: String,
    /// Maximum number of workers.
    #[arg(long = "max", value_name = "N", default_value_t = 16, value_parser = number(1..=MOST))]
    most: usize,
    /// Give each worker a fixed share of the cells (`run --shard`). Use this option if file locks do not work in the
    /// shared folder. By default each worker takes the next open cell.
    #[arg(long)]
    shards: bool,
    /// Options of `run` for every worker, after `--`.
    #[arg(last = true, value_name = "RUN OPTIONS")]
    run: Vec<String>,
}

/// Workers of a sweep.
pub(super) struct Workers {
    /// Name of the suite.
    pub(super) suite: String,
    /// Sentence with the numbers of workers and cells.
    pub(super) about: String,
    /// Number of workers: at most one for each open cell.
    pub(super) count: usize,
    /// CPUs of a worker.
    pub(super) cpus: usize,
    /// Results folder.
    pub(super) out: PathBuf,
    /// Arguments of a worker without its number or shard.
    pub(super) run: Vec<String>,
    shards: bool,
}

impl Workers {
    /// Arguments of a worker in a shell, which replaces its shard and its number.
    pub(super) fn command(&self, shard: &str, number: &str) -> String {
        let run = command_line(&self.run);
        if self.shards {
            return format!("{run} --shard \"{shard}/{}\"", self.count);
        }
        format!("{run} --worker \"{number}\"")
    }
}

/// Plans the workers of a sweep; finished cells do not count. `fetch` says whether texts are fetched: workers that share the
/// cache folder with this machine may have no network. `results` has the results folder unless the options of `run` name one.
///
/// # Errors
///
/// If an option or the suite is wrong, or no cell is open.
pub(super) fn plan(
    arguments: &WorkersArgs,
    fetch: bool,
    results: Option<&str>,
) -> anyhow::Result<Workers> {
    let run = parsed(arguments)?;
    let engine = run.compute.engine_elsewhere()?;
    let backend = run.compute.place.backend();
    let RunRequest { suite, out, .. } = RunRequest::new(&run, backend, engine, results)?;
    let each = run.data_parallel;
    let jobs = match &run.pool.devices {
        Some(list) => list.workers(each)?,
        None => run.pool.jobs.unwrap_or(1),
    };
    let planned =
        |suite: Suite| if fetch { SweepPlan::new(suite) } else { SweepPlan::offline(suite) };
    let plan = planned(suite.clone())?;
    let mut options = run.sweep.options(out.clone(), jobs, run.pool.threads)?;
    run::check(&run, &suite, &plan, &mut options)?;
    run::complain_about(&plan);
    let name = suite.name.clone();
    anyhow::ensure!(
        !plan.cells.is_empty(),
        "no cell of `{name}` can be run: the data of its workloads are missing; the messages above name them"
    );
    let mut cells = look_up_all(&plan, &out, &options.retry, options.packed);
    let mut following = suite.following().count();
    if following > 0 && cells.iter().all(|cell| cell.kept().is_some()) {
        let records = cells.iter().filter_map(CellFile::kept).cloned().collect::<Vec<_>>();
        let fresh = planned(Suite { cells: run::fresh_cells(&suite, &records)?, ..suite })?;
        cells.extend(look_up_all(&fresh, &out, &options.retry, options.packed));
        following = 0;
    }
    let open = cells.iter().filter(|cell| !cell.is_settled()).count();
    anyhow::ensure!(
        open > 0,
        "{}: every cell of `{name}` has a record; write the report with `pe-bench report`, run failed cells again \
         with --retry after `--`, or run all cells in another folder with --out",
        out.display()
    );
    let count = arguments.most.min(open);
    Ok(Workers {
        about: format!(
            "{name}: {} for {}",
            counted(count, "worker"),
            counted(cells.len() + following, "cell")
        ),
        count,
        cpus: jobs * each * run.pool.threads,
        run: words(arguments, &run, &out)?,
        suite: name,
        out,
        shards: arguments.shards,
    })
}

/// Parses the options of `run`, and refuses those that the workers set themselves.
fn parsed(arguments: &WorkersArgs) -> anyhow::Result<RunArgs> {
    let words = ["pe-bench", "run", &arguments.suite].map(str::to_owned);
    let parsed = super::parse(words.into_iter().chain(arguments.run.iter().cloned()));
    let parsed = parsed.map_err(|error| {
        let text = text_of(&error);
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        anyhow!("options of `run` after `--`: {first}; see `pe-bench run --help`")
    })?;
    let Command::Run(run) = parsed.command else { unreachable!("the first word is `run`") };
    let sweep = &run.sweep;
    for (name, is_present) in [
        ("--dry-run", run.dry_run),
        ("--force", sweep.force),
        ("--json", sweep.json),
        ("--no-report", sweep.no_report),
        ("--no-wait", sweep.no_wait),
        ("--retry-before", sweep.retry_before.is_some()),
        ("--shard", sweep.shard != Shard::WHOLE),
        ("--worker", sweep.worker.is_some()),
    ] {
        anyhow::ensure!(
            !is_present,
            "{name} after `--`: workers set this option themselves or cannot use it; leave out {name}"
        );
    }
    Ok(run)
}

/// Arguments of a worker.
fn words(arguments: &WorkersArgs, run: &RunArgs, out: &Path) -> anyhow::Result<Vec<String>> {
    let mut words = vec!["run".to_owned(), arguments.suite.clone()];
    words.extend(arguments.run.iter().cloned());
    if run.out.is_none() {
        words.extend(["--out".to_owned(), utf8(out)?.to_owned()]);
    }
    if run.pool.jobs.is_none() && run.pool.devices.is_none() {
        words.extend(["--jobs".to_owned(), "1".to_owned()]);
    }
    if !run.sweep.retry.is_empty() {
        words.extend(["--retry-before".to_owned(), train::host::now_utc()]);
    }
    let quiet = (!run.sweep.quiet).then(|| "--quiet".to_owned());
    words.extend(quiet.into_iter().chain(["--no-wait".to_owned(), "--no-report".to_owned()]));
    Ok(words)
}

/// Path as a text.
pub(super) fn utf8(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| {
        format!("{}: not UTF-8, expected a path that a script can contain", path.display())
    })
}

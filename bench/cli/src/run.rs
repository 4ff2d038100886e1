//! `pe-bench run`: sweep over a suite, followed by its report.

mod beside;
mod estimate;
mod forecast;
mod json_lines;
mod options;
mod output;
pub(super) mod rate;
mod table;
mod weights;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analysis::ReportMeta;
use pe_zoo::attention::Engine;
use records::RunRecord;
use records::store::RecordError;

use super::CELLS_OPEN;
use super::conflict;
use super::folders;
use super::out::{complain, counted, say};
use super::page::OpenArgs;
use super::references::known_of;
use super::report::{BASE, StoredReport, add_files};
use super::stop::StopFlag;
use sweep::{
    SkippedWorkload, SweepManifest, SweepOptions, SweepOutcome, SweepPlan, look_up_all, sweep,
    training_seconds,
};
use train::experiment::Experiment;
use train::run::kept::Reuse;
use train::suite::{self, Overrides, Suite};

pub(crate) use options::{PoolArgs, RunArgs, SweepArgs};
use output::SweepOutput;
pub(super) use table::{clock, headline};

/// Suite that a command line of `run` asks for, with what it says besides the cells.
pub(super) struct RunRequest {
    /// Name or path of the suite.
    name: String,
    text: String,
    overrides: Overrides,
    pub(super) suite: Suite,
    /// Criteria of the report: the suite's, overridden by the command line.
    settings: records::settings::Settings,
    /// Results folder.
    pub(super) out: PathBuf,
}

impl RunRequest {
    /// Reads the suite; `results` has the results folder unless the command line names one.
    ///
    /// # Errors
    ///
    /// If an option has no meaning, or the suite cannot be read.
    pub(super) fn new(
        arguments: &RunArgs,
        backend: &str,
        engine: Engine,
        results: Option<&str>,
    ) -> anyhow::Result<Self> {
        if let Some(path) = &arguments.data {
            anyhow::ensure!(path.exists(), "--data {}: no such file or folder", path.display());
        }
        let (name, text) = suite::text(&arguments.suite)?;
        let overrides = Overrides {
            seeds: arguments.seeds.clone(),
            backend: Some(backend.to_owned()),
            engine: Some(engine),
            precision: arguments.compute.precision,
            data: arguments.data.clone(),
            encodings: arguments.encodings.clone(),
            workloads: arguments.workloads.clone(),
        };
        let suite = suite::parse(&name, &text, &overrides)?;
        if let Some(base) = arguments.criteria.ablation_base() {
            // With --encodings, kept records of the suite's other encodings are in the report too.
            let all = Overrides { encodings: Vec::new(), ..overrides.clone() };
            let whole = suite::parse(&name, &text, &all)?;
            suite.check_encoding(BASE, base).or_else(|_| whole.check_encoding(BASE, base))?;
        }
        let settings = arguments.criteria.over(suite.report.clone())?;
        let results = Path::new(results.unwrap_or("results"));
        let out = arguments.out.clone().unwrap_or_else(|| results.join(&suite.name));
        Ok(Self { name, text, overrides, suite, settings, out })
    }
}

pub(super) fn run(arguments: &RunArgs) -> anyhow::Result<ExitCode> {
    let compute = arguments.compute.open()?;
    let each = arguments.data_parallel;
    let request = RunRequest::new(arguments, &compute.backend, compute.engine, None)?;
    let RunRequest { suite, out, .. } = &request;
    let is_namesake =
        |(built_in, own): &(&str, &str)| *built_in == suite.name && *own != request.text;
    if arguments.out.is_none() && suite::BUILT_IN.iter().any(is_namesake) {
        complain(&format!(
            "warning: suite {} has the name of the built-in suite `{}` and writes to the same folder, {}; rename the \
             suite or pass --out",
            arguments.suite,
            suite.name,
            out.display()
        ));
    }
    let RunArgs { pool, sweep, compute: computing, dry_run, .. } = arguments;
    conflict::refuse_within(std::slice::from_ref(out))?;
    let mut options = pool.options(sweep, out.clone(), &computing.place, each, !dry_run)?;
    let plan =
        if *dry_run { SweepPlan::offline(suite.clone())? } else { SweepPlan::new(suite.clone())? };
    let kept = check(arguments, suite, &plan, &mut options)?;
    complain_about(&plan);
    let rate = || {
        each as f64 * rate::operations_per_second(computing.place.device, &compute, pool.threads)
    };
    if !sweep.quiet && !sweep.json {
        say(&kept);
    }
    if *dry_run {
        estimate::print(&plan, &options, sweep.json, rate);
        let fresh = suite.following().count();
        if fresh > 0 {
            complain(&format!(
                "note: {} with fresh seeds will run afterwards, with the learning rates that these cells choose",
                counted(fresh, "cell")
            ));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let beside =
        if arguments.encodings.is_empty() { Vec::new() } else { beside::records(&request, &plan)? };
    let watched = Watched {
        stop: StopFlag::install()?,
        options,
        arguments: sweep,
        page: arguments.page,
        stored: StoredReport { title: suite.title.clone(), settings: request.settings },
        command: format!("pe-bench run {}", arguments.suite),
        beside,
        rate: &rate,
    };
    watched.run(plan, Some(request.suite))
}

/// Checks the command line against the cells, and returns the line about weights; `options` states which are kept.
///
/// # Errors
///
/// If the data cannot be read or nothing reads them, a cell cannot be divided among devices, or weights are asked for that no
/// cell has.
pub(super) fn check(
    arguments: &RunArgs,
    suite: &Suite,
    plan: &SweepPlan,
    options: &mut SweepOptions,
) -> anyhow::Result<String> {
    if let Some(path) = &arguments.data {
        let readers = suite.cells.iter().filter(|cell| cell.task.meta().takes_path);
        let readers = readers.map(|cell| cell.workload.as_str()).collect::<BTreeSet<_>>();
        anyhow::ensure!(
            !readers.is_empty(),
            "--data {}: none of the workloads reads a text; leave out --data, or choose other workloads with \
             --workloads",
            path.display()
        );
        let takes_data = |skipped: &&SkippedWorkload| readers.contains(skipped.workload.as_str());
        if let Some(unrunnable) = plan.unrunnable.iter().find(takes_data) {
            anyhow::bail!("--data {}: {}", path.display(), unrunnable.reason);
        }
    }
    for planned in &plan.cells {
        let checked = planned.cell.train.check_data_parallel(arguments.data_parallel);
        checked.map_err(|e| anyhow::anyhow!("workload `{}`: {e}", planned.cell.workload))?;
    }
    weights::decide(&arguments.sweep, plan, options, arguments.dry_run)
}

/// Prints the notes of a plan's tasks and the workloads that are skipped.
pub(super) fn complain_about(plan: &SweepPlan) {
    let notes = plan.cells.iter().flat_map(|planned| planned.task.notes());
    for note in notes.collect::<BTreeSet<_>>() {
        complain(&format!("note: {note}"));
    }
    for unrunnable in &plan.unrunnable {
        complain(&format!(
            "workload `{}`: {} skipped: {}",
            unrunnable.workload,
            counted(unrunnable.cells, "cell"),
            unrunnable.reason
        ));
    }
}

/// Sweep that is watched and followed by its report.
pub(super) struct Watched<'a> {
    pub(super) stop: StopFlag,
    pub(super) options: SweepOptions,
    pub(super) arguments: &'a SweepArgs,
    pub(super) page: OpenArgs,
    /// Title and criteria of the report, which are stored even if it is not written.
    pub(super) stored: StoredReport,
    /// Command that the report shows as its source.
    pub(super) command: String,
    /// Kept records of cells that are not run, which the report has as well.
    pub(super) beside: Vec<RunRecord>,
    /// Measures the operations per second of the device.
    pub(super) rate: &'a dyn Fn() -> f64,
}

impl Watched<'_> {
    /// Runs a sweep, shows its progress and writes its report. A suite's fresh seeds follow at the rates that its grid
    /// chose.
    pub(super) fn run(
        &self,
        mut plan: SweepPlan,
        suite: Option<Suite>,
    ) -> anyhow::Result<ExitCode> {
        let out = &self.options.out;
        // Before anything is trained.
        for name in ["claims", "weights", "checkpoints", "tables", "figures", "pages"] {
            folders::refuse_other(&out.join(name))?;
        }
        folders::create(&out.join("cells"))?;
        let damaged = analysis::folder::unpack(out)?;
        let following = suite.as_ref().map_or(0, |suite| suite.following().count());
        let of_plan = |seconds: &[f64]| SweepManifest::of(&plan, seconds, following);
        let mut outcome = self.run_open_cells(&plan, &damaged, &of_plan)?;
        if outcome.interrupted {
            return Ok(self.interrupted(&plan, &outcome));
        }
        if let Some(mut suite) = suite.filter(|suite| !suite.fresh.is_empty()) {
            if outcome.records.len() + outcome.unreadable.len() < plan.cells.len() {
                complain(
                    "note: fresh seeds run when every cell of the grid has a record; run the same command again later. \
                     If each machine has its own folder, join the folders with `pe-bench records merge`, and run the \
                     suite with --out set to the joined folder",
                );
                return self.conclude(&plan, &outcome, true);
            }
            for note in left_out(&suite, &plan, &outcome.records) {
                complain(&note);
            }
            // A plan of their own, so that `--force` and `--retry` do not run the grid twice.
            suite.cells = fresh_cells(&suite, &outcome.records)?;
            let fresh = SweepPlan::new(suite)?;
            let grid = SweepManifest::of(&plan, &[], 0);
            let of_fresh = self.run_open_cells(&fresh, &damaged, &|seconds| {
                grid.clone().followed_by(SweepManifest::of(&fresh, seconds, 0))
            })?;
            outcome = outcome.followed_by(of_fresh, plan.cells.len());
            plan.append(fresh);
            if outcome.interrupted {
                return Ok(self.interrupted(&plan, &outcome));
            }
        }
        self.conclude(&plan, &outcome, false)
    }

    /// Runs the open cells of a plan, unless one of them may be among the damaged packed records; `manifest` describes the
    /// whole sweep, given the expected seconds of these cells.
    fn run_open_cells(
        &self,
        plan: &SweepPlan,
        damaged: &[RecordError],
        manifest: &dyn Fn(&[f64]) -> SweepManifest,
    ) -> anyhow::Result<SweepOutcome> {
        let options = &self.options;
        let statuses = look_up_all(plan, &options.out, &options.retry, options.packed);
        folders::refuse_lost(damaged, &statuses, options)?;
        let seconds = match options.weights.reuse {
            Reuse::Only => vec![0.0; plan.cells.len()],
            Reuse::IfKept | Reuse::Never => training_seconds(plan, &statuses, options, self.rate),
        };
        if let Err(error) = manifest(&seconds).write(&options.out) {
            complain(&format!("{error}; `pe-bench status` cannot show the open cells"));
        }
        let mut show = SweepOutput::new(self.arguments, plan, &statuses, &seconds, options);
        let stop = self.stop.flag();
        let outcome = sweep(plan, options, &statuses, &seconds, stop, &mut |event| {
            show.event(&event);
        });
        show.finish();
        outcome
    }

    fn interrupted(&self, plan: &SweepPlan, outcome: &SweepOutcome) -> ExitCode {
        output::end(self, plan, outcome, None);
        let (finished, cells) = (outcome.records.len(), plan.cells.len());
        self.stop.interrupted(finished, cells, &self.options.out, self.options.retry.force)
    }

    /// Writes the report, and prints messages about cells without a result; `fresh_wait`: whether cells of fresh seeds
    /// wait for other processes.
    fn conclude(
        &self,
        plan: &SweepPlan,
        outcome: &SweepOutcome,
        fresh_wait: bool,
    ) -> anyhow::Result<ExitCode> {
        let Self { options, stored, beside, .. } = self;
        let mut skipped = plan
            .unrunnable
            .iter()
            .map(|left| {
                let cells = counted(left.cells, "cell");
                format!("{}: {cells} not run: {}", left.workload, left.reason)
            })
            .collect::<Vec<_>>();
        skipped.extend(outcome.unreadable.iter().map(|error| format!("one cell: {error}")));
        skipped.extend(
            outcome
                .open
                .iter()
                .map(|index| format!("{}: not finished yet", plan.cells[*index].cell_name())),
        );
        let records = [&outcome.records[..], beside].concat();
        if !beside.is_empty() {
            for note in beside::notes(&outcome.records, beside) {
                complain(&format!("note: {note}"));
            }
        }
        let mut meta = ReportMeta {
            title: stored.title.clone(),
            command: self.command.clone(),
            skipped,
            ..known_of(&records)
        };
        add_files(&options.out, &options.out, &mut meta)?;
        stored.write(&options.out)?;
        let has_report = !outcome.records.is_empty() && !self.arguments.no_report;
        let write = || reports::write_report(&records, &options.out, &meta, &stored.settings);
        let summary = has_report.then(write).transpose()?;
        output::end(self, plan, outcome, summary.as_ref());
        let troubles = troubles(plan, outcome, options);
        for trouble in &troubles {
            complain(trouble);
        }
        Ok(if fresh_wait || !outcome.open.is_empty() {
            ExitCode::from(CELLS_OPEN)
        } else if troubles.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// Cells of the fresh seeds of a suite at the rates that the validations of its records choose.
pub(super) fn fresh_cells(suite: &Suite, records: &[RunRecord]) -> anyhow::Result<Vec<Experiment>> {
    let rates = analysis::grid::chosen_grid_values(records)?
        .into_iter()
        .map(|choice| ((choice.workload, choice.encoding), choice.value))
        .collect();
    Ok(suite.fresh_cells(records, &rates))
}

/// Notes about fresh seeds that do not run, because no rate is chosen; workloads that are skipped have none.
fn left_out(suite: &Suite, plan: &SweepPlan, records: &[RunRecord]) -> Vec<String> {
    let runs = |workload: &str| plan.cells.iter().any(|planned| planned.cell.workload == workload);
    let unchosen = suite.unchosen(records).into_iter().filter(|(workload, _)| runs(workload));
    let note = |(workload, encoding)| {
        format!(
            "note: {workload}, {encoding}: fresh seeds do not run, because a cell of the grid has no result; run such \
             cells again with `--retry all`"
        )
    };
    unchosen.map(note).collect()
}

/// Number of cells that a message names.
const SHOWN: usize = 5;

/// Messages about cells without a result, each with a remedy.
fn troubles(plan: &SweepPlan, outcome: &SweepOutcome, options: &SweepOptions) -> Vec<String> {
    let mut troubles = Vec::new();
    for (kind, advice) in [
        ("failed", "--retry failed runs these cells again"),
        ("timed-out", "--retry timed-out with a larger --cell-seconds resumes these cells"),
        (
            "out-of-memory",
            "--retry out-of-memory with a larger --cell-memory or fewer --jobs resumes these cells",
        ),
    ] {
        let count = outcome.records.iter().filter(|record| record.status.name() == kind).count();
        if count > 0 {
            troubles.push(format!(
                "{} ended with status {kind}; the report gives the reasons, and {advice}",
                counted(count, "cell")
            ));
        }
    }
    if !outcome.unreadable.is_empty() {
        // The messages were printed at the start.
        troubles.push(format!(
            "{} not run, because their records cannot be read (see above); the report gives the reasons",
            counted(outcome.unreadable.len(), "cell")
        ));
    }
    let open = &outcome.open;
    if !open.is_empty() {
        let shown = open.iter().take(SHOWN).map(|index| plan.cells[*index].cell_name());
        let text = shown.collect::<Vec<_>>().join(", ");
        let text = match open.len().saturating_sub(SHOWN) {
            0 => text,
            more => format!("{text} and {more} more"),
        };
        let cells = counted(open.len(), "cell");
        troubles.push(if options.wait {
            format!("{cells} not finished: {text}; run the same command to resume")
        } else {
            format!("{cells} not finished or running in other processes: {text}; run the same command again later")
        });
    }
    let left_out = plan.unrunnable.iter().map(|left| left.cells).sum::<usize>();
    if left_out > 0 {
        troubles.push(format!(
            "{} skipped; the report gives the reasons; run the same command again when the data are available",
            counted(left_out, "cell")
        ));
    }
    troubles
}

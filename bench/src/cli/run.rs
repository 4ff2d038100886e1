//! `pe-bench run`.

mod estimate;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use reports::{ReportMeta, RunRecord, Status};

use super::RunArgs;
use super::out::{complain, say};
use crate::suite::{self, Overrides};
use crate::sweep::{Event, Outcome, Plan, SweepOptions, sweep, training_seconds};
use crate::{backend, host};
use table::Live;

pub(super) fn run(arguments: &RunArgs) -> anyhow::Result<ExitCode> {
    let engine = backend::engine(arguments.engine, &arguments.backend)?;
    anyhow::ensure!(arguments.threads > 0, "--threads is 0, expected at least 1");
    anyhow::ensure!(arguments.jobs != Some(0), "--jobs is 0, expected at least 1");
    if let Some(path) = &arguments.data {
        tasks::corpus::read_text(path).context("--data")?;
    }
    let (name, text) = suite::text(&arguments.suite)?;
    let overrides = Overrides {
        seeds: arguments.seeds.clone(),
        backend: Some(arguments.backend.clone()),
        engine: Some(engine),
        data: arguments.data.clone(),
        encodings: arguments.encodings.clone(),
    };
    let suite = suite::parse(&name, &text, &overrides)?;
    let (title, suite_name) = (suite.title.clone(), suite.name.clone());
    let settings = arguments.criteria.over(suite.report.clone())?;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("results").join(&suite_name));
    let options = SweepOptions {
        out,
        jobs: jobs(arguments),
        threads: arguments.threads,
        force: arguments.force,
    };
    let plan = Plan::new(suite)?;
    for unrunnable in &plan.unrunnable {
        complain(&format!(
            "workload `{}`: its {} cells are left out: {}",
            unrunnable.workload, unrunnable.cells, unrunnable.reason
        ));
    }
    if arguments.dry_run {
        estimate::print(&plan, &options)?;
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(options.out.join("cells"))
        .with_context(|| format!("folder of the results {}", options.out.display()))?;
    let outcome = watch(&plan, &options)?;
    if outcome.interrupted {
        complain(&format!(
            "interrupted: {} of {} cells are finished and safe in {}; run the same command to go on",
            outcome.records.iter().filter(|record| record.is_finished()).count(),
            plan.cells.len(),
            options.out.display()
        ));
        return Ok(ExitCode::from(130));
    }
    conclude(&plan, &options, &outcome.records, &title, &settings, arguments)
}

/// Cells side by side, unless the user says otherwise: CPUs are shared out, other devices not.
fn jobs(arguments: &RunArgs) -> usize {
    let shared = match arguments.backend.as_str() {
        "flex" | "tch" => (host::logical_cpus() / arguments.threads).max(1),
        _ => 1,
    };
    arguments.jobs.unwrap_or(shared)
}

fn watch(plan: &Plan, options: &SweepOptions) -> anyhow::Result<Outcome> {
    let stop = Arc::new(AtomicBool::new(false));
    let handler = stop.clone();
    ctrlc::set_handler(move || handler.store(true, Ordering::SeqCst))
        .context("the handler for Ctrl-C cannot be set")?;
    let existing = plan.existing(options)?;
    let kept = existing.iter().map(Option::is_some).collect::<Vec<_>>();
    let seconds = training_seconds(plan, &kept).map_err(anyhow::Error::msg)?;
    let mut live = Live::new(plan, &existing, &seconds, options.jobs);
    let outcome = sweep(plan, options, &seconds, &stop, &mut |event| match event {
        Event::Progress { index, progress } => live.progress(index, progress),
        Event::Ended { index, record } => live.ended(index, &record),
    });
    live.finish();
    Ok(outcome?)
}

fn conclude(
    plan: &Plan,
    options: &SweepOptions,
    records: &[RunRecord],
    title: &str,
    settings: &reports::Settings,
    arguments: &RunArgs,
) -> anyhow::Result<ExitCode> {
    let meta = ReportMeta {
        title: title.to_owned(),
        command: format!("pe-bench run {}", arguments.suite),
        skipped: plan
            .unrunnable
            .iter()
            .map(|left| format!("{}: {} cells not run: {}", left.workload, left.cells, left.reason))
            .collect(),
    };
    let summary = reports::write_report_with(records, &options.out, &meta, settings)?;
    say("");
    for sentence in summary.sentences.iter().take(3) {
        say(sentence);
    }
    say("");
    say(&format!("Report: {}", summary.html.display()));
    let failed =
        records.iter().filter(|record| matches!(record.status, Status::Failed { .. })).count();
    if failed > 0 || !plan.unrunnable.is_empty() {
        let left_out = plan.unrunnable.iter().map(|left| left.cells).sum::<usize>();
        complain(&format!(
            "{failed} cells failed and {left_out} were left out; the report says why, and the \
             same command tries them again"
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

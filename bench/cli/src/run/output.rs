//! Output of a sweep: live table, JSON lines or problems only.

use reports::ReportSummary;

use super::options::SweepArgs;
use super::table::ProgressTable;
use super::{Watched, json_lines};
use crate::out::{complain, say};
use crate::report::say_results;
use sweep::{CellEvent, CellFile, CellStatus, SweepEvent, SweepOptions, SweepOutcome, SweepPlan};
use train::run::RunEvent;

/// Output of a sweep in progress.
pub(super) enum SweepOutput<'a> {
    /// Live table and progress bar.
    Table(Box<ProgressTable<'a>>),
    /// One JSON object per event.
    Json(&'a SweepPlan),
    /// Problems only.
    Quiet(&'a SweepPlan),
}

impl<'a> SweepOutput<'a> {
    pub(super) fn new(
        arguments: &SweepArgs,
        plan: &'a SweepPlan,
        statuses: &[CellFile],
        seconds: &[f64],
        options: &SweepOptions,
    ) -> Self {
        complain_of_unreadable(statuses);
        if arguments.json {
            json_lines::start(plan, statuses, options);
            Self::Json(plan)
        } else if arguments.quiet {
            Self::Quiet(plan)
        } else {
            Self::Table(Box::new(ProgressTable::new(plan, statuses, seconds, options)))
        }
    }

    pub(super) fn event(&mut self, event: &SweepEvent) {
        match self {
            Self::Table(table) => table.event(event),
            Self::Json(plan) => json_lines::event(plan, event),
            Self::Quiet(plan) => {
                let name = || plan.cells[event.index].cell_name();
                match &event.what {
                    CellEvent::Run(RunEvent::Trouble(text)) => {
                        complain(&format!("{}: {text}", name()));
                    }
                    CellEvent::Ended(record) if !record.status.reason().is_empty() => {
                        let (status, reason) = (record.status.name(), record.status.reason());
                        complain(&format!("{}: {status}: {reason}", name()));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Clears the progress bar at the end of the sweep.
    pub(super) fn finish(&self) {
        if let Self::Table(table) = self {
            table.finish();
        }
    }
}

/// Prints a message about each record that cannot be read.
pub(super) fn complain_of_unreadable(statuses: &[CellFile]) {
    for one in statuses {
        if let CellStatus::Unreadable(error) = &one.status {
            complain(&format!("cell not run, because its record cannot be read: {error}"));
        }
    }
}

/// Prints the results and the address of the report; without a report only the last of the JSON lines.
pub(super) fn end(
    watched: &Watched<'_>,
    plan: &SweepPlan,
    outcome: &SweepOutcome,
    summary: Option<&ReportSummary>,
) {
    if watched.arguments.json {
        return json_lines::finish(plan, outcome, summary.map(|summary| &*summary.html));
    }
    let Some(summary) = summary else { return };
    if !watched.arguments.quiet {
        say("");
        say_results(&summary.table);
        say("");
    }
    watched.page.show("Report", &summary.html);
}

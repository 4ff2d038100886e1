//! How a sweep is shown: to people, to programs, or hardly at all.

use reports::ReportSummary;

use super::lines::Lines;
use super::options::SweepArgs;
use super::table::Live;
use crate::cli::out::{complain, say};
use crate::sweep::{
    CellEvent, CellFile, CellStatus, SweepEvent, SweepOptions, SweepOutcome, SweepPlan,
};

/// Output of a sweep in progress.
pub(super) enum Show<'a> {
    /// A table and a bar.
    People(Box<Live<'a>>),
    /// One JSON object a line.
    Programs(Lines<'a>),
    /// Troubles only.
    Quiet(&'a SweepPlan),
}

impl<'a> Show<'a> {
    pub(super) fn new(
        arguments: &SweepArgs,
        plan: &'a SweepPlan,
        surveyed: &[CellFile],
        seconds: &[f64],
        options: &SweepOptions,
    ) -> Self {
        for error in surveyed.iter().filter_map(|one| match &one.status {
            CellStatus::Unreadable(error) => Some(error),
            CellStatus::Open | CellStatus::Kept(_) => None,
        }) {
            complain(&format!("{error}; its cell is left as it is"));
        }
        if arguments.json {
            Self::Programs(Lines::start(plan, surveyed, options))
        } else if arguments.quiet {
            Self::Quiet(plan)
        } else {
            Self::People(Box::new(Live::new(plan, surveyed, seconds, options)))
        }
    }

    pub(super) fn event(&mut self, event: &SweepEvent) {
        match self {
            Self::People(live) => live.event(event),
            Self::Programs(lines) => lines.event(event),
            Self::Quiet(plan) => {
                let name = || plan.cells[event.index].cell_name();
                match &event.what {
                    CellEvent::Trouble(text) => complain(&format!("{}: {text}", name())),
                    CellEvent::Ended(record) if !record.status.reason().is_empty() => {
                        let (status, reason) = (record.status.name(), record.status.reason());
                        complain(&format!("{}: {status}: {reason}", name()));
                    }
                    _ => {}
                }
            }
        }
    }

    /// The sweep is over; what comes now is the report.
    pub(super) fn finish(&self) {
        if let Self::People(live) = self {
            live.finish();
        }
    }

    /// The report is written.
    pub(super) fn report(&self, outcome: &SweepOutcome, summary: &ReportSummary) {
        match self {
            Self::People(_) => {
                say("");
                for sentence in summary.sentences.iter().take(3) {
                    say(sentence);
                }
                say("");
                say(&format!("Report: {}", summary.html.display()));
            }
            Self::Programs(lines) => lines.finish(outcome, Some(&summary.html)),
            Self::Quiet(_) => say(&format!("Report: {}", summary.html.display())),
        }
    }

    /// The sweep was interrupted or has no record: there is no report.
    pub(super) fn end_without_report(&self, outcome: &SweepOutcome) {
        if let Self::Programs(lines) = self {
            lines.finish(outcome, None);
        }
    }
}

//! Where the numbers come from, what is missing, and what they do not say.

use crate::document::section::{Element, Section};
use crate::document::{tables, text};
use analysis::Report;

/// Builds the section of provenance.
pub(super) fn section(report: &Report) -> Section {
    let list = |heading: &str, items: Vec<String>| Section::of(heading, vec![Element::List(items)]);
    let facts =
        vec![Element::List(text::about(report)), Element::Table(tables::provenance(report))];
    Section::of("Provenance", facts).with([
        list("Warnings", text::warnings(report)),
        Section::of_table("Cells that are not counted", tables::not_counted(report)),
        Section::of_table("Evaluations that were skipped", tables::skipped_evaluations(report)),
        list("Not run", report.meta.skipped.clone()),
        list("Limitations", text::limits(report)),
    ])
}

//! The result of a report for a README: figures, abstract and table.

use std::fmt::Write as _;

use super::escape::prose;
use super::report::link;
use super::table::whole_table;
use crate::document::figures::Subject;
use crate::document::{tables, text};
use crate::formats::contents::Contents;

/// Renders the figures, the abstract and the table of a README as Markdown, with paths relative to the report; empty for
/// a report without an aggregate over workloads.
pub(crate) fn headline(contents: &Contents<'_>) -> String {
    let Contents { report, figures, .. } = contents;
    let table = tables::headline(report);
    if table.rows.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    // Time, if known, is the price that matters; its figure is after that of FLOPs.
    let aggregate = figures.iter().find(|figure| figure.subject == Subject::Overall);
    let priced = figures
        .iter()
        .rfind(|figure| figure.subject == Subject::Tasks && figure.title.contains(" against "));
    for link in aggregate.into_iter().chain(priced).filter_map(|figure| link(contents, figure)) {
        let _ = writeln!(out, "!{link}\n");
    }
    let sentences: Vec<String> =
        text::abstract_of(report).iter().map(|sentence| prose(&sentence.text)).collect();
    let _ = writeln!(out, "{}\n", sentences.join("\n"));
    out + &whole_table(&table)
}

//! The result of a report for a README: figures, abstract and table.

use super::figure::Figure;
use super::section::{Document, Element};
use super::{tables, text};
use analysis::Report;

/// Returns the figure of the aggregate and the last one against a price, the abstract, and a table with one line for each
/// encoding; nothing for a report without an aggregate over workloads. `document` is that of the report.
pub(crate) fn headline(report: &Report, document: &Document) -> Vec<Element> {
    let table = tables::headline(report);
    if table.rows.is_empty() {
        return Vec::new();
    }
    let figures = document.figures();
    let over_tasks = || figures.iter().filter(|figure| figure.title.starts_with("All tasks: "));
    // Time, if known, is the price that matters; its figure is after that of FLOPs.
    let priced = over_tasks().rfind(|figure| figure.title.contains(" against "));
    let shown = |figure: &&&Figure| {
        Element::Figure(Figure { caption: String::new(), ..Figure::clone(figure) })
    };
    let mut elements: Vec<Element> =
        over_tasks().take(1).chain(priced).map(|figure| shown(&figure)).collect();
    elements.extend([Element::Prose(text::lead(report).join(" ")), Element::Table(table)]);
    elements
}

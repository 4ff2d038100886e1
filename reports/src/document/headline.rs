//! The result of a report for a README: figures, abstract and table.

use super::plot::Figure;
use super::section::{Document, Element};
use super::{tables, text};
use analysis::Report;

/// Returns which encoding is for which use, the figure of the aggregate, the heat map and the last figure against a price, the
/// abstract, and a table with one line for each encoding; nothing for a report without an aggregate over workloads. `document`
/// is that of the report.
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
    let uses = text::uses(report).into_iter().map(|sentence| sentence.text);
    let mut elements = vec![Element::List(uses.collect())];
    elements.extend(over_tasks().take(2).chain(priced).map(|figure| shown(&figure)));
    elements.extend([Element::Prose(text::lead(report).join(" ")), Element::Table(table)]);
    elements
}

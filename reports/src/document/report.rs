//! A report as a document: what it shows, in the one order of all formats.

mod description;
mod encoding;
mod provenance;
mod records;
mod workload;
mod workloads;

use polars::prelude::PolarsResult;
use rayon::prelude::*;

use super::figure::Figure;
use super::figures::{self, LEGEND};
use super::section::{Document, Element, Section};
use super::{tables, text};
use ::records::number::count;
use analysis::Report;

/// Builds the document of a report. `published` compares published numbers with those of the records.
///
/// # Errors
/// If polars cannot read the cells.
pub(crate) fn report(report: &Report, published: Section) -> PolarsResult<Document> {
    // Figures of the headline metric by length, by workload.
    let by_length: Vec<Vec<Figure>> = report
        .workloads
        .par_iter()
        .map(|workload| figures::lengths::figures(report, workload, workload.headline))
        .collect();
    let mut workloads: Vec<Section> = report
        .workloads
        .par_iter()
        .zip(&by_length)
        .map(|(workload, by_length)| workload::section(report, workload, by_length))
        .collect();
    // One workload needs no page of its own.
    if let [only] = &mut workloads[..] {
        only.target = None;
    }
    let encodings: Vec<Section> = report
        .encodings
        .par_iter()
        .map(|encoding| encoding::section(report, encoding, &by_length))
        .collect();
    let question = tables::question(report)
        .map(|(heading, table)| Section::of_table(heading, table.with_id("question")));
    let mut claims = Section::of_figures("Claims of papers", figures::forest::claims(report));
    claims.elements.push(Element::Table(tables::claims(report).with_id("claims")));
    let mut sections =
        vec![Section::of_table("Summary", tables::summary(report).with_id("summary"))];
    sections.extend(question);
    sections.extend([
        claims,
        Section::of_table("Cost", tables::prices(report).with_id("prices")),
        Section::of_table(
            "Training steps measured alone",
            tables::measured(report).with_id("measured"),
        ),
        Section::of_figures("All tasks", figures::tasks::figures(report)).with([
            Section::of_table(
                "Probability of improvement",
                tables::improvements(report).with_id("improvements"),
            )
            .folded(),
        ]),
        Section::of_figures("Training-set size", figures::size::figures(report)),
        Section::of_table("Workloads", workloads::table(report).with_id("workloads"))
            .with(workloads),
        Section::of("Encodings", Vec::new()).with(encodings),
        published,
        provenance::section(report),
        records::section(report)?,
    ]);
    let title = report.meta.title.clone();
    Ok(Document { title, elements: front(report), sections }.pruned().with_figure_files())
}

/// Returns what comes first: which encoding for which use, the results in a few sentences, what is not counted, a figure.
fn front(report: &Report) -> Vec<Element> {
    let uses = text::uses(report).into_iter().map(|sentence| sentence.text);
    let mut elements =
        vec![Element::List(uses.collect()), Element::Prose(text::lead(report).join(" "))];
    let lost = report.not_counted.len() as u64;
    let warnings = text::warnings(report).len() as u64;
    let cells = count(report.frames.cells.height() as u64, "cell");
    let alerts = [
        (lost > 0).then(|| format!("Not counted: {lost} of {cells}.")),
        (warnings > 0).then(|| format!("{} on comparability.", count(warnings, "warning"))),
    ];
    let alerts: Vec<String> = alerts.into_iter().flatten().collect();
    if !alerts.is_empty() {
        elements.push(Element::Prose(format!("{} See Provenance.", alerts.join(" "))));
    }
    elements.extend(figures::overall::figure(report).map(Element::Figure));
    elements.push(Element::Prose(LEGEND.to_owned()));
    elements
}

#[cfg(test)]
mod tests;

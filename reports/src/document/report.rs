//! A report as a document: what it shows, in the one order of all formats.

mod description;
mod encoding;
mod provenance;
mod records;
mod workload;
mod workloads;

use polars::prelude::PolarsResult;
use rayon::prelude::*;

use self::encoding::SharedParts;
use super::figure::Figure;
use super::figures::series::{coloured_looks, quieten};
use super::figures::{self, LEGEND};
use super::section::{Document, Element, Section};
use super::{tables, text};
use ::records::number::count;
use analysis::{Report, YARDSTICK};

/// Builds the document of a report. `published` compares published numbers with those of the records.
///
/// # Errors
/// If polars cannot read the cells.
pub(crate) fn report(report: &Report, published: Section) -> PolarsResult<Document> {
    // Figures of the headline metric by length, by workload.
    let (by_length, contrasts): (Vec<Vec<Figure>>, Vec<_>) = report
        .workloads
        .par_iter()
        .map(|workload| {
            let figures = figures::lengths::figures(report, workload, workload.headline);
            let deciding = workload.deciding();
            (figures, deciding.map_or_else(Vec::new, |ranking| ranking.contrasts(YARDSTICK)))
        })
        .unzip();
    let mut workloads: Vec<Section> = report
        .workloads
        .par_iter()
        .zip(&by_length)
        .map(|(workload, by_length)| {
            let section = workload::section(report, workload, by_length);
            quietened(section, &coloured_looks(report, Some(workload)))
        })
        .collect();
    // One workload needs no page of its own.
    if let [only] = &mut workloads[..] {
        only.target = None;
    }
    let shared = SharedParts { by_length, contrasts };
    let encodings: Vec<Section> = report
        .encodings
        .par_iter()
        .map(|encoding| encoding::section(report, encoding, &shared))
        .collect();
    let question = tables::question(report)
        .map(|(heading, table)| Section::of_table(heading, table.with_id("question")));
    let mut claims = Section::of_figures("Claims", figures::forest::claims(report));
    claims.elements.push(Element::Table(tables::claims(report).with_id("claims")));
    let summary = tables::summary(report).with_id("summary").with_legend(LEGEND);
    let mut summary = vec![Element::Table(summary)];
    summary.extend(figures::overall::figure(report).map(Element::Figure));
    let all = coloured_looks(report, None);
    let mut sections =
        vec![Section::of("Summary", summary), Section::of("Findings", findings(report))];
    sections.extend(question);
    sections.extend([
        claims,
        Section::of_table("Cost", tables::prices(report).with_id("prices")),
        Section::of_table(
            "Training steps measured alone",
            tables::measured(report).with_id("measured"),
        )
        .folded(),
        quietened(Section::of_figures("All tasks", figures::tasks::figures(report)), &all).with([
            Section::of_table("Without one workload", tables::leaders(report).with_id("leaders"))
                .folded(),
            Section::of_table(
                "Probability of improvement",
                tables::improvements(report).with_id("improvements"),
            )
            .folded(),
        ]),
        quietened(Section::of_figures("Training-set size", figures::size::figures(report)), &all),
        Section::of_table("Workloads", workloads::table(report).with_id("workloads"))
            .with(workloads),
        Section::of("Encodings", Vec::new()).with(encodings),
        published,
        provenance::section(report),
        records::section(report)?,
    ]);
    let title = report.meta.title.clone();
    let elements =
        vec![Element::Prose(text::asked(report)), Element::Answers(text::answers(report))];
    Ok(Document { title, elements, sections }.pruned().with_figure_files())
}

/// Draws the lines of the figures of a section in grey but for those of some looks.
fn quietened(mut section: Section, coloured: &[usize]) -> Section {
    section.each_element(&mut |element| {
        if let Element::Figure(figure) = element {
            quieten(figure, coloured);
        }
    });
    section
}

/// Number of sentences of a paragraph, beyond which they are a list.
const MOST_PROSE: usize = 2;

/// Returns which encoding is for which use, the results in a few sentences, and what is not counted.
fn findings(report: &Report) -> Vec<Element> {
    let uses = text::uses(report).into_iter().map(|sentence| sentence.text);
    let lead = text::lead(report);
    let lead =
        if lead.len() > MOST_PROSE { Element::List(lead) } else { Element::Prose(lead.join(" ")) };
    let mut elements = vec![Element::List(uses.collect()), lead];
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
    elements
}

#[cfg(test)]
mod tests;

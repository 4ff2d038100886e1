//! The front of the pages: the abstract, the aggregate and its price, the tables, the workloads.

use super::{PagePaths, explained, figure};
use crate::analysis::Report;
use crate::document::figures::{Figure, Subject};
use crate::document::section::{Document, DocumentFigure, Section};
use crate::document::table::{Table, TableCell};
use crate::document::{tables, text};
use crate::number::{listed, percent, separator};

/// Builds the front. `overview` are the most important results, for reports without an abstract.
pub(crate) fn front(
    report: &Report,
    figures: &[Figure],
    paths: &PagePaths,
    overview: &[String],
) -> Document {
    let found = text::abstract_of(report);
    let abstract_text: Vec<&str> = found.iter().map(|sentence| &*sentence.text).collect();
    let lead = if found.is_empty() { overview.join(" ") } else { abstract_text.join(" ") };
    let of = |subject: Subject| -> Vec<DocumentFigure> {
        figures.iter().filter(|found| found.subject == subject).map(figure).collect()
    };
    let section =
        |heading: &str, table: Table| Section::of_table(heading, paths.link(report, table));
    let mut sections = vec![section("Encodings", tables::summary(report))];
    sections.push(Section::of_table("Workloads", workloads(report, paths)));
    sections.extend(tables::question(report).map(|(heading, table)| section(&heading, table)));
    sections.push(section("Claims of papers", tables::claims(report)));
    sections.push(section("Cost and effective length", tables::prices(report)));
    sections.push(section("Training steps measured alone", tables::measured(report)));
    let improvements = paths.link(report, tables::improvements(report));
    sections.push(Section {
        details: vec![("Probability of improvement".to_owned(), improvements)],
        ..Section::of("All tasks", of(Subject::Tasks), Vec::new())
    });
    sections.push(Section {
        notes: [text::about(report), text::limits(report), text::warnings(report)].concat(),
        ..section("Provenance and limitations", tables::provenance(report))
    });
    sections.retain(|section| !section.is_empty());
    explained(Document {
        title: report.meta.title.clone(),
        paragraphs: vec![lead],
        figures: of(Subject::Overall),
        sections,
    })
}

/// Returns the table of workloads: the encodings of the first rank, the best score and chance.
fn workloads(report: &Report, paths: &PagePaths) -> Table {
    let columns = ["workload", "evaluations", "first rank", "best mean", "chance"];
    let ranked = report.workloads.iter().filter_map(|w| Some((w, w.deciding()?)));
    Table::of(columns, ranked, |(workload, ranking)| {
        let metric = ranking.metric;
        let ranked = ranking.ranked();
        let first = ranked.iter().filter(|result| result.group == Some(1));
        let first: Vec<String> = first.map(|result| result.display.clone()).collect();
        let shown = match (ranking.has_several_ranks(), first.len()) {
            (false, _) if ranking.separates() => "all, though some pairs are separated".to_owned(),
            (false, _) => "not separated by these seeds".to_owned(),
            (true, 0..=5) => listed(&first, "and"),
            (true, n) => {
                format!("{} and {} more", first[..4].join(separator(&first[..4])), n - 4)
            }
        };
        let best = ranked.first().and_then(|best| best.estimate);
        vec![
            paths.cell_of(workload),
            ranking.region.name().into(),
            shown.into(),
            TableCell::optional(best, |e| metric.show(e.mean)),
            TableCell::optional(ranking.chance, percent),
        ]
    })
    .in_words()
}

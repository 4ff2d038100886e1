//! The front of the pages without scripts: the abstract, the aggregate and its price, the tables, the workloads.

use super::{PagePaths, explained, figure};
use crate::analysis::{Report, Workload};
use crate::document::figures::{Figure, Subject};
use crate::document::section::{Document, DocumentFigure, Section};
use crate::document::table::{Table, TableCell, heads};
use crate::document::{tables, text};
use crate::number::{listed, percent};
use crate::record::Metric;

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
    let linked = |table: Table| vec![(String::new(), paths.link(report, table))];
    let section = |heading: &str, tables: Vec<(String, Table)>| Section {
        heading: heading.to_owned(),
        tables,
        ..Section::default()
    };
    let mut sections = vec![section("Encodings", linked(tables::summary(report)))];
    sections.push(section("Workloads", vec![(String::new(), workloads(report, paths))]));
    sections
        .extend(tables::question(report).map(|(heading, table)| section(&heading, linked(table))));
    sections.push(section("Claims of papers", linked(tables::claims(report))));
    sections.push(section("Cost and effective length", linked(tables::prices(report))));
    sections.push(section("Training steps measured alone", linked(tables::measured(report))));
    let mut over_tasks = section("All tasks", Vec::new());
    over_tasks.figures = of(Subject::Tasks);
    let improvements = paths.link(report, tables::improvements(report));
    over_tasks.details = vec![("Probability of improvement".to_owned(), improvements)];
    sections.push(over_tasks);
    sections.push(Section {
        notes: [text::about(report), text::limits(report), text::warnings(report)].concat(),
        ..section("Provenance and limitations", linked(tables::provenance(report)))
    });
    sections.retain(|section| {
        let filled = |(_, table): &(String, Table)| !table.rows.is_empty();
        !section.figures.is_empty() || section.tables.iter().any(filled)
    });
    explained(Document {
        title: report.meta.title.clone(),
        paragraphs: vec![lead],
        figures: of(Subject::Overall),
        sections,
        elsewhere: "`tables/improvements.csv` has them".to_owned(),
    })
}

/// Returns the table of workloads: the encodings of the first rank, the best score and chance.
fn workloads(report: &Report, paths: &PagePaths) -> Table {
    let row = |workload: &Workload| {
        let ranking = workload.deciding()?;
        let metric = ranking.metric;
        let best = ranking.ranked().first().and_then(|best| best.estimate);
        let first: Vec<String> = ranking
            .ranked()
            .iter()
            .filter(|result| result.group == Some(1))
            .map(|result| result.display.clone())
            .collect();
        let shown = match (ranking.separates(), first.len()) {
            (false, _) => "not separated by these seeds".to_owned(),
            (true, 0..=5) => listed(&first, "and"),
            (true, n) => format!("{} and {} more", first[..4].join(", "), n - 4),
        };
        let chance = ranking.chance.filter(|_| metric == Metric::ExactMatch);
        Some(vec![
            TableCell {
                link: paths.workload(&workload.name),
                ..TableCell::from(workload.name.as_str())
            },
            ranking.region.name().into(),
            shown.into(),
            best.map_or_else(|| "–".into(), |e| metric.show(e.mean).into()),
            chance.map_or_else(|| "–".into(), |chance| percent(chance).into()),
        ])
    };
    Table {
        columns: heads(["workload", "evaluations", "first rank", "best mean", "chance"]),
        rows: report.workloads.iter().filter_map(row).collect(),
        words: true,
        ..Table::default()
    }
}

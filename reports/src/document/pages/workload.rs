//! The page of a workload: its result in a sentence, figures, ranks, evaluations and costs.

use super::{PagePaths, explained, figure};
use crate::analysis::{Report, Workload};
use crate::document::figures::{Figure, Subject};
use crate::document::section::{Document, DocumentFigure, Section};
use crate::document::table::Table;
use crate::document::{tables, text};
use crate::number::listed;

/// Builds the page of a workload.
pub(crate) fn workload(
    report: &Report,
    figures: &[Figure],
    paths: &PagePaths,
    own: &Workload,
) -> Document {
    let of = |subjects: &[Subject]| -> Vec<DocumentFigure> {
        let mine = figures.iter().filter(|found| found.workload.as_ref() == Some(&own.name));
        mine.filter(|found| subjects.contains(&found.subject)).map(figure).collect()
    };
    let linked = |(heading, table): (String, Table)| (heading, paths.link(report, table));
    let described = report.meta.description(&own.task_id);
    let mut paragraphs: Vec<String> = described.iter().map(|found| found.summary.clone()).collect();
    paragraphs.extend(text::workload_paragraphs(report, own));
    let lens: Vec<String> = own.train_lens.iter().map(u64::to_string).collect();
    paragraphs.push(format!(
        "Task {}, trained at {} {}; encodings are ranked by {}.",
        own.task,
        listed(&lens, "and"),
        own.len_unit,
        own.headline.name()
    ));
    let statistics = tables::statistics(report, own).into_iter().map(linked).collect();
    let costs = [tables::costs(report, own), tables::flops(report, own)];
    let costs = costs.map(|table| linked((String::new(), table)));
    let mut sections = vec![
        Section::of("Results", of(&[Subject::Headline]), statistics),
        Section::of("By sample property", of(&[Subject::Slices]), Vec::new()),
        Section::of("Training", of(&[Subject::Training]), Vec::new()),
        Section::of("Cost", of(&[Subject::Cost]), costs.into()),
    ];
    sections[0].details =
        vec![linked(("All evaluations".to_owned(), tables::evaluations(report, own)))];
    sections.retain(|section| !section.is_empty());
    explained(Document { title: own.name.clone(), paragraphs, sections, ..Document::default() })
}

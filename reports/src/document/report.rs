//! A report as a document: what it shows, in the one order of all formats.

mod description;
mod encoding;
mod provenance;
mod records;
mod workload;

use polars::prelude::PolarsResult;
use rayon::prelude::*;

use self::encoding::SharedParts;
use super::figures::series::{coloured_looks, quieten};
use super::figures::{self, LEGEND};
use super::plot::Figure;
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
            "Training steps measured by pe-bench speed",
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
        Section::of_table("Workloads", workload::table(report).with_id("workloads"))
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
mod tests {
    use super::*;
    use crate::document::plot::Plot;
    use crate::document::table::Table;
    use crate::document::table::Target;
    use crate::testkit::table_of as table;
    use ::records::RunRecord;
    use ::records::testkit::TestCell;
    use analysis::ReportMeta;

    fn results() -> Report {
        let mut records: Vec<RunRecord> = Vec::new();
        for (workload, best) in [("count", "cope"), ("copy", "rope")] {
            for seed in 0..8_u64 {
                let noise = 0.01 * seed as f64;
                for encoding in ["cope", "rope", "nope"] {
                    let value = if encoding == best { 0.9 } else { 0.6 };
                    let cell = TestCell::new(workload, encoding, seed).beyond(value + noise);
                    records.push(cell.record());
                }
            }
        }
        Report::new(records, &ReportMeta::default()).unwrap()
    }

    fn texts(table: &Table, row: usize) -> Vec<&str> {
        table.rows[row].iter().map(|cell| &*cell.text).collect()
    }

    fn find<'a>(sections: &'a [Section], heading: &str) -> &'a Section {
        sections.iter().find(|section| section.heading == heading).unwrap()
    }

    #[test]
    fn the_section_of_an_encoding_shows_where_it_wins_and_loses() {
        let document = report(&results(), Section::default()).unwrap();
        let cope = find(&find(&document.sections, "Encodings").sections, "CoPE");
        let contests = table(find(&cope.sections, "Where it wins and loses"));
        let copy = (0..2).find(|row| contests.rows[*row][0].text == "copy").unwrap();
        assert_eq!(texts(contests, copy)[4..], ["RoPE", "–", "RoPE"]);
        assert_eq!(texts(contests, 1 - copy)[4..], ["CoPE", "NoPE, RoPE", "–"]);
        assert_eq!(contests.rows[copy][0].link, Some(Target::Workload("copy".into())));
        let [Element::Figure(against)] = &find(&cope.sections, "Against RoPE").elements[..] else {
            panic!("{cope:?}")
        };
        let Plot::Dots(dots) = &against.plot else { panic!("{against:?}") };
        // The better differences come first; on `copy` RoPE is better.
        let labels: Vec<&str> = dots.groups[0].1.iter().map(|series| &*series.label).collect();
        assert_eq!(labels, ["count", "copy"]);
        let rope = find(&find(&document.sections, "Encodings").sections, "RoPE");
        assert!(rope.sections.iter().all(|section| section.heading != "Against RoPE"));
        // Of three encodings, the figure keeps this one and RoPE, which is also the best.
        let figures = &find(&cope.sections, "By length and split").elements;
        let series = |element: &Element| match element {
            Element::Figure(Figure { plot: Plot::Dots(dots), file: None, .. }) => {
                dots.groups[0].1.len()
            }
            Element::Figure(Figure { plot: Plot::Lines(lines), file: None, .. }) => {
                lines.series.len()
            }
            _ => 0,
        };
        assert!(!figures.is_empty() && figures.iter().all(|figure| series(figure) == 2));
    }

    #[test]
    fn sections_have_one_order_and_none_is_empty() {
        let document = report(&results(), Section::default()).unwrap();
        let headings: Vec<&str> = document.sections.iter().map(|own| &*own.heading).collect();
        assert_eq!(
            headings,
            [
                "Summary",
                "Findings",
                "Cost",
                "All tasks",
                "Workloads",
                "Encodings",
                "Provenance",
                "Cells"
            ]
        );
        let count = find(&find(&document.sections, "Workloads").sections, "count");
        let headings: Vec<&str> = count.sections.iter().map(|own| &*own.heading).collect();
        assert_eq!(headings, ["Results", "Token accuracy", "Training", "Cost", "All evaluations"]);
        let ranks: Vec<&str> = count.sections[0].sections.iter().map(|own| &*own.heading).collect();
        let beyond = "Ranks on other distributions at longer lengths";
        assert_eq!(ranks, ["Ranks in distribution", beyond, "Solving and effective length"]);
        let [
            Element::Prose(task),
            Element::Prose(verdict),
            Element::Table(best),
            Element::Figure(_),
            ..,
        ] = &count.elements[..]
        else {
            panic!("{count:?}")
        };
        assert_eq!(
            task,
            "COUNT. The trained length is 64 tokens; encodings are ranked by exact match."
        );
        assert_eq!(best.columns, ["encoding", "rank", "exact match"]);
        assert!(
            verdict.starts_with(
                "Best exact match on other distributions at longer lengths: CoPE, 93.5%"
            ),
            "{verdict}"
        );
        assert!(verdict.ends_with("First rank: CoPE, of 3 encodings."), "{verdict}");
        let Element::Prose(first) = &document.elements[0] else { panic!("{document:?}") };
        assert!(first.contains("interquartile mean above chance"), "{first}");
    }

    #[test]
    fn one_workload_is_read_at_once() {
        let mut records = ::records::testkit::two_workloads();
        records.retain(|record| record.workload == "v");
        let document =
            report(&Report::new(records, &ReportMeta::default()).unwrap(), Section::default())
                .unwrap();
        assert_eq!(find(&find(&document.sections, "Workloads").sections, "v").target, None);
        assert!(
            document
                .into_pages()
                .iter()
                .all(|page| page.target != Some(Target::Workload("v".into())))
        );
    }

    #[test]
    fn legends_are_said_once_at_the_end() {
        let document = report(&results(), Section::default()).unwrap().explained();
        let last = document.sections.last().unwrap();
        let Element::List(legends) = &last.elements[0] else { panic!("{last:?}") };
        assert_eq!(last.heading, "How to read the tables");
        assert_eq!(legends.iter().filter(|legend| legend.starts_with("Mean: ")).count(), 1);
    }

    #[test]
    fn a_description_keeps_headings_and_code() {
        let text = "# A\n## What\nOne `x`\nline.\n\n```text\n<a  b>\n```\nAfter.".to_owned();
        let (source, url) = ("Me 2026".to_owned(), "https://example.org".to_owned());
        let description = analysis::Description { source, url, text, ..Default::default() };
        let section = super::description::section(&description);
        let document = Document { sections: vec![section], ..Document::default() }.pruned();
        let [Section { elements, sections, .. }] = &document.sections[..] else {
            panic!("{document:?}")
        };
        assert!(matches!(&elements[..], [Element::Source { text, .. }] if text == "Me 2026"));
        assert_eq!(sections[0].heading, "What");
        let prose = |text: &str| Element::Prose(text.to_owned());
        assert_eq!(
            sections[0].elements,
            [prose("One `x` line."), Element::Code("<a  b>".to_owned()), prose("After.")]
        );
    }

    #[test]
    fn a_step_time_relative_to_disturbed_times_of_rope_is_shown_nowhere() {
        let mut records = ::records::testkit::two_workloads();
        let shown = |records: &[RunRecord]| -> Vec<bool> {
            let results = Report::new(records, &ReportMeta::default()).unwrap();
            let document = report(&results, Section::default()).unwrap();
            let cope = find(&find(&document.sections, "Encodings").sections, "CoPE");
            let prices = table(find(&cope.sections, "Costs"));
            let sentences = crate::document::text::abstract_of(&results);
            vec![
                prices.columns.iter().any(|column| column.starts_with("step time")),
                tables::prices(&results)
                    .columns
                    .iter()
                    .any(|column| column.starts_with("ms per step")),
                sentences.iter().any(|sentence| sentence.text.contains("] the time")),
                document.figures().iter().any(|figure| figure.title.contains("against step time")),
            ]
        };
        assert_eq!(shown(&records), [true; 4]);
        let ropes = records.iter_mut().filter(|record| record.encoding.name == "rope");
        ropes.for_each(|record| record.host.jobs = 2);
        assert_eq!(shown(&records), [false; 4]);
    }
}

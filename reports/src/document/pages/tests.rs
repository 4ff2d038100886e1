use super::*;
use crate::analysis::ReportMeta;
use crate::document::figures::figures;
use crate::document::tables;
use crate::record::RunRecord;
use crate::testkit::TestCell;

fn report() -> Report {
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

#[test]
fn the_page_of_an_encoding_says_where_it_wins_and_loses() {
    let report = report();
    let (figures, paths) = (figures(&report), PagePaths::of(&report));
    let page = encoding(&report, &figures, &paths, report.encoding("cope").unwrap());
    assert!(page.paragraphs[1].starts_with("In the first rank on 1 of 2 workloads"), "{page:?}");
    assert_eq!(
        page.paragraphs[2],
        "CoPE is significantly better than RoPE on count, and significantly worse on copy."
    );
    let (_, won) = &page.sections[0].tables[0];
    let copy = (0..2).find(|row| won.rows[*row][0].text == "copy").unwrap();
    assert_eq!(texts(won, copy)[4..], ["RoPE", "–", "RoPE"]);
    assert_eq!(texts(won, 1 - copy)[4..], ["CoPE", "NoPE, RoPE", "–"]);
    assert_eq!(won.rows[copy][0].link.as_deref(), Some("pages/tasks/copy.html"));
    // Of three encodings, the figure keeps this one and RoPE, which is also the best.
    let slots = |figure: &DocumentFigure| match &figure.plot {
        Plot::Dots(dots) => dots.groups[0].1.len(),
        Plot::Lines(lines) => lines.series.len(),
        Plot::Scatter(_) | Plot::Heat(_) => 0,
    };
    assert!(page.sections[1].figures.iter().all(|figure| slots(figure) == 2));
}

#[test]
fn every_link_of_the_front_leads_to_a_page() {
    let report = report();
    let (figures, paths) = (figures(&report), PagePaths::of(&report));
    let page = front(&report, &figures, &paths, &[]);
    assert!(
        page.paragraphs[0].contains("interquartile mean above chance"),
        "{:?}",
        page.paragraphs
    );
    let cells =
        page.sections.iter().flat_map(|section| section.tables.iter().chain(&section.details));
    let mut links: Vec<&str> = cells
        .flat_map(|(_, table)| table.rows.iter().flatten())
        .filter_map(|c| c.link.as_deref())
        .collect();
    links.sort_unstable();
    links.dedup();
    assert_eq!(
        links,
        [
            "pages/encodings/cope.html",
            "pages/encodings/nope.html",
            "pages/encodings/rope.html",
            "pages/tasks/copy.html",
            "pages/tasks/count.html"
        ]
    );
    let page = workload(&report, &figures, &paths, &report.workloads[0]);
    assert!(page.sections.iter().any(|section| section.heading == "Cost"));
    assert_eq!(page.sections.last().unwrap().heading, "How to read the tables");
}

#[test]
fn names_that_differ_in_signs_have_pages_of_their_own() {
    let records: Vec<RunRecord> = ["rope", "rope(a)", "rope-a", "("]
        .map(|name| TestCell::new("w", name, 0).record())
        .to_vec();
    let paths = PagePaths::of(&Report::new(records, &ReportMeta::default()).unwrap());
    let mut found: Vec<String> = ["rope", "rope(a)", "rope-a", "("]
        .into_iter()
        .filter_map(|name| paths.encoding(name))
        .collect();
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn a_step_time_relative_to_disturbed_times_of_rope_is_shown_nowhere() {
    let mut records = crate::testkit::two_workloads();
    let shown = |records: &[RunRecord]| -> Vec<bool> {
        let report = Report::new(records, &ReportMeta::default()).unwrap();
        let (figures, paths) = (figures(&report), PagePaths::of(&report));
        let page = encoding(&report, &figures, &paths, report.encoding("cope").unwrap());
        let columns = page.sections.iter().flat_map(|s| &s.tables).flat_map(|(_, t)| &t.columns);
        let sentences = crate::document::text::abstract_of(&report);
        vec![
            columns.into_iter().any(|column| column.starts_with("step time")),
            tables::prices(&report).columns.iter().any(|column| column.starts_with("ms per step")),
            sentences.iter().any(|sentence| sentence.text.contains("] the time")),
            figures.iter().any(|figure| figure.title.contains("against step time")),
        ]
    };
    assert_eq!(shown(&records), [true; 4]);
    let ropes = records.iter_mut().filter(|record| record.encoding.name == "rope");
    ropes.for_each(|record| record.host.jobs = 2);
    assert_eq!(shown(&records), [false; 4]);
}

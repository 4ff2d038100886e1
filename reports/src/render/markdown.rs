//! `report.md`: the page for terminals and repositories, figures linked.

use std::fmt::Write as _;

use super::figures::figures;
use crate::model::Report;
use crate::provenance;
use crate::render::OutFile;
use crate::report::ReportError;
use crate::table::{self, Table};

#[expect(clippy::unnecessary_wraps, reason = "the signature of a format")]
pub(super) fn render(report: &Report) -> Result<Vec<OutFile>, ReportError> {
    Ok(vec![OutFile::text("report.md", page(report))])
}

/// Text that Markdown must not read as its own signs.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ")
}

/// A table with its notes; empty when it has no rows.
fn table(table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let heads: Vec<String> = table.columns.iter().map(|c| escape(c)).collect();
    let rules: Vec<&str> = (0..heads.len())
        .map(|column| if table.words || column == 0 { "---" } else { "---:" })
        .collect();
    let _ = writeln!(out, "| {} |\n| {} |", heads.join(" | "), rules.join(" | "));
    for row in &table.rows {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| {
                let text = escape(&cell.text);
                let text = if cell.strong { format!("**{text}**") } else { text };
                if cell.detail.is_empty() {
                    text
                } else {
                    format!("{text} {}", escape(&cell.detail))
                }
            })
            .collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out.push('\n');
    for note in &table.notes {
        let _ = writeln!(out, "{}\n", escape(note));
    }
    out
}

fn list(items: &[String]) -> String {
    let mut out = String::new();
    for item in items {
        let _ = writeln!(out, "- {}", escape(item));
    }
    out.push('\n');
    out
}

fn section(out: &mut String, heading: &str, body: &str) {
    if !body.trim().is_empty() {
        let _ = write!(out, "## {heading}\n\n{body}");
    }
}

fn section_of(out: &mut String, heading: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(out, "### {heading}\n\n{body}");
    }
}

fn page(report: &Report) -> String {
    let mut out = format!("# {}\n\n", escape(&report.meta.title));
    for line in report.about() {
        let _ = writeln!(out, "{}  ", escape(&line));
    }
    let _ = write!(out, "\n{}", list(&report.sentences));
    section(&mut out, "Summary", &table(&table::summary(report)));
    let figures = figures(report);
    for workload in &report.workloads {
        let mut body = String::new();
        for figure in figures.iter().filter(|f| f.workload == workload.name) {
            let _ = writeln!(
                body,
                "![{}]({})\n\n{}\n",
                escape(&figure.title),
                figure.path(),
                escape(&figure.caption)
            );
        }
        for (heading, ranks) in table::statistics(report, workload) {
            let _ = write!(body, "### {}\n\n{}", escape(&heading), table(&ranks));
        }
        section_of(&mut body, "All evaluations", &table(&table::evaluations(report, workload)));
        section_of(&mut body, "Cost", &table(&table::costs(report, workload)));
        section(&mut out, &escape(&workload.name), &body);
    }
    section(&mut out, "Skipped evaluations", &table(&table::skipped_evaluations(report)));
    section(&mut out, "Cells that are not counted", &table(&table::not_counted(report)));
    section(&mut out, "Not run", &list(&report.meta.skipped));
    section(&mut out, "Warnings", &list(&report.warnings));
    section(&mut out, "Where the numbers come from", &table(&provenance::provenance(report)));
    section(&mut out, "What this does not show", &list(&provenance::limits(report)));
    section(&mut out, "Every cell", &table(&table::cells(report)));
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ReportMeta;
    use crate::testkit::{Cell, suite};

    #[test]
    fn the_summary_of_a_tiny_report_reads_like_this() {
        let records = [
            Cell::new("flip-flop", "cope", 0).beyond(0.97).record(),
            Cell::new("flip-flop", "cope", 1).beyond(0.99).record(),
            Cell::new("flip-flop", "nope", 0).beyond(0.10).record(),
            Cell::new("flip-flop", "nope", 1).beyond(0.11).record(),
            Cell::new("flip-flop", "rope", 0).beyond(0.95).record(),
            Cell::new("flip-flop", "rope", 1).beyond(0.90).record(),
        ];
        let report = Report::new(&records, &ReportMeta::default()).unwrap();
        let table = table(&table::summary(&report));
        let expected = "\
| encoding | flip-flop, in distribution: exact match | flip-flop, beyond training: exact match |
| --- | ---: | ---: |
| CoPE | **100.0 %** [100.0 to 100.0] n=2, rank 1 | **98.0 %** [85.3 to 100.0] n=2, rank 1 |
| NoPE | **100.0 %** [100.0 to 100.0] n=2, rank 1 | 10.5 % † [4.1 to 16.9] n=2, rank 1 |
| RoPE | **100.0 %** [100.0 to 100.0] n=2, rank 1 | 92.5 % † [60.7 to 100.0] n=2, rank 1 |
";
        assert_eq!(table.split("\n\n").next().unwrap().trim_end(), expected.trim_end());
    }

    #[test]
    fn the_page_names_everything_and_every_link_has_a_file() {
        let meta = ReportMeta {
            title: "A | title".into(),
            command: "pe-bench run quick".into(),
            skipped: vec!["text/shaw".into()],
        };
        let report = Report::new(&suite(), &meta).unwrap();
        let page = page(&report);
        for text in [
            "# A \\| title",
            "pe-bench run quick",
            "- text/shaw",
            "at step 17: loss is NaN",
            "no corpus \\| &lt;gone>",
            "the table has 64 positions",
            "– ‡",
            "### Ranks beyond training",
            "### Solving and effective length",
            "not separable with n = 3",
            "What decides: paired t test with Holm's correction over 3 pairs",
        ] {
            assert!(page.contains(text), "{text}\n{page}");
        }
        for record in &report.cells {
            assert!(page.contains(&record.key));
        }
        let files: Vec<String> =
            figures(&report).iter().map(super::super::figures::Figure::path).collect();
        let links: Vec<&str> =
            page.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
        assert_eq!(links, files);
    }
}

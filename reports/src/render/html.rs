//! `report.html`: one page without any request, for light and dark, wide and narrow screens.

use std::fmt::Write as _;

use super::chart::{self, escape};
use super::figures::{Figure, Kind, figures};
use crate::model::Report;
use crate::provenance;
use crate::render::OutFile;
use crate::report::ReportError;
use crate::table::{self, Table};

const PAGE_CSS: &str = include_str!("page.css");

#[expect(clippy::unnecessary_wraps, reason = "the signature of a format")]
pub(super) fn render(report: &Report) -> Result<Vec<OutFile>, ReportError> {
    Ok(vec![OutFile::text("report.html", page(report))])
}

/// Escaped text in which `x` between backticks is code.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            out.push_str(if index % 2 == 1 { "<code>" } else { "</code>" });
        }
        out.push_str(&escape(part));
    }
    if text.matches('`').count() % 2 == 1 {
        out.push_str("</code>");
    }
    out
}

/// A table with its notes; empty when it has no rows.
fn table(table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let class = if table.words { " class=\"words\"" } else { "" };
    let mut out = format!("<div class=\"scroll\"><table{class}>\n<thead><tr>");
    for head in &table.columns {
        let _ = write!(out, "<th>{}</th>", escape(head));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for cell in row {
            let mut text = escape(&cell.text);
            if cell.strong {
                text = format!("<b>{text}</b>");
            }
            if !cell.detail.is_empty() {
                let _ = write!(text, "<small>{}</small>", escape(&cell.detail));
            }
            let _ = write!(out, "<td>{text}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    for note in &table.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", prose(note));
    }
    out
}

fn list(class: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let mut out = format!("<ul class=\"{class}\">\n");
    for item in items {
        let _ = writeln!(out, "<li>{}</li>", prose(item));
    }
    out.push_str("</ul>\n");
    out
}

fn details(summary: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    format!("<details><summary>{}</summary>\n{body}</details>\n", escape(summary))
}

fn section(out: &mut String, heading: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(out, "<h2>{}</h2>\n{body}", escape(heading));
    }
}

fn gallery(figures: &[&Figure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let mut out = "<div class=\"figures\">\n".to_owned();
    for figure in figures {
        let _ = writeln!(
            out,
            "<figure>\n{}\n<figcaption>{}</figcaption></figure>",
            figure.svg,
            escape(&figure.caption)
        );
    }
    out.push_str("</div>\n");
    out
}

fn page(report: &Report) -> String {
    let title = escape(&report.meta.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{}{PAGE_CSS}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <div class=\"meta\">\n",
        chart::CSS
    );
    for line in report.about() {
        let _ = writeln!(out, "<p>{}</p>", prose(&line));
    }
    out.push_str("</div>\n");
    out.push_str(&list("sentences", &report.sentences));
    section(&mut out, "Summary", &table(&table::summary(report)));
    let figures = figures(report);
    let of = |name: &str, kind: Kind| -> Vec<&Figure> {
        figures.iter().filter(|f| f.workload == name && f.kind == kind).collect()
    };
    for workload in &report.workloads {
        let mut body = gallery(&of(&workload.name, Kind::Headline));
        let second = gallery(&of(&workload.name, Kind::Second));
        body.push_str(&details("The second number: token accuracy", &second));
        for (heading, ranks) in table::statistics(report, workload) {
            let _ = write!(body, "<h3>{}</h3>\n{}", escape(&heading), table(&ranks));
        }
        let all = table(&table::evaluations(report, workload));
        body.push_str(&details("All evaluations as numbers", &all));
        section(&mut out, &workload.name, &body);
    }
    let training: Vec<&Figure> = figures.iter().filter(|f| f.kind == Kind::Training).collect();
    section(&mut out, "Training", &gallery(&training));
    let mut costs = String::new();
    for workload in &report.workloads {
        let table = table(&table::costs(report, workload));
        if !table.is_empty() {
            let _ = write!(costs, "<h3>{}</h3>\n{table}", escape(&workload.name));
        }
    }
    section(&mut out, "Cost", &costs);
    section(&mut out, "Skipped evaluations", &table(&table::skipped_evaluations(report)));
    section(&mut out, "Cells that are not counted", &table(&table::not_counted(report)));
    section(&mut out, "Not run", &list("skipped", &report.meta.skipped));
    section(&mut out, "Warnings", &list("warnings", &report.warnings));
    section(&mut out, "Where the numbers come from", &table(&provenance::provenance(report)));
    section(&mut out, "What this does not show", &list("limits", &provenance::limits(report)));
    let cells = details(&format!("{} cells", report.cells.len()), &table(&table::cells(report)));
    section(&mut out, "Every cell", &cells);
    out.push_str("</body>\n</html>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ReportMeta;
    use crate::testkit::suite;

    fn example() -> (Report, String) {
        let meta = ReportMeta {
            title: "quick <suite>".into(),
            command: "pe-bench run quick".into(),
            skipped: vec!["text/shaw: no corpus".into()],
        };
        let report = Report::new(&suite(), &meta).unwrap();
        let page = page(&report);
        (report, page)
    }

    #[test]
    fn the_page_asks_nobody_for_anything() {
        let (_, page) = example();
        for request in ["http", "src=", "href=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(request), "{request}");
        }
    }

    #[test]
    fn the_page_shows_every_encoding_cell_and_reason() {
        let (report, page) = example();
        for encoding in &report.encodings {
            assert!(page.contains(&format!("<td>{}</td>", encoding.display)), "{}", encoding.name);
        }
        for record in &report.cells {
            assert!(page.contains(&record.key));
        }
        for text in [
            "quick &lt;suite&gt;",
            "pe-bench run quick",
            "text/shaw: no corpus",
            "at step 17: loss is NaN",
            "no corpus | &lt;gone&gt;",
            "the table has 64 positions",
            "Test CPU &lt;9000&gt;",
            "abc1234",
            "prefers-color-scheme:dark",
            "What this does not show",
            "<h3>Ranks in distribution</h3>",
            "<h3>Solving and effective length</h3>",
            "<th>fit rate</th>",
            "<th>median</th>",
            "not separable with n = 3",
        ] {
            assert!(page.contains(text), "{text}");
        }
        for number in [">NaN", "\"NaN", " NaN ", "inf\"", ">inf"] {
            assert!(!page.contains(number), "{number}");
        }
    }

    #[test]
    fn every_element_that_is_opened_is_closed_in_order() {
        let (_, page) = example();
        let mut open: Vec<&str> = Vec::new();
        for tag in page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
            let name = tag.split([' ', '\n']).next().unwrap();
            if tag.ends_with('/') || name == "meta" || name == "!DOCTYPE" {
                continue;
            }
            if let Some(name) = name.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "in <{tag}>");
            } else {
                open.push(name);
            }
        }
        assert_eq!(open, Vec::<&str>::new());
    }

    #[test]
    fn backticks_become_code_even_when_one_is_missing() {
        assert_eq!(prose("on `a<b` at 3"), "on <code>a&lt;b</code> at 3");
        assert_eq!(prose("on `a"), "on <code>a</code>");
    }
}

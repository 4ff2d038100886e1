//! `report.md`: the page for terminals and repositories, figures linked.

use std::fmt::Write as _;

use super::{Contents, Format, OutFile};
use crate::figure::{Figure, Subject};
use crate::provenance;
use crate::report::ReportError;
use crate::reproduction::Reproduction;
use crate::table::{self, Table};
use crate::text::visible;

/// Columns beside the first that a repository's page shows without scrolling.
const COLUMNS: usize = 7;
/// More rows than this are in the tables' files only: nobody reads them here.
const ROWS: usize = 400;

pub(super) struct Markdown;

impl Format for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn render(&self, contents: &Contents<'_>) -> Result<Vec<OutFile>, ReportError> {
        Ok(vec![OutFile::text("report.md", page(contents))])
    }
}

/// Text of which Markdown reads nothing as its own: no link, picture, tag, code or heading.
fn escape(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len());
    let letters: Vec<char> = text.chars().collect();
    for (i, letter) in letters.iter().enumerate() {
        let next = letters.get(i + 1);
        let word = |at: Option<&char>| at.is_some_and(|c| c.is_alphanumeric());
        let within = i > 0 && word(letters.get(i - 1)) && word(next);
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '\\' | '`' | '*' | '|' | '~' => out.extend(['\\', *letter]),
            '_' if !within => out.push_str("\\_"),
            // A bracket that a link, a definition or a footnote could be made of.
            ']' if next.is_some_and(|c| matches!(c, '(' | '[' | ':')) => out.push_str("\\]"),
            '#' | '+' | '-' | '=' | '>' if i == 0 => out.extend(['\\', *letter]),
            shown => out.push(*shown),
        }
    }
    out
}

/// Escaped text in which `x` between backticks is code. Where backticks do not pair, all are letters.
fn prose(text: &str) -> String {
    let text = visible(text);
    let parts: Vec<&str> = text.split('`').collect();
    let empty =
        parts.iter().skip(1).take(parts.len().saturating_sub(2)).any(|part| part.is_empty());
    if parts.len().is_multiple_of(2) || empty {
        return escape(&text);
    }
    let shown = parts
        .iter()
        .enumerate()
        .map(|(index, part)| if index % 2 == 1 { format!("`{part}`") } else { escape(part) });
    shown.collect()
}

/// A table with its notes; empty when it has no rows. What is too long is told to be in `file`.
fn table(whole: &Table, file: &str) -> String {
    let mut out = String::new();
    if whole.rows.is_empty() {
        return out;
    }
    for table in whole.pieces(if whole.words { usize::MAX } else { COLUMNS }) {
        let heads: Vec<String> =
            table.columns.iter().map(|c| escape(&c.replacen('\n', ": ", 1))).collect();
        let rules: Vec<&str> = (0..heads.len())
            .map(|column| if table.words || column == 0 { "---" } else { "---:" })
            .collect();
        let _ = writeln!(out, "| {} |\n| {} |", heads.join(" | "), rules.join(" | "));
        for row in table.rows.iter().take(ROWS) {
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
        if table.rows.len() > ROWS {
            let more = table.rows.len() - ROWS;
            let _ = writeln!(out, "{more} more rows are in `{file}`.\n");
        }
    }
    for note in &whole.notes {
        let _ = writeln!(out, "{}\n", prose(note));
    }
    out
}

fn list(items: &[String]) -> String {
    let mut out = String::new();
    for item in items {
        let _ = writeln!(out, "- {}", prose(item));
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

fn pictures<'a>(figures: impl Iterator<Item = &'a Figure>) -> String {
    let mut out = String::new();
    for figure in figures {
        let (title, caption) = (escape(&figure.title), escape(&figure.caption));
        let title = title.replace(['[', ']'], "");
        let _ = writeln!(out, "![{title}]({})\n\n{caption}\n", figure.path("svg"));
    }
    out
}

/// Figures that are too many to be shown.
fn links<'a>(figures: impl Iterator<Item = &'a Figure>) -> String {
    let link = |figure: &Figure| {
        let title = escape(&figure.title).replace(['[', ']'], "");
        format!("- [{title}]({})\n", figure.path("svg"))
    };
    let list: String = figures.map(link).collect();
    if list.is_empty() { list } else { format!("By what samples have:\n\n{list}\n") }
}

/// The verdicts, and those tables of papers that some record stands beside.
fn published(reproduction: &Reproduction) -> String {
    const FILE: &str = "index.html";
    let paragraphs = |texts: &[String]| texts.iter().map(|t| prose(t) + "\n\n").collect::<String>();
    let summary = reproduction.summary();
    let mut out = paragraphs(&summary.paragraphs) + &table(&summary.table, FILE);
    for found in reproduction.sections() {
        if found.table.rows.iter().flatten().any(|cell| !cell.detail.is_empty()) {
            let body = paragraphs(&found.paragraphs) + &table(&found.table, FILE);
            section_of(&mut out, &escape(&found.heading), &body);
        }
    }
    out
}

fn page(contents: &Contents<'_>) -> String {
    const EVALUATIONS: &str = "tables/evaluations.csv";
    const RANKS: &str = "tables/ranks.csv";
    const COSTS: &str = "tables/costs.csv";
    const CELLS: &str = "tables/cells.csv";
    let Contents { report, figures, reproduction } = contents;
    let mut out = format!("# {}\n\n", escape(&report.meta.title));
    for line in report.about() {
        let _ = writeln!(out, "{}  ", prose(&line));
    }
    let _ = write!(out, "\n{}", list(&report.sentences));
    section(&mut out, "Summary", &table(&table::summary(report), RANKS));
    section(&mut out, "Price and reach", &table(&table::prices(report), COSTS));
    for workload in &report.workloads {
        let mut body = format!("{}\n\n", prose(&workload.sentence));
        let own = |f: &&Figure| f.workload.as_ref() == Some(&workload.name);
        let of_cost = |f: &&Figure| f.subject == Subject::Cost;
        let sliced = |f: &&Figure| f.subject == Subject::Slices;
        let shown = |f: &&Figure| own(f) && !of_cost(f) && !sliced(f);
        body.push_str(&pictures(figures.iter().filter(shown)));
        body.push_str(&links(figures.iter().filter(|f| own(f) && sliced(f))));
        for (heading, ranks) in table::statistics(report, workload) {
            section_of(&mut body, &escape(&heading), &table(&ranks, RANKS));
        }
        let all = table(&table::evaluations(report, workload), EVALUATIONS);
        section_of(&mut body, "All evaluations", &all);
        let cost = pictures(figures.iter().filter(|f| own(f) && of_cost(f)))
            + &table(&table::costs(report, workload), COSTS)
            + &table(&table::flops(report, workload), COSTS);
        section_of(&mut body, "Cost", &cost);
        section(&mut out, &escape(&workload.name), &body);
    }
    let several = pictures(figures.iter().filter(|f| f.workload.is_none()));
    section(&mut out, "Training-set size", &several);
    section(&mut out, "Published numbers", &published(reproduction));
    let skipped = table(&table::skipped_evaluations(report), CELLS);
    section(&mut out, "Skipped evaluations", &skipped);
    let lost = table(&table::not_counted(report), CELLS);
    section(&mut out, "Cells that are not counted", &lost);
    section(&mut out, "Not run", &list(&report.meta.skipped));
    section(&mut out, "Warnings", &list(&report.warnings));
    let facts = table(&provenance::provenance(report), CELLS);
    section(&mut out, "Where the numbers come from", &facts);
    section(&mut out, "What this does not show", &list(&provenance::limits(report)));
    let groups = table(&table::groups(report), CELLS);
    section(&mut out, "Cells", &(groups + "Every cell: `tables/cells.csv` and `data.parquet`.\n"));
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests;

//! `tables/*.tex`: tables for papers, `\input` as they are. They need no package.

use std::fmt::Write as _;

use super::contents::{Contents, Format, FormatError, OutFile};
use crate::analysis::Report;
use crate::document::{Table, TableCell, tables};
use crate::text::{slug, visible};

/// Columns beside the first that fit across a page of two columns.
const COLUMNS: usize = 7;

pub(super) struct Tex;

impl Format for Tex {
    fn name(&self) -> &'static str {
        "tex"
    }

    fn render(&self, contents: &Contents<'_>) -> Result<Vec<OutFile>, FormatError> {
        let mut files: Vec<OutFile> = Vec::new();
        for (name, found) in tables(contents.report) {
            let path = format!("tables/{name}.tex");
            let taken = files.iter().filter(|f| f.path == path).count();
            debug_assert_eq!(taken, 0, "names carry the workload's number where they could meet");
            if !found.rows.is_empty() {
                files.push(OutFile::text(path, tabular(&found)));
            }
        }
        Ok(files)
    }
}

fn tables(report: &Report) -> Vec<(String, Table)> {
    let mut tables = vec![
        ("summary".to_owned(), tables::summary(report)),
        ("prices".to_owned(), tables::prices(report)),
    ];
    for workload in &report.workloads {
        let name = format!("{}-{}", workload.index + 1, slug(&workload.name));
        for ranking in &workload.rankings {
            let ranks = tables::ranks(report, workload, ranking);
            tables.push((format!("ranks-{}-{name}", ranking.region.id()), ranks));
        }
        tables.push((format!("gates-{name}"), tables::gates(report, workload)));
        tables.push((format!("costs-{name}"), tables::costs(report, workload)));
        tables.push((format!("flops-{name}"), tables::flops(report, workload)));
    }
    tables
}

fn tabular(table: &Table) -> String {
    let mut out = String::new();
    for note in &table.notes {
        let _ = writeln!(out, "% {}", visible(note));
    }
    for piece in table.pieces(COLUMNS) {
        let right = "r".repeat(piece.columns.len().saturating_sub(1));
        let _ = writeln!(out, "\\begin{{tabular}}{{l{right}}}\n\\hline");
        let heads: Vec<String> = piece.columns.iter().map(|head| stacked(head)).collect();
        let _ = writeln!(out, "{} \\\\\n\\hline", heads.join(" & "));
        for row in &piece.rows {
            let cells: Vec<String> = row.iter().map(cell).collect();
            let _ = writeln!(out, "{} \\\\", cells.join(" & "));
        }
        out.push_str("\\hline\n\\end{tabular}\n\n");
    }
    out
}

/// Sets a column head of several lines as a nested table.
fn stacked(head: &str) -> String {
    let lines: Vec<String> = head.split('\n').map(escape).collect();
    match lines.as_slice() {
        [line] => line.clone(),
        lines => format!("\\begin{{tabular}}{{@{{}}r@{{}}}}{}\\end{{tabular}}", lines.join("\\\\")),
    }
}

fn cell(cell: &TableCell) -> String {
    let mut text = escape(&cell.text);
    if cell.strong {
        text = format!("\\textbf{{{text}}}");
    }
    if !cell.detail.is_empty() {
        let _ = write!(text, " {{\\scriptsize {}}}", escape(&cell.detail));
    }
    // A bracket right behind `\\` would be read as its argument.
    if text.starts_with('[') { format!("{{}}{text}") } else { text }
}

/// Text of which TeX runs nothing.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for letter in visible(text).chars() {
        match letter {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '"' => out.push_str("\\textquotedbl{}"),
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => out.extend(['\\', letter]),
            '\u{2009}' => out.push_str("\\,"),
            '–' => out.push_str("--"),
            '†' => out.push_str("\\dag{}"),
            '‡' => out.push_str("\\ddag{}"),
            '≥' => out.push_str("$\\geq$"),
            shown => out.push(shown),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_record_is_a_command() {
        let wicked = r"\input{/etc/passwd}^^5c$x$&#_%~{}|<>";
        let safe = escape(wicked);
        let commands: Vec<&str> = safe
            .split('\\')
            .skip(1)
            .map(|rest| rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap())
            .filter(|name| !name.is_empty())
            .collect();
        assert!(commands.iter().all(|name| name.starts_with("text")), "{safe}");
        assert!(!safe.contains("^^") && !safe.contains("\\input"), "{safe}");
    }
}

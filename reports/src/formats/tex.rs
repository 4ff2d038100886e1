//! `tables/*.tex`: tables of the page for `\input`. They need no package.

use std::fmt::Write as _;

use super::contents::{Contents, OutFile};
use crate::analysis::Report;
use crate::document::{Table, TableCell, tables};
use crate::text::{slug, visible};

/// Maximum number of columns besides the first, on a page and in one of two columns.
const COLUMNS: usize = 6;
const COLUMNS_NARROW: usize = 4;
/// Maximum length of a detail next to a number; longer ones are below it.
const BESIDE: usize = 8;

pub(super) fn render(contents: &Contents<'_>) -> Vec<OutFile> {
    let mut files: Vec<OutFile> = Vec::new();
    for (name, found) in tables(contents.report) {
        let path = format!("tables/{name}.tex");
        let taken = files.iter().filter(|f| f.path == path).count();
        debug_assert_eq!(taken, 0, "names carry the workload's number where they could meet");
        if !found.rows.is_empty() {
            files.push(OutFile::text(path, tex_table(&found, TexWidth::Page)));
        }
    }
    files
}

fn tables(report: &Report) -> Vec<(String, Table)> {
    let mut tables = vec![
        ("summary".to_owned(), tables::summary(report)),
        ("prices".to_owned(), tables::prices(report)),
        ("improvements".to_owned(), tables::improvements(report)),
        ("claims".to_owned(), tables::claims(report)),
    ];
    tables.extend(tables::question(report).map(|(_, table)| ("question".to_owned(), table)));
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

/// Width of a table on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TexWidth {
    /// Both columns of a page.
    Page,
    /// One column of a page of two columns, in smaller print.
    Column,
}

/// A table as `tabular` environments below each other, each no wider than `width`. Explanations are comments.
pub fn tex_table(table: &Table, width: TexWidth) -> String {
    let mut out = String::new();
    for note in table.notes.iter().chain(&table.legends) {
        let _ = writeln!(out, "% {}", visible(note));
    }
    let (columns, open) = match width {
        TexWidth::Page => (COLUMNS, "{\\small\\setlength{\\tabcolsep}{4pt}%\n"),
        TexWidth::Column => (COLUMNS_NARROW, "{\\footnotesize\\setlength{\\tabcolsep}{2.5pt}%\n"),
    };
    for piece in table.pieces(columns) {
        let (left, right) = if table.words { ("l", "l") } else { ("l", "r") };
        let right = right.repeat(piece.columns.len().saturating_sub(1));
        let _ = writeln!(
            out,
            "{open}\\begin{{tabular}}{{{left}{right}}}\n\\hline\n{}\\hline",
            heads(&piece)
        );
        for row in &piece.rows {
            if row.first().is_some_and(|cell| cell.reference) {
                out.push_str("\\hline\n");
            }
            let cells: Vec<String> = row.iter().map(cell).collect();
            let _ = writeln!(out, "{} \\\\", cells.join(" & "));
        }
        out.push_str("\\hline\n\\end{tabular}}\n\n");
    }
    out
}

/// Renders the heads of columns. Heads of two lines have one row per line; neighbours with the same first line share
/// it.
fn heads(table: &Table) -> String {
    let split = |head: &String| {
        let (first, second) = head.split_once('\n').unwrap_or(("", head));
        (tex_text(first), tex_text(second))
    };
    let heads: Vec<(String, String)> = table.columns.iter().map(split).collect();
    let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
    let mut out = String::new();
    if heads.iter().any(|(first, _)| !first.is_empty()) {
        let groups =
            heads.chunk_by(|a, b| a.0 == b.0).map(|group| match (group.len(), &group[0].0) {
                (1, first) => first.clone(),
                (n, first) => format!("\\multicolumn{{{n}}}{{c}}{{{first}}}"),
            });
        out.push_str(&line(groups.collect()));
    }
    out + &line(heads.into_iter().map(|(_, second)| second).collect())
}

fn cell(cell: &TableCell) -> String {
    let mut text = tex_text(&cell.text);
    if cell.strong {
        text = format!("\\textbf{{{text}}}");
    }
    let small = |part: &str| format!("{{\\scriptsize {}}}", tex_text(part));
    if cell.detail.chars().count() > BESIDE || cell.detail.contains('\n') {
        let lines: Vec<String> = cell.detail.lines().map(small).collect();
        let lines = lines.join("\\\\");
        text = format!("\\begin{{tabular}}[t]{{@{{}}r@{{}}}}{text}\\\\{lines}\\end{{tabular}}");
    } else if !cell.detail.is_empty() {
        let _ = write!(text, " {}", small(&cell.detail));
    }
    // A bracket right behind `\\` would be read as its argument.
    if text.starts_with('[') { format!("{{}}{text}") } else { text }
}

/// Escapes text so that TeX executes none of it.
fn tex_text(text: &str) -> String {
    let mut out = String::new();
    for letter in visible(text).chars() {
        match letter {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '"' => out.push_str("''"),
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => out.extend(['\\', letter]),
            '\u{2009}' => out.push_str("\\,"),
            '–' => out.push_str("--"),
            '†' => out.push_str("\\dag{}"),
            '‡' => out.push_str("\\ddag{}"),
            '≥' => out.push_str("$\\geq$"),
            '±' => out.push_str("$\\pm$"),
            '×' => out.push_str("$\\times$"),
            '…' => out.push_str("\\dots{}"),
            // Letters with accents are known without a package.
            ' '..='~' | '\u{c0}'..='\u{17f}' => out.push(letter),
            other => {
                let _ = write!(out, "[U+{:04X}]", u32::from(other));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::ReportMeta;
    use crate::document::tables::{PaperLayout, paper};
    use crate::formats::{table_csv, whole_table};
    use crate::testkit::TestCell;

    #[test]
    fn a_table_of_papers_reads_alike_as_tex_markdown_and_csv() {
        let records: Vec<_> = (0..2)
            .flat_map(|seed| ["cope", "rope"].map(|e| TestCell::new("a_b", e, seed)))
            .map(|cell| cell.eval("sparse", false, 256, 0.25).record())
            .collect();
        let report = Report::new(records, &ReportMeta::default()).unwrap();
        let table = paper(&report, &report.workloads[0], &PaperLayout::default()).unwrap();
        let tex = tex_table(&table, TexWidth::Page);
        assert!(tex.contains(" & in-distribution & \\multicolumn{2}{c}{sparse} \\\\\n"), "{tex}");
        assert!(tex.contains("encoding & 64 & 128 & 256 \\\\\n"), "{tex}");
        assert!(tex.contains("{\\scriptsize $\\pm$ 0.0}"), "{tex}");
        assert!(tex_table(&table, TexWidth::Column).contains("\\footnotesize"));
        assert!(whole_table(&table).contains("| encoding | in-distribution: 64 |"));
        let csv = String::from_utf8(table_csv(&table).unwrap()).unwrap();
        assert!(csv.starts_with("encoding,in-distribution 64,in-distribution 64 spread,"), "{csv}");
    }

    #[test]
    fn nothing_of_a_record_is_a_command() {
        let wicked = r"\input{/etc/passwd}^^5c$x$&#_%~{}|<>";
        let safe = tex_text(wicked);
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

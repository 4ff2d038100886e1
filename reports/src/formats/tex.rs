//! TeX: `report.tex`, the report as an article, and its tables `tables/*.tex`, for `\\input`. They need no package.

use std::fmt::Write as _;

use super::contents::{Contents, OutFile};
use super::format::Format;
use crate::document::{Document, Element, Figure, Section, Table, TableCell};
use crate::text::visible;

/// Maximum number of columns besides the first, on a page and in one of two columns.
const COLUMNS: usize = 6;
const COLUMNS_NARROW: usize = 4;
/// Maximum length of a detail next to a number; longer ones are below it.
const BESIDE: usize = 8;

/// Renders the article, and a file for each table that has an id.
pub(super) fn render(contents: &Contents<'_>) -> Vec<OutFile> {
    let document = contents.document.clone().without_records();
    let mut tables: Vec<&Table> = Vec::new();
    named(&document.elements, &document.sections, &mut tables);
    let file = |table: &Table| OutFile::text(path(table), tex_table(table, TexWidth::Page));
    let mut files: Vec<OutFile> = tables.into_iter().map(file).collect();
    files.push(OutFile::text("report.tex", Tex.document(&document.explained())));
    files
}

/// Lists the tables that have a file.
fn named<'a>(elements: &'a [Element], sections: &'a [Section], tables: &mut Vec<&'a Table>) {
    tables.extend(elements.iter().filter_map(|element| match element {
        Element::Table(table) if !table.id.is_empty() => Some(table),
        _ => None,
    }));
    for section in sections {
        named(&section.elements, &section.sections, tables);
    }
}

fn path(table: &Table) -> String {
    format!("tables/{}.tex", table.id)
}

/// An article without packages.
struct Tex;

impl Format for Tex {
    fn title(&self, text: &str) -> String {
        format!("\\title{{{}}}\n\\author{{}}\n\\date{{}}\n", tex_text(text))
    }

    fn heading(&self, text: &str, level: usize) -> String {
        let command = match level {
            0..=2 => "section",
            3 => "subsection",
            4 => "subsubsection",
            _ => "paragraph",
        };
        format!("\\{command}*{{{}}}\n", tex_text(text))
    }

    fn prose(&self, text: &str) -> String {
        format!("{}\n\n", tex_prose(text))
    }

    fn list(&self, items: &[String]) -> String {
        // A bracket right behind `\item` would be read as its argument.
        let items: Vec<String> =
            items.iter().map(|item| format!("\\item{{}} {}\n", tex_prose(item))).collect();
        format!("\\begin{{itemize}}\n{}\\end{{itemize}}\n\n", items.concat())
    }

    fn code(&self, text: &str) -> String {
        let lines: Vec<String> =
            text.lines().map(|line| format!("\\texttt{{{}}}", tex_text(line))).collect();
        format!("\\noindent {}\n\n", lines.join("\\\\\n"))
    }

    fn table(&self, table: &Table) -> String {
        let body = if table.id.is_empty() {
            tex_table(table, TexWidth::Page)
        } else {
            format!("\\input{{{}}}\n", path(table))
        };
        let notes = table.notes.iter().map(|note| self.prose(note));
        format!("\\noindent\n{}\n\n{}", body.trim_end(), notes.collect::<String>())
    }

    /// TeX shows no SVG: the name of the file stands for the figure.
    fn figure(&self, figure: &Figure) -> String {
        let Some(path) = figure.path() else { return String::new() };
        self.prose(&format!("Figure `{path}`: {}. {}", figure.title, figure.caption))
    }

    fn document(&self, document: &Document) -> String {
        format!(
            "\\documentclass{{article}}\n\\setlength{{\\textwidth}}{{5.5in}}\n{}\\begin{{document}}\n\\maketitle\n{}\\end{{document}}\n",
            self.title(&document.title),
            self.body(&document.elements, &document.sections, 1)
        )
    }
}

/// Escapes text and sets `x` between backticks as code.
fn tex_prose(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            let _ = write!(out, "\\texttt{{{}}}", tex_text(part));
        } else {
            out.push_str(&tex_text(part));
        }
    }
    out
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
    use crate::document::tables::{PaperLayout, paper};
    use crate::formats::{table_csv, whole_table};
    use analysis::{Report, ReportMeta};
    use records::testkit::TestCell;

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

//! `paper/`: the results of each workload in the layout of papers' tables, as TeX for a page and for a column, Markdown
//! and CSV, the references, and a document with all of them.

use std::fmt::Write as _;

use polars::prelude::*;

use super::contents::{Contents, FormatError, OutFile};
use super::csv;
use super::markdown::whole_table;
use super::tex::{TexWidth, tex_table, tex_text};
use crate::analysis::Workload;
use crate::document::Table;
use crate::document::tables::{PaperLayout, paper};
use crate::text::slug;

/// Returns the path of a file of a workload with this extension.
pub(super) fn path(workload: &Workload, extension: &str) -> String {
    format!("paper/{}-{}.{extension}", workload.index + 1, slug(&workload.name))
}

/// Document that includes every table, to check that they compile.
pub(super) const DOCUMENT: &str = "paper/paper.tex";
/// Path of the references of the encodings and tasks.
pub(super) const REFERENCES: &str = "paper/references.bib";

pub(super) fn render(contents: &Contents<'_>) -> Result<Vec<OutFile>, FormatError> {
    let report = contents.report;
    let mut files = Vec::new();
    let mut body = String::new();
    for workload in report.workloads.iter().filter(|workload| !workload.rows.is_empty()) {
        // Without choices there is none that the workload lacks.
        let Ok(table) = paper(report, workload, &PaperLayout::default()) else { continue };
        let (page, column) = (path(workload, "tex"), path(workload, "column.tex"));
        let _ = writeln!(body, "\\section*{{{}}}", tex_text(&workload.name));
        let name = |path: &str| path.trim_start_matches("paper/").to_owned();
        let _ = writeln!(
            body,
            "\\noindent\\input{{{}}}\n\\noindent\\begin{{minipage}}{{3.25in}}\n\\input{{{}}}\n\\end{{minipage}}\n",
            name(&page),
            name(&column)
        );
        for legend in &table.legends {
            let _ = writeln!(body, "{}\n", tex_text(legend));
        }
        files.push(OutFile::text(page, tex_table(&table, TexWidth::Page)));
        files.push(OutFile::text(column, tex_table(&table, TexWidth::Column)));
        files.push(OutFile::text(path(workload, "md"), whole_table(&table)));
        files.push(OutFile { path: path(workload, "csv"), bytes: table_csv(&table)? });
    }
    if !body.is_empty() {
        let title = tex_text(&report.meta.title);
        let references = &report.meta.references;
        let cited = if references.is_empty() {
            ""
        } else {
            "\\nocite{*}\n\\bibliographystyle{plain}\n\\bibliography{references}\n"
        };
        let document = format!(
            "\\documentclass{{article}}\n\\setlength{{\\textwidth}}{{5.5in}}\n\\title{{{title}}}\n\\author{{}}\n\\date{{}}\n\\begin{{document}}\n\
                 \\maketitle\n{body}{cited}\\end{{document}}\n"
        );
        files.push(OutFile::text(DOCUMENT, document));
        if !references.is_empty() {
            files.push(OutFile::text(REFERENCES, references.clone()));
        }
    }
    Ok(files)
}

/// A table as CSV: each column of numbers is followed by one with its spreads, if it has any.
///
/// # Errors
/// [`FormatError::Frame`], when two columns have one name.
pub fn table_csv(table: &Table) -> Result<Vec<u8>, FormatError> {
    let mut columns: Vec<Column> = Vec::new();
    for (index, head) in table.columns.iter().enumerate() {
        let head = head.replace('\n', " ");
        let of = |get: fn(&crate::document::TableCell) -> &str| -> Vec<String> {
            table.rows.iter().map(|row| get(&row[index]).to_owned()).collect()
        };
        let spreads = of(|cell| &cell.detail);
        columns.push(Column::new(head.as_str().into(), of(|cell| &cell.text)));
        if spreads.iter().any(|spread| !spread.is_empty()) {
            columns.push(Column::new(format!("{head} spread").into(), spreads));
        }
    }
    csv::bytes(DataFrame::new(table.rows.len(), columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Report, ReportMeta};
    use crate::testkit::TestCell;

    #[test]
    fn a_workload_has_its_table_in_every_form() {
        let records: Vec<_> = (0..2)
            .flat_map(|seed| ["cope", "rope"].map(|e| TestCell::new("a_b", e, seed)))
            .map(|cell| cell.eval("sparse", false, 256, 0.25).record())
            .collect();
        let meta = ReportMeta {
            title: "50 % & more".into(),
            references: "@misc{cope}\n".into(),
            ..ReportMeta::default()
        };
        let report = Report::new(records, &meta).unwrap();
        let files = super::render(&Contents::of(&report).unwrap()).unwrap();
        let text = |path: &str| {
            let file = files.iter().find(|file| file.path == path).unwrap();
            String::from_utf8(file.bytes.clone()).unwrap()
        };
        let tex = text("paper/1-a-b.tex");
        assert!(tex.contains(" & in-distribution & \\multicolumn{2}{c}{sparse} \\\\\n"), "{tex}");
        assert!(tex.contains("encoding & 64 & 128 & 256 \\\\\n"), "{tex}");
        assert!(tex.contains("{\\scriptsize $\\pm$ 0.0}"), "{tex}");
        assert!(text("paper/1-a-b.column.tex").contains("\\footnotesize"));
        assert!(text("paper/1-a-b.md").contains("| encoding | in-distribution: 64 |"));
        let csv = text("paper/1-a-b.csv");
        assert!(csv.starts_with("encoding,in-distribution 64,in-distribution 64 spread,"), "{csv}");
        let document = text(DOCUMENT);
        assert!(document.contains("50 \\% \\& more") && document.contains("\\input{1-a-b.tex}"));
        assert_eq!(text(REFERENCES), "@misc{cope}\n");
    }
}

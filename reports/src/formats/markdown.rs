//! Markdown: `report.md`, and other documents.

mod table;

use std::fmt::Write as _;

pub use self::table::whole_table;
use self::table::{escape, pieces, prose};
use super::contents::{Contents, OutFile};
use super::format::Format;
use crate::document::{self, Document, Figure, Table};

/// Maximum number of columns besides the first that a page shows without scrolling.
const COLUMNS: usize = 7;

/// Renders `report.md`.
pub(super) fn render(contents: &Contents<'_>) -> Vec<OutFile> {
    let document = contents.document.clone().without_records().explained();
    let format = Markdown { has_figures: contents.has("svg"), columns: COLUMNS };
    vec![OutFile::text("report.md", format.file(&document))]
}

/// Renders the result of a report for a README, with paths relative to the report; empty for a report without an aggregate
/// over workloads.
pub(crate) fn headline(contents: &Contents<'_>) -> String {
    let format = Markdown { has_figures: contents.has("svg"), columns: usize::MAX };
    format.elements(&document::headline(contents.report, &contents.document))
}

/// Renders a document as Markdown, without its figures.
pub fn markdown_document(document: &Document) -> String {
    Markdown { has_figures: false, columns: usize::MAX }.file(document)
}

/// Markdown of forges. Every element ends with an empty line.
struct Markdown {
    /// Whether figures have files that can be linked.
    has_figures: bool,
    /// Maximum number of columns of a table besides the first.
    columns: usize,
}

impl Markdown {
    fn file(&self, document: &Document) -> String {
        let mut text = self.document(document);
        text.truncate(text.trim_end().len());
        text + "\n"
    }
}

impl Format for Markdown {
    fn title(&self, text: &str) -> String {
        self.heading(text, 1)
    }

    fn heading(&self, text: &str, level: usize) -> String {
        format!("{} {}\n\n", "#".repeat(level.min(6)), escape(text))
    }

    fn prose(&self, text: &str) -> String {
        format!("{}\n\n", prose(text))
    }

    fn list(&self, items: &[String]) -> String {
        let mut out = String::new();
        for item in items {
            let _ = writeln!(out, "- {}", prose(item));
        }
        out + "\n"
    }

    fn code(&self, text: &str) -> String {
        let mut out = String::new();
        for line in text.lines() {
            let _ = writeln!(out, "    {}", crate::text::visible(line));
        }
        out + "\n"
    }

    fn table(&self, table: &Table) -> String {
        pieces(table, self.columns)
    }

    fn figure(&self, figure: &Figure) -> String {
        let Some(path) = figure.path().filter(|_| self.has_figures) else { return String::new() };
        let title = escape(&figure.title).replace(['[', ']'], "");
        let caption =
            if figure.caption.is_empty() { String::new() } else { self.prose(&figure.caption) };
        format!("![{title}]({path})\n\n{caption}")
    }
}

#[cfg(test)]
mod tests;

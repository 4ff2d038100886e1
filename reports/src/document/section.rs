//! Documents of sections with headings, independent of formats.

use super::figures::Plot;
use super::table::Table;

/// A self-contained document of sections.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// Title of the document.
    pub title: String,
    /// Paragraphs of the introduction; code is enclosed in backticks.
    pub paragraphs: Vec<String>,
    /// Figures of the introduction.
    pub figures: Vec<DocumentFigure>,
    /// Sections of the document.
    pub sections: Vec<Section>,
}

/// A figure of a [`Document`].
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentFigure {
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) plot: Plot,
}

/// A part of a document with a heading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// Heading of the section.
    pub heading: String,
    /// Paragraphs of the section; code is enclosed in backticks.
    pub paragraphs: Vec<String>,
    /// Remarks that qualify the numbers, one sentence each.
    pub notes: Vec<String>,
    /// Figures of the section.
    pub figures: Vec<DocumentFigure>,
    /// Tables, each with its caption.
    pub tables: Vec<(String, Table)>,
    /// Further tables, which pages fold.
    pub details: Vec<(String, Table)>,
}

impl Section {
    /// A section with figures and tables.
    pub(crate) fn of(
        heading: impl Into<String>,
        figures: Vec<DocumentFigure>,
        tables: Vec<(String, Table)>,
    ) -> Self {
        Self { heading: heading.into(), figures, tables, ..Self::default() }
    }

    /// A section with one table that needs no caption.
    pub(crate) fn of_table(heading: impl Into<String>, table: Table) -> Self {
        Self::of(heading, Vec::new(), vec![(String::new(), table)])
    }

    /// Whether the section has neither figures nor rows of tables.
    pub(crate) fn is_empty(&self) -> bool {
        self.figures.is_empty() && self.tables.iter().all(|(_, table)| table.rows.is_empty())
    }
}

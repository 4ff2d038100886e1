//! Markdown: `report.md`, and other documents.

mod document;
mod escape;
mod headline;
mod report;
mod table;

pub use self::document::markdown_document;
pub(crate) use self::headline::headline;
pub use self::table::whole_table;
use super::contents::{Contents, OutFile};

pub(super) fn render(contents: &Contents<'_>) -> Vec<OutFile> {
    vec![OutFile::text("report.md", report::page(contents))]
}

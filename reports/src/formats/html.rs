//! HTML: `index.html`, the pages of encodings and workloads, and documents as pages without scripts.

mod document;
mod interactive;
mod page;
mod pages;
mod parts;
mod plain;
mod records;
mod script;

pub use self::document::html_document;
pub use self::parts::html_table;
pub use self::plain::plain_page;
use super::contents::{Contents, FormatError, OutFile};

pub(super) fn render(contents: &Contents<'_>) -> Result<Vec<OutFile>, FormatError> {
    let (page, pages) = rayon::join(|| page::page(contents), || pages::pages(contents));
    Ok(std::iter::once(OutFile::text("index.html", page?)).chain(pages).collect())
}

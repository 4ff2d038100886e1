//! HTML: `index.html`, the pages of encodings and workloads, and other documents. Pages make no request and have no script.

mod document;
mod pages;
mod parts;
mod plain;

pub use self::document::html_document;
pub(super) use self::pages::render;
pub use self::parts::html_table;
pub use self::plain::plain_page;

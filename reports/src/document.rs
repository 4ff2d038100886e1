//! Texts, tables and figures as data, independent of formats.

pub(crate) mod figures;
pub(crate) mod pages;
mod section;
mod table;
pub mod tables;
pub mod text;

pub use self::section::{Document, DocumentFigure, Section};
pub use self::table::{Table, TableCell};
pub(crate) use self::table::{heads, texts};

//! Texts, tables and figures as data, independent of formats.

pub(crate) mod figures;
mod headline;
mod report;
mod section;
mod table;
pub mod tables;
pub mod text;

pub(crate) use self::headline::headline;
pub(crate) use self::report::report;
pub(crate) use self::section::Page;
pub use self::section::{Document, Element, Figure, Section, Target};
pub use self::table::{Table, TableCell};

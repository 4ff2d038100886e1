//! Texts, tables and figures as data, independent of formats.

pub(crate) mod figures;
mod headline;
pub(crate) mod plot;
mod report;
pub(crate) mod scale;
mod section;
mod table;
pub mod tables;
pub mod text;

pub(crate) use self::headline::headline;
pub use self::plot::Figure;
pub(crate) use self::report::report;
pub(crate) use self::section::Page;
pub use self::section::{AnswerCard, Document, Element, Section};
pub use self::table::{Table, TableCell, Target};

//! Texts, tables and figures as data, independent of formats.

mod figure;
pub(crate) mod figures;
mod headline;
pub(crate) mod plot;
mod report;
pub(crate) mod scale;
mod section;
mod table;
pub mod tables;
mod target;
pub mod text;

pub use self::figure::Figure;
pub(crate) use self::headline::headline;
pub(crate) use self::report::report;
pub(crate) use self::section::Page;
pub use self::section::{AnswerCard, Document, Element, Section};
pub use self::table::{Table, TableCell};
pub use self::target::Target;

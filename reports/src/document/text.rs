//! Sentences of a report.

mod abstract_of;
mod limits;
mod overall;
mod overview;
mod warnings;
mod workload;

pub use self::abstract_of::{AbstractSentence, StatedNumber, abstract_of};
pub(crate) use self::limits::{about, limits};
pub use self::overview::NOTHING;
pub(crate) use self::overview::overview;
pub(crate) use self::warnings::warnings;
pub(crate) use self::workload::{grid_sentence, method, workload_paragraphs};

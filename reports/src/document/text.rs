//! Sentences of a report.

mod limits;
mod overall;
mod overview;
mod warnings;
mod workload;

pub(crate) use self::limits::{about, limits};
pub use self::overview::NOTHING;
pub(crate) use self::overview::overview;
pub(crate) use self::warnings::warnings;
pub(crate) use self::workload::{grid_sentence, method, workload_sentence};

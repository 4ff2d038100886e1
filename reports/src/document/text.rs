//! Sentences of a report.

mod abstract_of;
mod answers;
mod encoding;
mod leaders;
mod limits;
mod method;
mod unseen;
mod uses;
mod verdict;
mod warnings;

pub use self::abstract_of::{AbstractSentence, StatedNumber, abstract_of};
pub(crate) use self::answers::{answers, asked};
pub(crate) use self::encoding::encoding;
pub use self::encoding::findings;
pub(crate) use self::leaders::leaders;
pub(crate) use self::limits::{about, limits};
pub(crate) use self::method::method;
pub(crate) use self::unseen::unseen;
pub use self::uses::{in_short, uses};
pub use self::verdict::NOTHING;
pub(crate) use self::verdict::{lead, verdict};
pub(crate) use self::warnings::warnings;

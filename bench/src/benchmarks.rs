//! Published benchmarks from files that a user has: questions with options, and texts with expected answers.
//!
//! No data comes with this program. One JSON object a line, in the fields that these data sets have:
//!
//! | like | fields |
//! | --- | --- |
//! | SCROLLS | `input`, `output` or `outputs` |
//! | QuALITY | `article`, `questions` of `question`, `options`, `gold_label` (from 1) |
//! | MMLU | `question`, `choices` (texts), `answer` (number from 0, or a letter) |
//! | ARC | `question` (a text, or `stem` and `choices`), `choices` of `text` and `label`, `answerKey` |

mod ask;
mod items;
mod scores;

pub use ask::{ItemResult, BenchmarkError, AskSettings, Summary, ask};
pub use items::{BenchmarkItem, ItemError, read};
pub use scores::{Rouge, exact_match, f1, rouge};

//! Published benchmarks from local files: questions with options, and texts with expected answers.
//!
//! The program contains no benchmark data. Files are JSON Lines with the fields of one of these data sets:
//!
//! | data set | fields |
//! | --- | --- |
//! | SCROLLS | `input`, `output` or `outputs`, optional `id` (outputs of one id are references of one item) |
//! | QuALITY | `article`, `questions` of `question`, `options`, `gold_label` (from 1) |
//! | MMLU | `question`, `choices` (texts), `answer` (number from 0, or a letter), optional `subject` |
//! | ARC | `question` (a text, or `stem` and `choices`), `choices` of `text` and `label`, `answerKey` |

mod ask;
mod items;
mod mmlu;
mod prompt;
mod scores;
mod summary;

pub use ask::{AskSettings, ItemResult, ask, prompt_len};
pub use items::{BenchmarkItem, read};
pub use prompt::{PromptStyle, Shots};
pub use scores::{Rouge, exact_match, f1, rouge};
pub use summary::{MeanScore, Scores, Summary};

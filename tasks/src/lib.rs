//! Makes what is learned: seeded task generators and text corpora, as integer tokens with a mask of what is scored.
//!
//! | module | job |
//! | --- | --- |
//! | [`task`] | the contract: [`Task`], its facts ([`TaskMeta`]) and its [`Split`]s |
//! | [`suite`] | the list of tasks, one file each, and [`TaskConfig`] |
//! | [`generator`] | [`Generator`]: what a task that is drawn has to say, and the [`Task`] made of it |
//! | [`strings`] | tasks on strings, trained to a length and tested beyond it |
//! | [`haystack`] | filler text, and statements hidden in it |
//! | [`registry`] | the macro behind the list: ids, parsing, building |
//! | [`sample`] | [`Sample`] and the padded [`Batch`] |
//! | [`corpus`] | published texts: fetched, verified, kept |
//! | [`data`] | documents in parts, and how files are read into them |
//! | [`tokenizer`] | text to tokens and back |
//! | [`tokens`] | tokens kept in the cache folder, mapped into memory |
//! | [`mod@draw`] | a sample as two lines of text |
//! | [`error`] | [`TaskError`] |
//!
//! ```
//! use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//! use tasks::{Batch, TaskConfig};
//!
//! let task = TaskConfig::from_id("flip-flop")?.build()?;
//! task.check_len(64)?;
//! let mut rng = ChaCha8Rng::seed_from_u64(7);
//! let samples: Vec<_> = (0..4).map(|_| task.train_sample(64, &mut rng)).collect();
//! let batch = Batch::collate(&samples);
//! assert_eq!((batch.batch_size, batch.len), (4, 63));
//!
//! let sparse = task.eval_set("sparse", 128, 10, 7)?;
//! assert_eq!(sparse.len(), 10);
//! # Ok::<(), tasks::TaskError>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

mod caught;
pub mod corpus;
pub mod data;
pub mod draw;
pub mod error;
pub mod generator;
pub mod haystack;
mod random;
pub mod registry;
pub mod sample;
pub mod strings;
pub mod suite;
pub mod task;
#[cfg(test)]
pub(crate) mod testing;
pub mod tokenizer;
pub mod tokens;

pub use corpus::{CorpusError, CorpusMeta};
pub use data::DataError;
pub use draw::draw;
pub use error::TaskError;
pub use generator::{Generated, Generator};
pub use sample::{Batch, Sample};
pub use suite::{ALL, TaskConfig, card};
pub use task::{Headline, Split, Task, TaskMeta, TokenSlice};
pub use tokenizer::TokenizerError;
pub use tokens::CacheError;

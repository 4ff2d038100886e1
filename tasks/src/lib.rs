//! Tasks to learn: seeded task generators and text corpora, as integer tokens with a mask of the tokens to predict.
//!
//! | item | purpose |
//! | --- | --- |
//! | [`Task`] | a task: training samples, evaluation sets, facts ([`TaskMeta`]) and [`Split`]s |
//! | [`Generator`] | a task whose samples are drawn, defined by the settings that draw them |
//! | [`StringRule`] | a task on strings, trained up to a length and evaluated beyond it |
//! | [`suite`] | the built-in tasks, one file each |
//! | [`TaskConfig`], [`TaskRegistry`] | settings of any task, read by the task's id; the list of ids is open |
//! | [`EvaluatedSplit`] | which samples of an evaluation lie outside of the training distribution |
//! | [`Sample`], [`Batch`] | token sequences with their masks |
//! | [`corpus`] | published texts: fetched, verified, stored |
//! | [`data`] | documents in training, validation and test parts, read from files |
//! | [`tokenizer`], [`tokens`] | text to tokens and back; tokens cached on disk |
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
mod draw;
mod error;
mod files;
mod generator;
mod haystack;
mod nearest;
mod passage;
mod random;
pub mod registry;
mod sample;
mod settings;
mod strings;
pub mod suite;
mod task;
#[cfg(test)]
pub(crate) mod testing;
pub mod tokenizer;
pub mod tokens;
mod unseen;
pub mod vocabulary;

pub use corpus::{CorpusError, CorpusMeta};
pub use data::DataError;
pub use draw::draw;
pub use error::TaskError;
pub use files::{
    FileError, help_if_full, json_lines, read_text, unless_absent, without_mark, write_in,
};
pub use generator::{Generated, Generator};
pub use haystack::Filler;
pub use passage::PassageQuestion;
pub use registry::TaskRegistry;
pub use sample::{Batch, Sample};
pub use settings::{TaskConfig, TaskSettings};
pub use strings::{StringConfig, StringRule};
pub use suite::{ALL, card};
pub use task::{Headline, MAX_LEN, Split, Task, TaskMeta, TokenSlice};
pub use tokenizer::TokenizerError;
pub use tokens::CacheError;
pub use unseen::EvaluatedSplit;

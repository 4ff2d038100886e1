//! The instrument: a decoder, its trainer and evaluator, suites of runs, and the `pe-bench` command.
//!
//! | Module | What it holds |
//! | --- | --- |
//! | [`model`] | causal decoder under any combination of position encodings |
//! | [`cell`](mod@cell) | one run's complete configuration, and its key |
//! | [`pretrained`], [`lora`] | models that were trained elsewhere, and low-rank adapters |
//! | [`extend`], [`generate`](mod@generate), [`benchmarks`] | what is done with them |
//! | [`train`], [`evaluate`] | what happens to a model |
//! | [`runner`] | a cell from configuration to record |
//! | [`counts`], [`allocations`] | what a step costs, as counts |
//! | [`inspect`] | a look inside a trained model |
//! | [`suite`] | TOML files of encodings x workloads x seeds |
//! | [`checkpoint`] | what a training needs to go on after its process died |
//! | [`sweep`] | many cells, in worker processes |
//! | [`cli`] | the command line |
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

pub mod allocations;
pub mod backend;
pub mod benchmarks;
pub mod cell;
pub mod checkpoint;
pub mod cli;
pub mod counts;
pub mod encodings;
pub mod evaluate;
pub mod extend;
pub mod flops;
pub mod generate;
pub mod host;
pub mod inspect;
pub mod lora;
pub mod model;
pub mod optimizer;
pub mod pretrained;
mod process;
pub mod runner;
mod scored;
mod signals;
pub mod speed;
pub mod streams;
pub mod suite;
pub mod sweep;
pub mod train;

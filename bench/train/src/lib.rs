//! Training and evaluation of the decoder of [`pe_zoo::model`], and suites of experiments.
//!
//! | Module | Contents |
//! | --- | --- |
//! | [`encodings`] | the registry of encodings that this program knows |
//! | [`experiment`] | a run as data: its complete configuration and its key |
//! | [`weights`] | parameters as named tensors, and their files |
//! | [`mod@run`] | the runner: training, checkpoints, evaluation, record |
//! | [`suite`] | TOML files of encodings x workloads x seeds |
//! | [`backend`], [`host`] | backends and their devices; processor and memory of this machine |
//! | [`names`] | messages about names that do not exist |
//! | [`streams`] | random generators of a run |
//! | [`allocations`] | memory requests of a training step |
//! | [`flops`], [`speed`] | operations by formula; measured time and memory of a step |
//! | [`inspect`] | attention maps, gates and stability of a trained model |
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

pub mod allocations;
pub mod backend;
pub mod encodings;
pub mod experiment;
pub mod flops;
pub mod host;
pub mod inspect;
pub mod names;
pub mod run;
pub mod speed;
pub mod streams;
pub mod suite;
pub mod weights;

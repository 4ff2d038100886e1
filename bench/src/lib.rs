//! Decoder, trainer and evaluator, suites of experiments, and the `pe-bench` command.
//!
//! | Module | Contents |
//! | --- | --- |
//! | [`model`] | causal decoder under any combination of position encodings |
//! | [`encodings`] | the registry of encodings that this program knows |
//! | [`experiment`] | a run as data: its complete configuration and its key |
//! | [`weights`] | parameters as named tensors, and their files |
//! | [`mod@run`] | the runner: training, checkpoints, evaluation, record |
//! | [`suite`] | TOML files of encodings x workloads x seeds |
//! | [`sweep`] | many runs in worker processes: queue, claims, watchdog |
//! | [`cluster`] | batch scripts for Slurm, manifests for Kubernetes |
//! | [`backend`], [`host`] | backends and their devices; processor and memory of this machine |
//! | [`streams`] | random generators of a run |
//! | [`pretrained`], [`lora`] | models trained elsewhere, low-rank adapters |
//! | [`extend`], [`generate`](mod@generate), [`benchmarks`] | evaluation and use of pretrained models |
//! | [`export`] | trained models as files for PyTorch and transformers |
//! | [`allocations`], [`instructions`] | costs of a training step as counts |
//! | [`flops`], [`speed`] | operations by formula; measured time and memory of a step |
//! | [`inspect`] | attention maps, gates and stability of a trained model |
//! | [`cli`] | the command line |
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

pub mod allocations;
pub mod backend;
pub mod benchmarks;
pub mod cli;
pub mod cluster;
pub mod encodings;
pub mod experiment;
pub mod export;
pub mod extend;
pub mod flops;
pub mod generate;
pub mod host;
pub mod inspect;
pub mod instructions;
pub mod lora;
pub mod model;
pub mod pretrained;
mod process;
pub mod run;
mod signals;
pub mod speed;
pub mod streams;
pub mod suite;
pub mod sweep;
pub mod weights;

pub use tasks::FileError;

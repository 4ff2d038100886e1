//! Checkpoints: everything that the further course of a training depends on, in files that are whole
//! or are not believed.
//!
//! `<results>/checkpoints/<key>/<step>.ckpt`, the last two of each cell. A checkpoint holds the
//! weights, the optimizer's moments, the random numbers and the [`TrainProgress`](crate::run::train::TrainProgress); a
//! training that goes on from it gives the same bits as one that was never stopped, on any number of
//! threads (`bench/tests/resume.rs`).

mod checkpointer;
mod file;
mod folder;
mod rng_state;
mod state;

pub use checkpointer::{Checkpointer, Moment, Resumed};
pub use file::{Damage, VERSION};
pub use folder::{CheckpointError, CheckpointFolder};
pub use state::{CheckpointMeta, StateError, pack, unpack};

//! Checkpoints: complete training state in files protected by a checksum.
//!
//! The last two of each cell are kept in `<results>/checkpoints/<key>/<step>.ckpt`. A checkpoint contains the weights,
//! the optimizer's moments, the random generators and the [`TrainProgress`](crate::run::train::TrainProgress). A
//! resumed training gives the same bits as an uninterrupted one, with any number of threads (`bench/train/tests/resume.rs`).

mod checkpointer;
mod file;
mod folder;
mod state;

pub use checkpointer::{Checkpointer, Moment, Resumed};
pub use file::VERSION;
pub use folder::CheckpointFolder;
pub use state::{CheckpointMeta, pack, unpack};

//! Serialized training state: a safetensors file with the weights and the optimizer's moments, and a CBOR header with
//! everything else.
//!
//! CBOR preserves every bit of a float, unlike JSON (points of curves have the 15 digits of records).

use anyhow::{Context as _, Result, anyhow};
use serde::{Deserialize, Serialize};

use super::rng_state::RngState;
use crate::run::optimizer::Optimizer;
use crate::run::train::{TrainProgress, TrainState};
use crate::weights::{NamedTensors, collect, restore};

/// Name of the header among the tensors.
const HEADER: &str = "state";

/// Step and time of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointMeta {
    /// Optimizer steps done so far.
    pub step: usize,
    /// Seconds that the cell has taken in all attempts, validations included.
    pub cell_seconds: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateHeader {
    kept: CheckpointMeta,
    #[serde(rename = "course")]
    progress: TrainProgress,
    data: RngState,
    dropout: RngState,
    positions: RngState,
    optimizer_steps: u32,
}

/// Serializes the state of a training. Frozen weights are left out.
///
/// # Errors
///
/// If a tensor cannot be read or stored.
pub fn pack(state: &TrainState, cell_seconds: f64) -> Result<Vec<u8>> {
    let mut tensors = collect(&state.model, true, &state.optimizer)?;
    let header = StateHeader {
        kept: CheckpointMeta { step: state.progress.step, cell_seconds },
        progress: state.progress.clone(),
        data: RngState::of(&state.data_rng),
        dropout: RngState::of(&state.dropout_rng),
        positions: RngState::of(&state.position_rng),
        optimizer_steps: state.optimizer.steps(),
    };
    let mut bytes = Vec::new();
    ciborium::into_writer(&header, &mut bytes)?;
    tensors.insert_blob(HEADER, bytes);
    tensors.bytes()
}

/// Replaces the state of a training that has just begun by a serialized one.
///
/// # Errors
///
/// If the bytes are not of such a state; `state` is then unchanged.
pub fn unpack(bytes: &[u8], state: &mut TrainState) -> Result<CheckpointMeta> {
    let tensors = NamedTensors::parse(bytes)?;
    let header = tensors.blob(HEADER).context("the checkpoint has no header")?;
    let header: StateHeader = ciborium::from_reader(header)
        .map_err(|error| anyhow!("cannot read the header of the checkpoint: {error}"))?;
    let mut optimizer = Optimizer::after(header.optimizer_steps);
    state.model = restore(state.model.clone(), &tensors, |_| true, true, &mut optimizer)?;
    state.optimizer = optimizer;
    state.progress = header.progress;
    state.data_rng = header.data.rng();
    state.dropout_rng = header.dropout.rng();
    state.position_rng = header.positions.rng();
    Ok(header.kept)
}

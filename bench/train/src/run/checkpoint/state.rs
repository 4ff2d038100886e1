//! Serialized training state: a safetensors file with the weights and the optimizer's moments, and a CBOR header with
//! everything else.
//!
//! CBOR preserves every bit of a float, unlike JSON (points of curves have the 15 digits of records).

use anyhow::{Context as _, Result, anyhow};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

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

/// Seed, stream and position of a ChaCha8 generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RngState {
    seed: [u8; 32],
    stream: u64,
    /// Words of 32 bits drawn so far; below 2^68.
    word: u128,
}

impl RngState {
    pub(super) fn of(rng: &ChaCha8Rng) -> Self {
        Self { seed: rng.get_seed(), stream: rng.get_stream(), word: rng.get_word_pos() }
    }

    pub(super) fn rng(&self) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::from_seed(self.seed);
        rng.set_stream(self.stream);
        rng.set_word_pos(self.word);
        rng
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn a_generator_goes_on_from_every_standpoint() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        rng.set_stream(7);
        for drawn in 0..200 {
            let mut again = RngState::of(&rng).rng();
            let mut copy = rng.clone();
            for _ in 0..40 {
                assert_eq!(copy.random::<u64>(), again.random::<u64>(), "after {drawn}");
                assert_eq!(copy.random::<u32>(), again.random::<u32>(), "after {drawn}");
            }
            let _: u32 = rng.random();
        }
    }
}

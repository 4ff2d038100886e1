//! Analytic cost of a model under an encoding: one multiply-accumulate is two operations, the
//! whole square of the attention is counted, and a training step is three forward passes.

use pe_zoo::{Dims, EncodingConfig};
use reports::FlopCount;

use crate::model::ModelConfig;

/// Operations of one training step over `batch_size` sequences of `len` tokens.
pub fn count<C: EncodingConfig>(
    encoding: &C,
    model: &ModelConfig,
    dims: &Dims,
    vocabulary: usize,
    batch_size: usize,
    len: usize,
) -> FlopCount {
    let macs = model.forward_macs(vocabulary, len) + encoding.cost(dims, len).macs();
    FlopCount {
        train_step: 3 * 2 * macs * batch_size as u64,
        forward_per_token: 2 * macs / (len as u64).max(1),
    }
}

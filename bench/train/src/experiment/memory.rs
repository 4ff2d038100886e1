//! Memory that a cell is expected to take, without building its model.

use pe_zoo::Combination;
use pe_zoo::attention::{Engine, Support};
use pe_zoo::probe;
use tasks::Task;

use super::Experiment;
use crate::model::ActivationKind;

/// Bytes of a process that trains the smallest model: the program, its threads and freed buffers.
const BASE: u64 = 96 << 20;

/// Tensors as large as the weights: weights, gradient, both moments of AdamW, and a copy while they are written.
const COPIES: usize = 5;

/// Tensors of the model's width that a block keeps for the backward pass, for each token: residuals, both norms,
/// projections, attention and their gradients.
const WIDTHS: usize = 16;

/// Tensors of the size of the logits of attention, where they exist as a whole: logits, weights and their gradients.
const ATTENTION: usize = 4;

impl Experiment {
    /// Bytes that a cell is expected to take, half of them in reserve: with 32 bits for each number, the weights with the
    /// optimizer's moments, and the activations of the larger of a training step and an evaluation.
    pub fn memory_bytes(&self, task: &dyn Task) -> u64 {
        let (model, vocabulary) = (&self.model, task.vocab_size());
        let own = self.encoding.param_count(&self.dims(task)).unwrap_or(0);
        let weights = COPIES * (model.param_count(vocabulary) + own);
        let ways_in = if model.activation == ActivationKind::SwiGlu { 2 } else { 1 };
        let of_block = WIDTHS * model.width + (ways_in + 1) * model.hidden();
        let [train_len, longest] = self.token_lens(task);
        let is_whole = self.attending() == Engine::Reference || is_dense(&self.encoding);
        // Activations of a batch of sequences; the backward pass keeps those of every block.
        let batch = |sequences: usize, len: usize, blocks: usize| {
            let tokens = sequences.saturating_mul(len);
            let of_token = blocks * of_block + 3 * vocabulary + 4 * model.width;
            let pairs = if is_whole { blocks * model.heads * ATTENTION * len } else { 0 };
            tokens.saturating_mul(of_token.saturating_add(pairs))
        };
        let training = batch(self.train.at_once(), train_len, model.layers);
        let evaluation = batch(self.eval.batch_size.min(self.eval.samples), longest, 1);
        let numbers = weights.saturating_add(training.max(evaluation)) as u64;
        let bytes = BASE.saturating_add(numbers.saturating_mul(size_of::<f32>() as u64));
        bytes.saturating_add(bytes / 2)
    }
}

/// Whether a part of an encoding makes tensors of the size of the logits; also if that is unknown.
fn is_dense(encoding: &Combination) -> bool {
    let is_fused = |part| {
        probe::support(part).is_ok_and(|support| support.cpu.max(support.gpu) == Support::Fused)
    };
    !encoding.parts().iter().all(is_fused)
}

//! Forward and backward pass of one micro-batch.

use burn::optim::GradientsParams;
use burn::tensor::Device;
use pe_zoo::Positions;
use rand_chacha::ChaCha8Rng;
use tasks::Batch;

use crate::run::scored::Scored;
use pe_zoo::model::{Decoder, Dropout};

/// A micro-batch with the random choices of its pass.
pub(super) struct MicroBatch {
    batch: Batch,
    at: Positions,
    /// Labels of the whole step, over which the loss is a mean; `None`: those of this batch.
    labels: Option<usize>,
    dropout: f64,
    dropout_rng: ChaCha8Rng,
    /// Words that the generator of dropout has drawn in all after the pass.
    dropout_end: u128,
}

/// Result of the pass of a micro-batch.
pub(super) struct MicroBatchResult {
    /// Contribution of the micro-batch to the mean loss of the step.
    pub(super) loss: f64,
    /// Gradients of the loss; empty if it is not finite.
    pub(super) gradients: GradientsParams,
    /// Generator of dropout masks after the pass.
    pub(super) dropout_rng: ChaCha8Rng,
}

impl MicroBatch {
    /// Micro-batch at its positions. `draws` is the number of words that the pass draws from the generator of dropout.
    pub(super) fn new(
        batch: Batch,
        at: Positions,
        labels: Option<usize>,
        dropout: f64,
        dropout_rng: ChaCha8Rng,
        draws: u128,
    ) -> Self {
        let dropout_end = dropout_rng.get_word_pos() + draws;
        Self { batch, at, labels, dropout, dropout_rng, dropout_end }
    }

    /// Generator of dropout masks as the pass leaves it, known before it runs.
    pub(super) fn rng_after(&self) -> ChaCha8Rng {
        let mut rng = self.dropout_rng.clone();
        rng.set_word_pos(self.dropout_end);
        rng
    }

    /// Runs the pass on a copy of the model, on its autodiff device.
    ///
    /// # Panics
    ///
    /// If the model draws another number of dropout masks than [`Decoder::dropout_draws`] states.
    pub(super) fn run(mut self, model: &Decoder, device: &Device) -> MicroBatchResult {
        let scored = Scored::of(&self.batch, device);
        let dropout = Dropout { rate: self.dropout, rng: Some(&mut self.dropout_rng) };
        let losses = scored.losses(model, &self.at, dropout);
        assert_eq!(self.dropout_rng.get_word_pos(), self.dropout_end, "words drawn by dropout");
        let loss = match self.labels {
            None => losses.mean(),
            Some(labels) => losses.sum().div_scalar(labels as f64),
        };
        let value = f64::from(loss.clone().into_scalar::<f32>());
        let gradients = if value.is_finite() {
            GradientsParams::from_grads(loss.backward(), model)
        } else {
            GradientsParams::new()
        };
        MicroBatchResult { loss: value, gradients, dropout_rng: self.dropout_rng }
    }
}

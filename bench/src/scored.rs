//! The predictions that a batch asks for, in training and in evaluation.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use pe_zoo::attention::Weights;
use pe_zoo::{PositionEncoding, Positions};
use tasks::Batch;

use crate::model::{Decoder, Dropout};

/// Predictions asked for by a batch.
pub(crate) struct Scored {
    /// Rows of `[B * T]` whose label is scored, `[N]`.
    pub(crate) rows: Tensor<1, Int>,
    /// Their labels, `[N]`.
    pub(crate) labels: Tensor<1, Int>,
    /// Token ids, `[B, T]`.
    pub(crate) inputs: Tensor<2, Int>,
}

impl Scored {
    pub(crate) fn of(batch: &Batch, device: &Device) -> Self {
        let ints = |values: Vec<i32>| {
            let len = values.len();
            Tensor::<1, Int>::from_data(TensorData::new(values, [len]), device)
        };
        let rows = (0..batch.scored.len()).filter(|row| batch.scored[*row]).collect::<Vec<_>>();
        let labels = rows.iter().map(|row| batch.targets[*row] as i32).collect();
        Self {
            labels: ints(labels),
            rows: ints(rows.into_iter().map(|row| row as i32).collect()),
            inputs: ints(batch.inputs.iter().map(|t| *t as i32).collect())
                .reshape([batch.batch_size, batch.len]),
        }
    }

    /// Log-probabilities over the vocabulary at the scored rows, `[N, V]`.
    pub(crate) fn log_probabilities<P: PositionEncoding>(
        &self,
        model: &Decoder<P>,
        at: &Positions,
        dropout: Dropout<'_>,
    ) -> Tensor<2> {
        let hidden = model.forward(self.inputs.clone(), at, None, dropout, Weights::Drop).hidden;
        let [batch, tokens, width] = hidden.dims();
        let [scored] = self.rows.dims();
        let rows = hidden.reshape([batch * tokens, width]);
        let rows = if scored == batch * tokens { rows } else { rows.select(0, self.rows.clone()) };
        log_softmax(model.logits(rows), 1)
    }

    /// Negative log-likelihood of each scored label, `[N]`.
    pub(crate) fn losses(&self, log_probabilities: Tensor<2>) -> Tensor<1> {
        log_probabilities.gather(1, self.labels.clone().unsqueeze_dim(1)).squeeze_dim::<1>(1).neg()
    }
}

//! Scored predictions of a batch, in training and in evaluation.

use std::fmt::Debug;

use burn::tensor::{Device, Int, Tensor, TensorData};
use pe_zoo::Positions;
use pe_zoo::ops::cross_entropy;
use tasks::Batch;

use pe_zoo::model::{Decoder, Dropout};

/// Maximum number of logits computed at once in an evaluation (128 MiB).
const LOGITS_AT_ONCE: usize = 1 << 25;

/// Positions of a batch; equal ones of the last batch are reused, and with them the values that encodings have cached for
/// them.
pub(crate) fn reused(last: &mut Option<Positions>, at: Positions) -> Positions {
    match last {
        Some(last) if *last == at => last.clone(),
        _ => last.insert(at).clone(),
    }
}

/// Token ids on a device, `[T]`.
pub fn token_ids(tokens: &[u32], device: &Device) -> Tensor<1, Int> {
    let ids = tokens.iter().map(|token| *token as i32).collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(ids, [tokens.len()]), device)
}

/// Reads numbers back from their device.
///
/// # Errors
/// With the device's message.
pub fn read<const D: usize>(tensor: Tensor<D>) -> anyhow::Result<Vec<f32>> {
    let fault = |error: &dyn Debug| {
        anyhow::anyhow!("results could not be read back from the device: {error:?}")
    };
    let data = tensor.try_into_data().map_err(|error| fault(&error))?;
    data.convert::<f32>().try_into_vec::<f32>().map_err(|error| fault(&error))
}

/// Scored predictions of a batch.
pub(crate) struct Scored {
    /// Rows of `[B * T]` whose label is scored, `[N]`.
    pub(crate) rows: Tensor<1, Int>,
    /// Labels of the scored rows, `[N]`.
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

    /// Negative log-likelihood of each scored label, `[N]`.
    pub(crate) fn losses(
        &self,
        model: &Decoder,
        at: &Positions,
        dropout: Dropout<'_>,
    ) -> Tensor<1> {
        cross_entropy(model.logits(self.hidden(model, at, dropout)), self.labels.clone())
    }

    /// Iterates over pieces of the scored rows: logits `[n, V]` and scored labels `[n]`. All rows at once could take
    /// gigabytes.
    pub(crate) fn in_pieces<'a>(
        &'a self,
        model: &'a Decoder,
        at: &Positions,
    ) -> impl Iterator<Item = (Tensor<2>, Tensor<1, Int>)> + 'a {
        self.in_pieces_of((LOGITS_AT_ONCE / model.vocabulary().max(1)).max(1), model, at)
    }

    fn in_pieces_of<'a>(
        &'a self,
        rows: usize,
        model: &'a Decoder,
        at: &Positions,
    ) -> impl Iterator<Item = (Tensor<2>, Tensor<1, Int>)> + 'a {
        let hidden = self.hidden(model, at, Dropout::off());
        let [scored, _width] = hidden.dims();
        (0..scored).step_by(rows).map(move |start| {
            let piece = start..(start + rows).min(scored);
            let labels = self.labels.clone().slice_dim(0, piece.clone());
            (model.logits(hidden.clone().slice_dim(0, piece)), labels)
        })
    }

    /// Hidden states of the scored rows, `[N, C]`.
    fn hidden(&self, model: &Decoder, at: &Positions, dropout: Dropout<'_>) -> Tensor<2> {
        model.hidden_of(self.inputs.clone(), &self.rows, at, dropout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Stream, stream};
    use pe_zoo::Combination;
    use pe_zoo::model::ModelConfig;
    use pe_zoo::testkit::close::{self, F32_REORDERED, numbers};
    use tasks::Sample;

    #[test]
    fn pieces_are_the_whole_in_its_order() {
        let device = Device::flex();
        let encoding = Combination::parse("rope").unwrap();
        let config = ModelConfig::default();
        let model = Decoder::new(
            &config,
            7,
            &encoding,
            &config.dims(12, 12),
            &mut stream(1, Stream::Model),
            &mut stream(1, Stream::Encoding),
            &device,
        )
        .unwrap();
        let sample = |length: u32| Sample {
            tokens: (0..length).map(|n| n * n % 7).collect(),
            scored: (0..length).map(|n| n % 3 > 0).collect(),
            slices: Vec::new(),
        };
        let scored = Scored::of(&Batch::collate(&[sample(12), sample(9)]), &device);
        let at = Positions::contiguous(0, 11);
        let hidden = scored.hidden(&model, &at, Dropout::off());
        let whole = numbers(model.logits(hidden));
        let losses = numbers(scored.losses(&model, &at, Dropout::off()));
        assert_eq!(losses.len(), 14);
        for rows in [1, 4, 14, 100] {
            let (mut found, mut found_losses) = (Vec::new(), Vec::new());
            for (logits, labels) in scored.in_pieces_of(rows, &model, &at) {
                let [count, _vocabulary] = logits.dims();
                assert!(count <= rows);
                found.extend(numbers(logits.clone()));
                found_losses.extend(numbers(cross_entropy(logits, labels)));
            }
            close::compare(&found, &whole, F32_REORDERED).unwrap();
            close::compare(&found_losses, &losses, F32_REORDERED).unwrap();
        }
    }
}

//! The weights of a Llama-type model, whichever file they lie in.

use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};

use super::PretrainedError;
use super::settings::Settings;
use crate::model::{BlockWeights, DecoderWeights};

/// One weight of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// `[V, C]`.
    Embedding,
    /// `[C]`.
    LastNorm,
    /// `[V, C]`.
    Head,
    /// Of a layer.
    Layer(usize, Part),
}

/// One weight of a layer. Maps lie as `[outputs, inputs]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    AttentionNorm,
    Query,
    Key,
    Value,
    Out,
    FeedForwardNorm,
    Gate,
    Up,
    Down,
}

/// A file of weights.
pub(super) trait Source {
    /// Where it lies, for errors.
    fn path(&self) -> &Path;

    /// Takes a weight out, in row-major order and in the half-split layout of rotations.
    fn take(&mut self, slot: Slot, shape: &[usize]) -> Result<Vec<f32>, PretrainedError>;

    /// Names of the weights that nobody took.
    fn left(&self) -> Vec<String>;
}

/// Names shown of the weights that nobody took.
const NAMES_SHOWN: usize = 3;

/// Takes all weights out of a source, and refuses one that has more.
pub(super) fn read(
    settings: &Settings,
    source: &mut dyn Source,
    device: &Device,
) -> Result<DecoderWeights, PretrainedError> {
    let model = &settings.model;
    let (width, kv_width, hidden) = (model.width, model.kv_width(), model.hidden());
    let embedded = [settings.vocabulary, width];
    let mut reader = Reader { source, device };
    let embedding = reader.rows(&[(Slot::Embedding, settings.vocabulary)], width)?;
    let mut blocks = Vec::new();
    for layer in 0..model.layers {
        let slot = |part| Slot::Layer(layer, part);
        let qkv = [
            (slot(Part::Query), width),
            (slot(Part::Key), kv_width),
            (slot(Part::Value), kv_width),
        ];
        blocks.push(BlockWeights {
            attention_norm: reader.gain(slot(Part::AttentionNorm), width)?,
            qkv: reader.rows(&qkv, width)?.transpose(),
            out: reader.rows(&[(slot(Part::Out), width)], width)?.transpose(),
            feed_forward_norm: reader.gain(slot(Part::FeedForwardNorm), width)?,
            up: reader
                .rows(&[(slot(Part::Gate), hidden), (slot(Part::Up), hidden)], width)?
                .transpose(),
            down: reader.rows(&[(slot(Part::Down), width)], hidden)?.transpose(),
        });
    }
    let last_norm = reader.gain(Slot::LastNorm, width)?;
    let head = if model.tied_head {
        None
    } else {
        Some(reader.rows(&[(Slot::Head, embedded[0])], width)?.transpose())
    };
    let left = source.left();
    if !left.is_empty() {
        return Err(PretrainedError::UnexpectedTensors {
            path: source.path().to_owned(),
            count: left.len(),
            names: left.into_iter().take(NAMES_SHOWN).collect(),
        });
    }
    Ok(DecoderWeights { embedding, blocks, last_norm, head })
}

struct Reader<'a> {
    source: &'a mut dyn Source,
    device: &'a Device,
}

impl Reader<'_> {
    fn gain(&mut self, slot: Slot, width: usize) -> Result<Tensor<1>, PretrainedError> {
        let values = self.source.take(slot, &[width])?;
        Ok(Tensor::from_data(TensorData::new(values, [width]), self.device))
    }

    /// Maps below each other, `[sum of outputs, inputs]`.
    fn rows(
        &mut self,
        slots: &[(Slot, usize)],
        inputs: usize,
    ) -> Result<Tensor<2>, PretrainedError> {
        let mut values = Vec::new();
        let mut rows = 0;
        for (slot, outputs) in slots {
            let taken = self.source.take(*slot, &[*outputs, inputs])?;
            rows += outputs;
            if values.is_empty() {
                values = taken;
            } else {
                values.extend(taken);
            }
        }
        Ok(Tensor::from_data(TensorData::new(values, [rows, inputs]), self.device))
    }
}

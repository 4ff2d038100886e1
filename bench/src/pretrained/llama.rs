//! The weights of a Llama-type model, whichever file they lie in.

use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};

use super::PretrainedError;
use super::settings::LlamaSettings;
use crate::model::{BlockWeights, DecoderWeights};

/// One weight of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WeightId {
    /// `[V, C]`.
    Embedding,
    /// `[C]`.
    LastNorm,
    /// `[V, C]`.
    Head,
    /// Of a layer.
    Layer(usize, LayerWeight),
}

/// One weight of a layer. Maps lie as `[outputs, inputs]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LayerWeight {
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
pub(super) trait WeightSource {
    /// Where it lies, for errors.
    fn path(&self) -> &Path;

    /// Takes a weight out, in row-major order and in the half-split layout of rotations.
    fn take(&mut self, slot: WeightId, shape: &[usize]) -> Result<Vec<f32>, PretrainedError>;

    /// Names of the weights that nobody took.
    fn left(&self) -> Vec<String>;
}

/// Names shown of the weights that nobody took.
const NAMES_SHOWN: usize = 3;

/// Takes all weights out of a source, and refuses one that has more.
pub(super) fn read(
    settings: &LlamaSettings,
    source: &mut dyn WeightSource,
    device: &Device,
) -> Result<DecoderWeights, PretrainedError> {
    let model = &settings.model;
    let (width, kv_width, hidden) = (model.width, model.kv_width(), model.hidden());
    let embedded = [settings.vocabulary, width];
    let mut reader = WeightReader { source, device };
    let embedding = reader.rows(&[(WeightId::Embedding, settings.vocabulary)], width)?;
    let mut blocks = Vec::new();
    for layer in 0..model.layers {
        let slot = |part| WeightId::Layer(layer, part);
        let qkv = [
            (slot(LayerWeight::Query), width),
            (slot(LayerWeight::Key), kv_width),
            (slot(LayerWeight::Value), kv_width),
        ];
        blocks.push(BlockWeights {
            attention_norm: reader.gain(slot(LayerWeight::AttentionNorm), width)?,
            qkv: reader.rows(&qkv, width)?.transpose(),
            out: reader.rows(&[(slot(LayerWeight::Out), width)], width)?.transpose(),
            feed_forward_norm: reader.gain(slot(LayerWeight::FeedForwardNorm), width)?,
            up: reader
                .rows(&[(slot(LayerWeight::Gate), hidden), (slot(LayerWeight::Up), hidden)], width)?
                .transpose(),
            down: reader.rows(&[(slot(LayerWeight::Down), width)], hidden)?.transpose(),
        });
    }
    let last_norm = reader.gain(WeightId::LastNorm, width)?;
    let head = if model.tied_head {
        None
    } else {
        Some(reader.rows(&[(WeightId::Head, embedded[0])], width)?.transpose())
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

struct WeightReader<'a> {
    source: &'a mut dyn WeightSource,
    device: &'a Device,
}

impl WeightReader<'_> {
    fn gain(&mut self, slot: WeightId, width: usize) -> Result<Tensor<1>, PretrainedError> {
        let values = self.source.take(slot, &[width])?;
        Ok(Tensor::from_data(TensorData::new(values, [width]), self.device))
    }

    /// Maps below each other, `[sum of outputs, inputs]`.
    fn rows(
        &mut self,
        slots: &[(WeightId, usize)],
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

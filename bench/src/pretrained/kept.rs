//! Models that this program trained, from their kept weights.

use std::collections::BTreeMap;
use std::fmt;

use burn::tensor::{Device, GradientCheckpointingStrategy};
use pe_zoo::zoo::rope::{self, Rope};
use pe_zoo::{Combination, PositionEncoding};
use rand_chacha::ChaCha8Rng;
use tasks::Task;

use super::tokens::{Around, ModelTokenizer};
use super::{ModelWeights, Pretrained, PretrainedError};
use crate::experiment::of_record;
use crate::model::{Decoder, ModelConfig};
use crate::run::kept::{KeptError, KeptTraining};
use crate::streams::{Stream, stream};
use crate::weights::restore;

/// Weights of a training, on the device that their models are built on.
#[derive(Debug)]
pub(super) struct KeptModel {
    kept: KeptTraining,
    /// Encoding that the model was trained under, and the lengths that it was built for.
    own: Combination,
    pub(super) lens: [usize; 2],
    vocabulary: usize,
    device: Device,
}

impl Pretrained {
    /// Creates the model of a training of this program.
    ///
    /// # Errors
    ///
    /// [`PretrainedError::Record`] if its experiment cannot be restored.
    pub fn of_kept(kept: KeptTraining, device: &Device) -> Result<Self, PretrainedError> {
        let (experiment, task) = of_record(&kept.record)?;
        let [context, longest] = experiment.built_lens(&*task);
        let own = experiment.encoding;
        let rope = match own.parts() {
            [part] if part.card().id == Rope::CARD.id => {
                serde_json::from_value::<rope::RopeConfig>(part.fields().clone().into()).ok()
            }
            _ => None,
        };
        let vocabulary = task.vocab_size();
        let sha256 = kept.record.weights.as_ref().map(|weights| weights.sha256.clone());
        let opened = Self {
            name: kept.record.key.clone(),
            model: experiment.model,
            rope,
            own: own.clone(),
            vocabulary,
            context,
            window: None,
            end: Vec::new(),
            weights: ModelWeights::Kept(KeptModel {
                kept,
                own: own.clone(),
                lens: [context, longest],
                vocabulary,
                device: device.clone(),
            }),
            weights_sha256: sha256.unwrap_or_default(),
            tokenizer: Box::new(TaskTokenizer::new(task)),
        };
        // Weights that do not fit are refused here and not in the middle of a command.
        opened.decoder(&own, 0, &mut stream(0, Stream::Encoding))?;
        Ok(opened)
    }
}

impl KeptModel {
    /// Builds the model under an encoding. Under its own encoding it has all kept weights; under any other, the weights
    /// of the encoding are drawn from `encoding_rng`.
    pub(super) fn decoder(
        &self,
        config: &ModelConfig,
        encoding: &Combination,
        lens: [usize; 2],
        encoding_rng: &mut ChaCha8Rng,
        gradients: Option<GradientCheckpointingStrategy>,
    ) -> Result<Decoder, PretrainedError> {
        let is_own = *encoding == self.own;
        let device = self.device.clone();
        let device = match gradients {
            None => device,
            Some(GradientCheckpointingStrategy::Disabled) => device.autodiff(),
            Some(GradientCheckpointingStrategy::Balanced) => {
                device.autodiff().gradient_checkpointing()
            }
        };
        let rngs = [&mut stream(0, Stream::Model), encoding_rng];
        let model = Decoder::new(config, self.vocabulary, encoding, lens, rngs, &device)?;
        let wanted = |name: &str| is_own || !name.starts_with("encoding.");
        restore(model, &self.kept.tensors, wanted, false, &mut ())
            .map_err(|source| KeptError::Weights { path: self.kept.path.clone(), source }.into())
    }
}

/// Tokenizer of a task: that of a text, or symbols separated by blanks.
struct TaskTokenizer {
    task: Box<dyn Task>,
    /// Ids of the symbols, for tasks without text.
    symbols: BTreeMap<String, u32>,
}

impl fmt::Debug for TaskTokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskTokenizer").field("task", &self.task.meta().id).finish_non_exhaustive()
    }
}

impl TaskTokenizer {
    fn new(task: Box<dyn Task>) -> Self {
        let symbols = match task.tokenizer() {
            Some(_) => BTreeMap::new(),
            None => (0..task.vocab_size() as u32).map(|id| (task.token_text(id), id)).collect(),
        };
        Self { task, symbols }
    }
}

impl ModelTokenizer for TaskTokenizer {
    fn encode(&self, text: &str, _around: Around) -> Result<Vec<u32>, String> {
        if let Some(tokenizer) = self.task.tokenizer() {
            let mut tokens = Vec::new();
            tokenizer.encode(text, &mut tokens).map_err(|error| error.to_string())?;
            return Ok(tokens);
        }
        let symbol = |word: &str| {
            self.symbols.get(word).copied().ok_or_else(|| {
                let known = self.symbols.keys().map(String::as_str).collect::<Vec<_>>().join(" ");
                format!("`{word}` is no symbol of {}, expected: {known}", self.task.meta().id)
            })
        };
        text.split_whitespace().map(symbol).collect()
    }

    fn decode(&self, tokens: &[u32]) -> Result<String, String> {
        if let Some(tokenizer) = self.task.tokenizer() {
            return Ok(tokenizer.decode(tokens));
        }
        let symbols = tokens.iter().map(|token| self.task.token_text(*token));
        Ok(symbols.collect::<Vec<_>>().join(" "))
    }

    fn json(&self) -> Option<String> {
        self.task.tokenizer()?.json()
    }
}

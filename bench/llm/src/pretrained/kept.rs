//! Models that this program trained, from their kept weights.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use burn::tensor::Device;
use pe_zoo::PositionEncoding as _;
use pe_zoo::zoo::rope::{self, Rope};
use tasks::Task;

use super::tokens::ModelTokenizer;
use super::{ModelWeights, Pretrained};
use train::experiment::of_record;
use train::run::kept::KeptTraining;
use train::streams::{Stream, stream};

impl Pretrained {
    /// Creates the model of a training of this program.
    ///
    /// # Errors
    ///
    /// If its experiment cannot be restored.
    pub fn of_kept(kept: KeptTraining, device: &Device) -> Result<Self> {
        let (experiment, task) = of_record(&kept.record)?;
        let [context, longest] = experiment.built_lens(&*task);
        let own = experiment.encoding;
        let rope = match own.parts() {
            [part] if part.card().id == Rope::CARD.id => {
                serde_json::from_value::<rope::RopeConfig>(part.fields().clone().into()).ok()
            }
            _ => None,
        };
        let sha256 = kept.record.weights.as_ref().map(|weights| weights.sha256.clone());
        let opened = Self {
            name: kept.record.key.clone(),
            model: experiment.model,
            rope,
            own: own.clone(),
            own_lens: Some([context, longest]),
            vocabulary: task.vocab_size(),
            context,
            window: None,
            end: Vec::new(),
            weights: ModelWeights::Kept(kept, device.clone()),
            weights_sha256: sha256.unwrap_or_default(),
            rules: None,
            notes: Vec::new(),
            tokenizer: Arc::new(TaskTokenizer::new(task)),
        };
        // Weights that do not fit are refused here and not in the middle of a command.
        opened.decoder(&own, 0, &mut stream(0, Stream::Encoding))?;
        Ok(opened)
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
    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        if let Some(tokenizer) = self.task.tokenizer() {
            let mut tokens = Vec::new();
            tokenizer.encode(text, &mut tokens)?;
            return Ok(tokens);
        }
        let symbol = |word: &str| {
            self.symbols.get(word).copied().with_context(|| {
                let known = self.symbols.keys().map(String::as_str).collect::<Vec<_>>().join(" ");
                format!(
                    "`{word}` is not a symbol of {}, expected one of: {known}",
                    self.task.meta().id
                )
            })
        };
        text.split_whitespace().map(symbol).collect()
    }

    fn decode(&self, tokens: &[u32]) -> Result<String> {
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

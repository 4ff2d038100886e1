//! Tuned models as folders that transformers or this program loads.

use std::path::Path;

use super::cell::{Context, ExtendCell};
use crate::export::{ExportError, ModelFacts, TokenizerFiles, check_llama, write_llama};
use crate::pretrained::TUNED_TYPE;
use train::run::kept::{KeptError, KeptTraining, weights_path};

/// Error while a tuned model is written.
#[derive(Debug, thiserror::Error)]
pub enum TunedError {
    /// The files cannot be written.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The weights cannot be read.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// The weights are not kept.
    #[error("the weights of `{name}` are not kept: {} is absent, or of a tuning that another one is to replace", path.display())]
    Absent {
        /// Name of the encoding.
        name: String,
        /// Path of the weights.
        path: std::path::PathBuf,
    },
    /// The tokenizer of the model cannot be written.
    #[error(
        "the tokens of `{name}` cannot be written as a tokenizer.json, which the folder of a tuned model needs; leave out \
         --export, or tune a model that was trained on a text with characters, bytes, byte pairs or a tokenizer file"
    )]
    NoTokenizer {
        /// Name of the pretrained model.
        name: String,
    },
}

impl ExtendCell<'_> {
    /// Checks before a tuning that its model can be exported.
    ///
    /// # Errors
    /// [`TunedError`].
    pub fn check_export(&self, context: &Context<'_>) -> Result<(), TunedError> {
        let Context { pretrained, .. } = context;
        if pretrained.tokenizer().json().is_none() {
            return Err(TunedError::NoTokenizer { name: pretrained.name.clone() });
        }
        Ok(check_llama(self.facts(context, pretrained.context))?)
    }

    /// Facts of the model, after a tuning on sequences of `trained` tokens.
    fn facts<'a>(&'a self, context: &Context<'a>, trained: usize) -> ModelFacts<'a> {
        let Context { pretrained, .. } = *context;
        ModelFacts {
            model: &pretrained.model,
            encoding: &self.variant.encoding,
            vocabulary: pretrained.vocabulary,
            lens: pretrained.lens_under(&self.variant.encoding, self.longest(context)),
            context: pretrained.context.max(trained),
            window: pretrained.window,
            end: &pretrained.end,
        }
    }

    /// Name of the folder of the tuned model: encoding and tuning in characters of file names, and the key and length of the training;
    /// `None` without a tuning.
    pub fn folder_name(&self, context: &Context<'_>) -> Option<String> {
        let ((config, _), training) = (self.tune?, self.training(context)?);
        let text = format!("{} {}", self.variant.name, config.id());
        let words =
            text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let words = words.take(8).collect::<Vec<_>>().join("-").to_lowercase();
        Some(format!("{words}-{training}"))
    }

    /// Writes the tuned model to a folder, from the weights kept in `results`.
    ///
    /// # Errors
    /// [`TunedError`].
    pub fn export(
        &self,
        context: &Context<'_>,
        results: &Path,
        folder: &Path,
    ) -> Result<(), TunedError> {
        let Some((training, (config, _))) = self.training(context).zip(self.tune) else {
            return Ok(());
        };
        let pretrained = context.pretrained;
        let path = weights_path(results, &training, records::WeightsAt::Last);
        let name = || self.variant.name.clone();
        let kept = KeptTraining::read(&path)?;
        let kept = kept.ok_or_else(|| TunedError::Absent { name: name(), path: path.clone() })?;
        let Some(tokenizer) = pretrained.tokenizer().json() else {
            return Err(TunedError::NoTokenizer { name: pretrained.name.clone() });
        };
        let facts = self.facts(context, config.train.len);
        let special = pretrained.tokenizer().special_tokens();
        let tokenizer = TokenizerFiles { json: &tokenizer, special: &special };
        Ok(write_llama(facts, TUNED_TYPE, &kept.tensors, tokenizer, folder)?)
    }
}

//! Tuned models as folders that transformers or this program loads.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::cell::{Context, ExtendCell};
use crate::export::{ModelFacts, TokenizerFiles, check_llama, write_llama};
use crate::pretrained::{Pretrained, TUNED_TYPE};
use train::run::kept::{KeptTraining, weights_path};

impl ExtendCell<'_> {
    /// Checks before a tuning that its model can be exported.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check_export(&self, context: &Context<'_>) -> Result<()> {
        tokenizer_of(context.pretrained)?;
        check_llama(self.facts(context, context.pretrained.context))
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
    /// If the weights are not kept, or a file cannot be written.
    pub fn export(&self, context: &Context<'_>, results: &Path, folder: &Path) -> Result<()> {
        let Some((training, (config, _))) = self.training(context).zip(self.tune) else {
            return Ok(());
        };
        let pretrained = context.pretrained;
        let path = weights_path(results, &training, records::WeightsAt::Last);
        let kept = KeptTraining::read(&path)?.with_context(|| {
            let (name, path) = (&self.variant.name, path.display());
            format!(
                "the weights of `{name}` were not saved: {path} does not exist; repeat the command with --force, which \
                 tunes the model again"
            )
        })?;
        let tokenizer = tokenizer_of(pretrained)?;
        let facts = self.facts(context, config.train.len);
        let special = pretrained.tokenizer().special_tokens();
        let tokenizer = TokenizerFiles { json: &tokenizer, special: &special };
        write_llama(facts, TUNED_TYPE, &kept.tensors, tokenizer, folder)
    }
}

/// The tokenizer of a model as `tokenizer.json`.
fn tokenizer_of(pretrained: &Pretrained) -> Result<String> {
    pretrained.tokenizer().json().with_context(|| {
        format!(
            "the tokens of `{}` cannot be written as a tokenizer.json, which the folder of a tuned model needs; leave out \
             --export, or tune a model that was trained on a text with characters, bytes, byte pairs or a tokenizer file",
            pretrained.name
        )
    })
}

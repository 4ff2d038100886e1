//! Export of kept weights: safetensors, settings and tokenizer, as a folder that the Python package `pe_zoo.torch` or
//! HuggingFace's transformers loads.
//!
//! | file | contents |
//! | --- | --- |
//! | `model.safetensors` | the parameters in f32 |
//! | `config.json` | sizes, and the expression of the encoding |
//! | `tokenizer.json` or `vocabulary.json` | the tokenizer in the format of HuggingFace's `tokenizers`, or, without that form, the text of each token |
//! | `tokenizer_config.json` | beside `tokenizer.json`: special tokens, and the class with which transformers adds none of its own |
//! | `record.json` | the record of the training |

mod llama;
mod staged;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use pe_zoo::Hooks;
use pe_zoo::attention::AttentionKind;
use pe_zoo::encoding::Constant;
use serde_json::{Value, json};
use tasks::tokenizer::Tokenizer;
use tasks::{FileError, Task, write_in};

use pe_zoo::model::{ModelConfig, NormKind};
use train::experiment::{Experiment, of_record};
use train::run::kept::KeptTraining;
use train::streams::{Stream, stream};
use train::weights::NamedTensors;

pub use llama::ModelFacts;
pub use staged::check_target;

/// Kind of the folder that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exported {
    /// A folder that transformers loads as `LlamaForCausalLM`.
    Llama,
    /// A folder that `pe_zoo.torch.load` loads.
    Torch,
}

/// Writes the files of a model to a folder. A Llama-type model becomes a folder for transformers, any other one a folder for
/// `pe_zoo.torch`. It is written in one step, and replaces an earlier export.
///
/// # Errors
///
/// If a part of the model cannot be exported, or the folder has other files; the folder is then as before.
pub fn export(kept: &KeptTraining, folder: &Path) -> Result<Exported> {
    let (experiment, task) = of_record(&kept.record)?;
    let lens = experiment.built_lens(&*task);
    let facts = ModelFacts {
        model: &experiment.model,
        encoding: &experiment.encoding,
        vocabulary: task.vocab_size(),
        lens,
        context: lens[0],
        window: None,
        end: &[],
    };
    let llama = llama::Llama::of(facts).filter(llama::Llama::is_known);
    let (config, tensors, kind) = if let Some(llama) = llama {
        (llama.config(""), llama.tensors(&kept.tensors), Exported::Llama)
    } else {
        let mut tensors = kept.tensors.clone();
        add_constants(&experiment, &*task, &mut tensors)?;
        (config(&experiment, task.vocab_size(), lens)?, tensors, Exported::Torch)
    };
    let settings = kept.path.with_extension("json");
    let record = fs::read(&settings).map_err(FileError::of("read", &settings))?;
    staged::replace(folder, |folder| {
        write_in(folder, "model.safetensors", tensors.bytes()?)?;
        write_in(folder, "config.json", format!("{config:#}\n"))?;
        write_in(folder, staged::RECORD, record)?;
        match task.tokenizer().and_then(Tokenizer::json) {
            Some(text) => {
                TokenizerFiles { json: &text, special: &BTreeMap::new() }.write(folder)?;
            }
            None => write_in(folder, "vocabulary.json", vocabulary(&*task))?,
        }
        Ok(())
    })?;
    Ok(kind)
}

/// Writes a model of Llama's type with its tokenizer to a folder: as transformers stores
/// models if it knows the rotation, otherwise in the same form with the `model_type` `other_type` and the weights of the
/// encoding. It is written in one step, and replaces an earlier export.
///
/// # Errors
///
/// If the architecture is not Llama's, or the folder has other files; the folder is then as before.
pub fn write_llama(
    facts: ModelFacts<'_>,
    other_type: &str,
    tensors: &NamedTensors,
    tokenizer: TokenizerFiles<'_>,
    folder: &Path,
) -> Result<()> {
    let llama = llama::Llama::of(facts).context(NOT_LLAMA)?;
    staged::replace(folder, |folder| {
        write_in(folder, "model.safetensors", llama.tensors(tensors).bytes()?)?;
        write_in(folder, "config.json", format!("{:#}\n", llama.config(other_type)))?;
        Ok(tokenizer.write(folder)?)
    })
}

/// Tokenizer of an exported model.
#[derive(Debug, Clone, Copy)]
pub struct TokenizerFiles<'a> {
    /// Contents of the file `tokenizer.json`.
    pub json: &'a str,
    /// Special tokens by their names in transformers.
    pub special: &'a BTreeMap<String, String>,
}

impl TokenizerFiles<'_> {
    /// Writes `tokenizer.json` with the settings under which transformers adds special tokens as it says; by the type of the
    /// model alone it would add those of Llama.
    fn write(self, folder: &Path) -> Result<(), FileError> {
        let mut config = json!(self.special);
        config["tokenizer_class"] = json!("PreTrainedTokenizerFast");
        write_in(folder, "tokenizer.json", self.json)?;
        write_in(folder, "tokenizer_config.json", format!("{config:#}\n"))
    }
}

/// Checks that [`write_llama`] can write a model.
///
/// # Errors
///
/// If the architecture is not Llama's.
pub fn check_llama(facts: ModelFacts<'_>) -> Result<()> {
    llama::Llama::of(facts).map(drop).context(NOT_LLAMA)
}

/// A folder for transformers cannot have the architecture of the model.
const NOT_LLAMA: &str = "a model of this architecture cannot be written as a folder for transformers, expected an \
     architecture as in Llama: soft attention, RMSNorm before each part, SwiGLU, no bias, no normalisation of \
     queries and keys, no output gate, no scaled embedding and no bound of the logits";

/// Adds the constants of the encoding, which kept weights do not have: they are drawn again from the seed of the training.
fn add_constants(
    experiment: &Experiment,
    task: &dyn Task,
    tensors: &mut NamedTensors,
) -> Result<()> {
    let mut rng = stream(experiment.seed, Stream::Encoding);
    let encoding =
        experiment.encoding.init(&experiment.dims(task), &mut rng, &pe_zoo::probe::device())?;
    for Constant { name, shape, values } in encoding.constants() {
        // Named as parameters are: the parts of a combination are numbered.
        let name = format!("encoding.{}", name.replace("parts.", ""));
        tensors.insert(name, shape, &values);
    }
    Ok(())
}

/// Settings of the decoder in `pe_zoo.torch`.
fn config(experiment: &Experiment, vocabulary: usize, lens: [usize; 2]) -> Result<Value> {
    let model = &experiment.model;
    ensure!(
        model.attention == AttentionKind::Soft,
        "hard attention cannot be exported to PyTorch, expected soft attention"
    );
    Ok(json!({
        "architecture": "pe-zoo-decoder",
        "vocab_size": vocabulary,
        "layers": model.layers,
        "width": model.width,
        "heads": model.heads,
        "head_dim": model.head_dim(),
        "kv_heads": model.kv_heads(),
        "hidden": model.hidden(),
        "norm": model.norm,
        "norm_epsilon": norm_epsilon(model),
        "norm_place": model.norm_place,
        "activation": model.activation,
        "bias": model.bias,
        "tied_head": model.tied_head,
        "embedding_scale": model.embedding_scale().unwrap_or(1.0),
        "head_cap": model.head_cap,
        "encoding": experiment.encoding.to_string(),
        "trained_tokens": lens[0],
        "most_tokens": lens[1],
    }))
}

/// Added to variances or mean squares by the normalisations.
fn norm_epsilon(model: &ModelConfig) -> f64 {
    // Both kinds have the same default.
    model.norm_epsilon.filter(|_| model.norm == NormKind::RmsNorm).unwrap_or(1e-5)
}

/// Texts of all tokens, as a JSON list in the order of the ids.
fn vocabulary(task: &dyn Task) -> String {
    let texts = (0..task.vocab_size() as u32).map(|token| task.token_text(token));
    format!("{:#}\n", json!(texts.collect::<Vec<_>>()))
}

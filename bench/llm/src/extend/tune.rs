//! Fine-tuning of a pretrained model with another encoding.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use pe_zoo::model::Decoder;
use pe_zoo::model::LoraConfig;
use train::experiment::TrainConfig;

/// Weights that are trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Tuning {
    /// All weights of the model.
    All {},
    /// Low-rank adapters on queries, keys, values and output, and the weights of the encoding.
    Lora(LoraConfig),
    /// The weights of the encoding only, such as TAPE's update maps or CoPE's table.
    Encoding {},
}

/// Settings of a fine-tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneConfig {
    /// Weights that are trained.
    pub what: Tuning,
    /// Number of shifted attention groups per window (LongLoRA uses 4); `None`: full attention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<usize>,
    /// Settings of the training.
    pub train: TrainConfig,
}

impl Tuning {
    /// Identifier of the setting in tables and records.
    pub fn id(&self) -> &'static str {
        match self {
            Self::All {} => "all",
            Self::Lora(LoraConfig { embedding_and_norms: true, .. }) => "lora, embedding and norms",
            Self::Lora(_) => "lora",
            Self::Encoding {} => "encoding",
        }
    }

    /// Freezes all other weights and adds the adapters, which are zero at first, so that outputs do not change.
    pub fn prepare(&self, model: Decoder, rng: &mut ChaCha8Rng) -> Decoder {
        match self {
            Self::All {} => model,
            Self::Lora(config) => model.adapted(config, rng),
            Self::Encoding {} => model.frozen(),
        }
    }
}

impl TuneConfig {
    /// Identifier of the fine-tuning in tables and records.
    pub fn id(&self) -> String {
        match self.groups {
            None => self.what.id().to_owned(),
            Some(groups) => format!("{}, {groups} shifted groups", self.what.id()),
        }
    }
}

//! Short fine-tuning of a pretrained model under another encoding.

use std::ops::ControlFlow;

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use tasks::Task;

use crate::cell::TrainConfig;
use crate::lora::LoraConfig;
use crate::model::Decoder;
use crate::train::{Stop, TrainError, Trained, Trainer, Watch, train};

/// Which weights learn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Tuning {
    /// All of them.
    All {},
    /// Low-rank adapters on queries, keys, values and output, and the encoding's own.
    Lora(LoraConfig),
    /// The encoding's own alone: TAPE's update maps, CoPE's table.
    Encoding {},
}

/// A fine-tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneConfig {
    /// Which weights learn.
    pub what: Tuning,
    /// Attention within so many shifted groups of each window (LongLoRA: 4); `None`: whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<usize>,
    /// How.
    pub train: TrainConfig,
}

impl Tuning {
    /// The name in tables.
    pub fn id(&self) -> &'static str {
        match self {
            Self::All {} => "all",
            Self::Lora(_) => "lora",
            Self::Encoding {} => "encoding",
        }
    }

    /// The model with what is to learn marked as such; it computes what it did before.
    pub fn prepare(&self, model: Decoder, rng: &mut ChaCha8Rng) -> Decoder {
        match self {
            Self::All {} => model,
            Self::Lora(config) => model.adapted(config, rng),
            Self::Encoding {} => model.frozen(),
        }
    }
}

impl TuneConfig {
    /// The name in tables.
    pub fn id(&self) -> String {
        match self.groups {
            None => self.what.id().to_owned(),
            Some(groups) => format!("{}, {groups} shifted groups", self.what.id()),
        }
    }
}

/// Hands the loss of each step on.
struct Told<'a>(&'a mut dyn FnMut(usize, f64));

impl Watch for Told<'_> {
    fn stepped(&mut self, trainer: &Trainer<'_>, loss: f64) -> ControlFlow<Stop> {
        (self.0)(trainer.state().course.step, loss);
        ControlFlow::Continue(())
    }
}

/// Trains a prepared model, on an autodiff device; `progress` hears steps and losses.
///
/// # Errors
/// [`TrainError`].
pub(super) fn tune(
    model: Decoder,
    id: &str,
    config: &TrainConfig,
    task: &dyn Task,
    seed: u64,
    device: &Device,
    progress: &mut dyn FnMut(usize, f64),
) -> Result<Trained<Decoder>, TrainError> {
    let trainer = Trainer::new(model, id, config, 0.0, task, seed, device);
    let trained = train(trainer, &mut Told(progress))?;
    Ok(Trained { model: trained.model.merged(), ..trained })
}

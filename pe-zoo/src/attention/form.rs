//! Evaluation of a modifier of the logits by an engine.

use burn::tensor::Device;

use super::Engine;
use crate::ScoreMod;

/// How an engine evaluates a modifier of the logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreForm {
    /// Inside the fused kernels, with memory linear in the length.
    Fused,
    /// Inside the fused kernels, with a part of the modifier as a dense bias of size `T x S`.
    Dense,
    /// By the reference engine, with all logits as a tensor of size `T x S`.
    Reference,
}

impl ScoreForm {
    /// Name of the form in records.
    pub fn id(self) -> &'static str {
        match self {
            Self::Fused => "fused",
            Self::Dense => "dense",
            Self::Reference => "reference",
        }
    }
}

impl ScoreMod {
    /// Returns how the fastest engine of a device evaluates this modifier for f32 tensors.
    ///
    /// Not predicted: a GPU's fused kernels also fall back to the reference engine for heads and
    /// tables that do not fit into shared memory, and make distance tables dense where positions
    /// have gaps.
    pub fn form(&self, device: &Device) -> ScoreForm {
        if self.is_hard() || Engine::best(device) == Engine::Reference {
            return ScoreForm::Reference;
        }
        let mut contextual = 0;
        if self.is_dense(on_cpu(device), &mut contextual) {
            ScoreForm::Dense
        } else {
            ScoreForm::Fused
        }
    }

    /// Whether the modifier needs a tensor of size `T x S`. `contextual` counts the contextual
    /// modifiers seen so far, of which the kernels support one.
    fn is_dense(&self, on_cpu: bool, contextual: &mut usize) -> bool {
        match self {
            Self::Dense(_) | Self::Products(_) => true,
            Self::Term(_) => !on_cpu,
            Self::Contextual(_) => {
                *contextual += 1;
                *contextual > 1
            }
            Self::Sum(parts) => parts.iter().any(|part| part.is_dense(on_cpu, contextual)),
            _ => false,
        }
    }
}

#[cfg(feature = "flex")]
fn on_cpu(device: &Device) -> bool {
    use crate::kernels::{self, Kernels};
    kernels::of(device) == Some(Kernels::Cpu)
}

#[cfg(not(feature = "flex"))]
fn on_cpu(_device: &Device) -> bool {
    false
}

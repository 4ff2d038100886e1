//! Evaluation of a modifier of the logits by an engine.

use std::mem::{Discriminant, discriminant};

use burn::tensor::{Device, Tensor};

use super::{Engine, in_layer};
use crate::encoding::{LayerContext, ScoreContext};
use crate::erased::Hooks;
use crate::kernels;
use crate::{Dims, ScoreMod};

/// How an engine evaluates a modifier of the logits, in the order of the memory that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

    /// The form that takes the most memory among the layers of an encoding, by the fastest engine of a device.
    ///
    /// The encoding is asked for the modifiers of a sequence of one token: a form does not depend on the length.
    pub fn of(encoding: &dyn Hooks, dims: &Dims, device: &Device) -> Self {
        modifiers(encoding, dims, device)
            .iter()
            .map(|part| part.form(device))
            .max()
            .unwrap_or(Self::Fused)
    }

    /// [`of`](Self::of) for the kernels of a GPU, whether or not there is one; `device` computes the modifiers.
    pub fn on_gpu(encoding: &dyn Hooks, dims: &Dims, device: &Device) -> Self {
        let forms = modifiers(encoding, dims, device);
        forms.iter().map(|part| part.form_by(false)).max().unwrap_or(Self::Fused)
    }
}

fn modifiers(encoding: &dyn Hooks, dims: &Dims, device: &Device) -> Vec<ScoreMod> {
    let x = Tensor::zeros([1, 1, dims.width()], device);
    let score = |ctx: &LayerContext<'_>| {
        let zeros = Tensor::zeros([1, dims.heads, 1, dims.head_dim], device);
        let (q, k) = encoding.transform_qk(zeros.clone(), zeros, ctx);
        encoding.score(&ScoreContext { layer: ctx, q: &q, k: &k })
    };
    (0..dims.layers).map(|layer| in_layer(encoding, layer, &x, score)).collect()
}

impl ScoreMod {
    /// Returns how the fastest engine of a device evaluates this modifier for f32 tensors.
    ///
    /// Not predicted: a GPU's fused kernels also fall back to the reference engine for heads and
    /// tables that do not fit into shared memory, and make distance tables dense where positions
    /// have gaps.
    pub fn form(&self, device: &Device) -> ScoreForm {
        match Engine::best(device) {
            Engine::Reference => ScoreForm::Reference,
            Engine::Fused => self.form_by(kernels::on_cpu(device)),
        }
    }

    /// The form in the kernels of the CPU, or of a GPU.
    fn form_by(&self, on_cpu: bool) -> ScoreForm {
        if self.is_hard() {
            ScoreForm::Reference
        } else if self.is_dense(on_cpu, &mut Vec::new()) {
            ScoreForm::Dense
        } else {
            ScoreForm::Fused
        }
    }

    /// Whether the modifier needs a tensor of size `T x S`. `taken` holds the kinds seen so far of which the kernels
    /// support one.
    fn is_dense(&self, on_cpu: bool, taken: &mut Vec<Discriminant<Self>>) -> bool {
        let mut is_second = || {
            let kind = discriminant(self);
            let second = taken.contains(&kind);
            taken.push(kind);
            second
        };
        match self {
            Self::Dense(_) | Self::Products(_) => true,
            Self::Term(_) => !on_cpu,
            Self::Contextual(_) => is_second(),
            Self::HeadMlp(mlp) => {
                // As in `ModifierOperands::put_mixer`.
                let has_operands = matches!(
                    mlp.base.as_deref(),
                    None | Some(Self::Slope(_) | Self::Distance { .. } | Self::PositionMlp(_))
                );
                is_second() || !on_cpu || !has_operands
            }
            Self::Reflected(_)
            | Self::PositionMlp(_)
            | Self::TokenPrice(_)
            | Self::StepPrices(_) => is_second() || !on_cpu,
            Self::Sum(parts) => parts.iter().any(|part| part.is_dense(on_cpu, taken)),
            Self::None
            | Self::Slope(_)
            | Self::Distance { .. }
            | Self::QueryDistance { .. }
            | Self::Decay { .. }
            | Self::StickBreaking(_)
            | Self::Hard => false,
        }
    }
}

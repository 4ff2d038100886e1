//! Which engine computes which modifier of the logits, and how: the one place that decides it.

use std::mem::{Discriminant, discriminant};

use burn::tensor::{Device, Tensor};

use super::in_layer;
use crate::encoding::{LayerContext, ScoreContext};
use crate::erased::Hooks;
use crate::kernels::{self, Kernels};
use crate::{Dims, ScoreMod};

/// How the fastest engine of a device computes a modifier of the logits, in the order of the memory that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Support {
    /// Inside the fused kernels, with memory linear in the length.
    Fused,
    /// Inside the fused kernels, with a part of the modifier as a dense bias: one of size `T x S`, or on a GPU one for 256 rows at
    /// a time, so that memory is linear in the length too.
    Dense,
    /// By the reference engine, with the logits as a tensor: one of size `T x S`, or on a GPU one for 256 rows at a time.
    Reference,
}

impl Support {
    /// Returns the name in records.
    pub fn id(self) -> &'static str {
        match self {
            Self::Fused => "fused",
            Self::Dense => "dense",
            Self::Reference => "reference",
        }
    }

    /// Returns the support that takes the most memory among the layers of an encoding, on a device.
    ///
    /// The modifiers are those of a sequence of one token, because support does not depend on the length.
    pub fn of(encoding: &dyn Hooks, dims: &Dims, device: &Device) -> Self {
        let modifiers = modifiers(encoding, dims, device);
        modifiers.iter().map(|modifier| modifier.support(device)).max().unwrap_or(Self::Fused)
    }

    /// [`of`](Self::of) for the kernels of a GPU, whether or not there is one; `device` computes the modifiers.
    pub fn on_gpu(encoding: &dyn Hooks, dims: &Dims, device: &Device) -> Self {
        let modifiers = modifiers(encoding, dims, device);
        let support = |modifier: &ScoreMod| modifier.support_by(Kernels::Gpu);
        modifiers.iter().map(support).max().unwrap_or(Self::Fused)
    }

    /// [`on_gpu`](Self::on_gpu) for the kernels on the tensor cores of NVIDIA's GPUs, in bf16.
    pub fn on_tensor_cores(encoding: &dyn Hooks, dims: &Dims, device: &Device) -> Self {
        let modifiers = modifiers(encoding, dims, device);
        // The modifiers are those of one token.
        let support = |modifier: &ScoreMod| match modifier.for_cores(1) {
            Some(modifier) => modifier.support_by(Kernels::GpuCores),
            None => modifier.support_by(Kernels::Gpu),
        };
        modifiers.iter().map(support).max().unwrap_or(Self::Fused)
    }
}

fn modifiers(encoding: &dyn Hooks, dims: &Dims, device: &Device) -> Vec<ScoreMod> {
    let x = Tensor::zeros([1, 1, dims.width], device);
    let score = |ctx: &LayerContext<'_>| {
        let zeros = Tensor::zeros([1, dims.heads, 1, dims.head_dim], device);
        let (q, k) = encoding.transform_qk(zeros.clone(), zeros, ctx);
        encoding.score(&ScoreContext { layer: ctx, q: &q, k: &k })
    };
    (0..dims.layers).map(|layer| in_layer(encoding, layer, &x, score)).collect()
}

/// Number of parts of one kind that the kernels compute within one attention, without a tensor of all pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Capacity {
    /// No part: each is made dense by the reference engine.
    None,
    /// One part; further ones of its kind are made dense.
    One,
    /// Any number of parts.
    Any,
}

impl ScoreMod {
    /// Number of such parts that the kernels of a device compute. A GPU also makes distance tables dense where positions
    /// have gaps. It computes pair terms, perceptrons of the position, step prices, reflected products, far products and decaying channels
    /// only on tensor cores, see [`for_cores`](Self::for_cores).
    fn capacity(&self, kernels: Kernels) -> Capacity {
        let on_cpu = |capacity| if kernels == Kernels::Cpu { capacity } else { Capacity::None };
        match self {
            Self::None
            | Self::Hard
            | Self::Slope(_)
            | Self::Distance { .. }
            | Self::QueryDistance { .. }
            | Self::Decay { .. }
            | Self::StickBreaking(_)
            | Self::Sinks(_)
            | Self::Sum(_) => Capacity::Any,
            Self::Contextual(_) | Self::RowDistance { .. } => Capacity::One,
            Self::Term(_) if kernels == Kernels::GpuCores => Capacity::Any,
            Self::PositionMlp(_)
            | Self::StepPrices(_)
            | Self::Reflected(_)
            | Self::FarProducts(_)
            | Self::ChannelDecay { .. }
                if kernels == Kernels::GpuCores =>
            {
                Capacity::One
            }
            Self::Term(_) => on_cpu(Capacity::Any),
            Self::PositionMlp(_)
            | Self::TokenPrice(_)
            | Self::StepPrices(_)
            | Self::Reflected(_)
            | Self::FarProducts(_)
            | Self::ChannelDecay { .. } => on_cpu(Capacity::One),
            Self::HeadMlp(mlp) => match mlp.base.as_deref() {
                None | Some(Self::Slope(_) | Self::Distance { .. } | Self::PositionMlp(_)) => {
                    on_cpu(Capacity::One)
                }
                Some(_) => Capacity::None,
            },
            Self::Dense(_) | Self::Products(_) => Capacity::None,
        }
    }

    /// Returns the parts of the modifier, each with whether the kernels of a device compute it.
    pub(super) fn planned(&self, kernels: Kernels) -> Vec<PlannedPart<'_>> {
        let mut parts = Vec::new();
        self.flatten_into(&mut parts);
        let planned = |part| PlannedPart { part, in_kernels: false };
        let mut parts = parts.into_iter().map(planned).collect::<Vec<_>>();
        let kinds = parts.iter().map(|planned| discriminant(planned.part)).collect::<Vec<_>>();
        let is_first = |index: usize, kind: &Discriminant<Self>| !kinds[..index].contains(kind);
        for (index, planned) in parts.iter_mut().enumerate() {
            planned.in_kernels = match planned.part.capacity(kernels) {
                Capacity::None => false,
                Capacity::One => is_first(index, &kinds[index]),
                Capacity::Any => true,
            };
        }
        // Kernels apply terms only to products that they compute themselves.
        let are_products = |planned: &PlannedPart<'_>| match planned.part {
            Self::Products(_) => true,
            Self::Reflected(_) | Self::FarProducts(_) | Self::ChannelDecay { .. } => {
                !planned.in_kernels
            }
            _ => false,
        };
        if parts.iter().any(are_products) {
            for planned in &mut parts {
                planned.in_kernels &= !matches!(planned.part, Self::Term(_));
            }
        }
        parts
    }

    /// Returns how the fastest engine of a device computes this modifier for f32 tensors.
    ///
    /// A GPU also falls back to the reference engine for heads and tables that do not fit into shared memory.
    pub fn support(&self, device: &Device) -> Support {
        kernels::of(device).map_or(Support::Reference, |kernels| self.support_by(kernels))
    }

    fn support_by(&self, kernels: Kernels) -> Support {
        if self.is_hard() {
            Support::Reference
        } else if self.planned(kernels).iter().all(|planned| planned.in_kernels) {
            Support::Fused
        } else {
            Support::Dense
        }
    }
}

/// Part of a modifier, and who computes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedPart<'a> {
    /// The part, which is not a sum.
    pub(super) part: &'a ScoreMod,
    /// Whether the kernels compute it; the reference engine makes it dense otherwise.
    pub(super) in_kernels: bool,
}

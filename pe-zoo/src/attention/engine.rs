//! The choice of an engine.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::Weights;
use super::reference::{self, Attended};
use crate::kernels;
use crate::ops::MatmulPrecision;
use crate::{Positions, ScoreMod};

/// An implementation of attention; both give the same numbers up to rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Plain tensor operations: any backend, any type, and the only one with attention weights.
    Reference,
    /// Blocks in the cache or in shared memory, no `T x S` tensor: f32 on Flex; on GPUs (CUDA, Vulkan,
    /// Metal, WebGPU) also narrower types, which it computes in f32. Falls back to the reference for
    /// other types, for hard attention, where weights are asked for, and on GPUs for heads and tables
    /// that do not fit into shared memory. On GPUs [`ScoreMod::PositionMlp`], [`ScoreMod::HeadMlp`],
    /// [`ScoreMod::Reflected`], [`ScoreMod::TokenPrice`] and [`ScoreMod::StepPrices`] become a `T x S`
    /// tensor; on the CPU they do not.
    Fused,
}

impl Engine {
    /// The name in records.
    pub fn id(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Fused => "fused",
        }
    }

    /// Whether the engine takes tensors of this device.
    pub fn available(self, device: &Device) -> bool {
        match self {
            Self::Reference => true,
            Self::Fused => kernels::of(device).is_some(),
        }
    }

    /// The fastest engine of a device.
    pub fn best(device: &Device) -> Self {
        if Self::Fused.available(device) { Self::Fused } else { Self::Reference }
    }

    /// Attends causally, as [`attend`](super::attend) says, with products of f32.
    #[expect(clippy::too_many_arguments, reason = "the six tensors of one formula")]
    pub fn attend(
        self,
        q: &Tensor<4>,
        k: &Tensor<4>,
        v: &Tensor<4>,
        values: Tensor<4>,
        modifier: &ScoreMod,
        at: &Positions,
        scale: f64,
        weights: Weights,
    ) -> Attended {
        self.attend_of(MatmulPrecision::F32, q, k, v, values, modifier, at, scale, weights)
    }

    /// [`attend`](Self::attend) with a choice of precision: queries, keys, gate keys, values and
    /// weights are rounded where they are multiplied, by tensor cores that add in f32. Only the fused
    /// engine does so, and only on a device with such cores; elsewhere nothing is rounded.
    #[expect(clippy::too_many_arguments, reason = "the six tensors of one formula")]
    pub fn attend_of(
        self,
        precision: MatmulPrecision,
        q: &Tensor<4>,
        k: &Tensor<4>,
        v: &Tensor<4>,
        values: Tensor<4>,
        modifier: &ScoreMod,
        at: &Positions,
        scale: f64,
        weights: Weights,
    ) -> Attended {
        #[cfg(any(feature = "flex", feature = "cube"))]
        if self == Self::Fused
            && weights == Weights::Drop
            && let Some(output) =
                super::fused::attend(precision, q, k, v, &values, modifier, at, scale)
        {
            return Attended { output, weights: None };
        }
        #[cfg(not(any(feature = "flex", feature = "cube")))]
        let _ = precision;
        reference::attend(q, k, v, values, modifier, at, scale, weights)
    }
}

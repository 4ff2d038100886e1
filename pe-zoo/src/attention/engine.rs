//! Selection of the attention engine.

use burn::tensor::{DType, Device, Tensor};
use serde::{Deserialize, Serialize};

use super::Weights;
use super::reference::{self, Attended};
#[cfg(any(feature = "flex", feature = "cube"))]
use super::{
    blocks::DENSE_ROWS,
    by_rows::{AttentionInputs, attend_by_rows},
};
use crate::kernels;
use crate::ops::MatmulPrecision;
use crate::{Positions, ScoreMod};

/// Implementation of attention. All implementations give the same results up to rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Plain tensor operations on any backend and data type; the only engine that can return
    /// attention weights.
    Reference,
    /// Kernels that process the logits in blocks, without a `T x S` tensor: f32 on Flex; on GPUs
    /// (CUDA, Vulkan, Metal, WebGPU) also narrower types, which are computed in f32. Falls back to
    /// the reference engine for other types, for hard attention, where weights are requested, and
    /// on GPUs for heads and tables that do not fit into shared memory.
    ///
    /// [`ScoreMod::support`] tells whether the logits become a tensor on a device. A GPU makes that of 256 rows at a time, and
    /// makes it again in the backward pass, unless weights are requested.
    Fused,
}

impl Engine {
    /// Name of the engine in records.
    pub fn id(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Fused => "fused",
        }
    }

    /// Whether the engine supports tensors of this device.
    pub fn available(self, device: &Device) -> bool {
        match self {
            Self::Reference => true,
            Self::Fused => kernels::of(device).is_some(),
        }
    }

    /// Returns the fastest engine for a device.
    pub fn best(device: &Device) -> Self {
        if Self::Fused.available(device) { Self::Fused } else { Self::Reference }
    }

    /// Whether keys and values `[B, K, S, D]` need not be repeated for the heads of queries `[B, H, T, D]`: for a single
    /// row without a change of the logits, on the CPU, without gradients.
    pub(super) fn takes_shared_heads(
        self,
        q: &Tensor<4>,
        modifier: &ScoreMod,
        weights: Weights,
    ) -> bool {
        let device = q.device();
        let [_batch, _heads, rows, _head_dim] = q.dims();
        self == Self::Fused
            && rows == 1
            && weights == Weights::Drop
            && matches!(modifier, ScoreMod::None)
            && q.dtype() == DType::F32
            && !device.is_autodiff()
            && kernels::on_cpu(&device)
    }

    /// Computes causal attention as [`attend`](super::attend) does, with f32 products.
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

    /// Computes [`attend`](Self::attend) with a choice of precision: queries, keys, gate keys,
    /// values and weights are rounded before tensor cores multiply them and accumulate in f32. Only
    /// the fused engine on a device with tensor cores rounds; elsewhere the precision has no
    /// effect.
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
        if self == Self::Fused && weights == Weights::Drop {
            if let Some(output) =
                super::fused::attend(precision, q, k, v, &values, modifier, at, scale)
            {
                return Attended { output, weights: None };
            }
            let on_gpu = kernels::of(&q.device()) == Some(kernels::Kernels::Gpu);
            if on_gpu && at.rows().len() > DENSE_ROWS {
                let values = &values;
                let inputs = AttentionInputs { precision, q, k, v, values, modifier, at, scale };
                let output = attend_by_rows(inputs, DENSE_ROWS, attend_block);
                return Attended { output, weights: None };
            }
        }
        #[cfg(not(any(feature = "flex", feature = "cube")))]
        let _ = precision;
        reference::attend(q, k, v, values, modifier, at, scale, weights)
    }
}

/// Computes a block of rows with the fused engine.
#[cfg(any(feature = "flex", feature = "cube"))]
pub(super) fn attend_block(inputs: AttentionInputs<'_>) -> Tensor<4> {
    let AttentionInputs { precision, q, k, v, values, modifier, at, scale } = inputs;
    let (values, weights) = (values.clone(), Weights::Drop);
    Engine::Fused.attend_of(precision, q, k, v, values, modifier, at, scale, weights).output
}

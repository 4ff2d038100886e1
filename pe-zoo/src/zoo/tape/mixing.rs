//! Axis of the state that TAPE's updates mix, and the number of maps.

use burn::module::Param;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::count::{CountedMatmul, count};
use crate::ops::{mix_heads, product};
use crate::reference::tape::Mixes;

/// Components that the updates mix: the method, and the ablations of the paper's Table 6.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mixing {
    /// Heads are mixed, with the same maps for cosine and sine; commutes with every rotation.
    #[default]
    Tensor,
    /// Channels within each head are mixed, with the same maps for cosine and sine.
    Vector,
    /// Heads are mixed, with separate maps for cosine and sine.
    TensorNotEquivariant,
    /// All heads and channels are mixed, with separate attention maps for cosine and sine.
    VectorNotEquivariant,
}

impl Mixing {
    /// Corresponding mixing of the scalar reference.
    pub fn mixes(self) -> Mixes {
        match self {
            Self::Tensor | Self::TensorNotEquivariant => Mixes::Heads,
            Self::Vector => Mixes::Channels,
            Self::VectorNotEquivariant => Mixes::Everything,
        }
    }

    /// Number of channels `E` kept of cosine and of sine each. Where heads are mixed, both halves
    /// of the channels stay equal and only one is kept.
    pub fn state_dim(self, head_dim: usize) -> usize {
        match self.mixes() {
            Mixes::Heads => head_dim / 2,
            Mixes::Channels | Mixes::Everything => head_dim,
        }
    }

    /// Length `M` of the mixed axis.
    pub fn mixed(self, heads: usize, head_dim: usize) -> usize {
        match self.mixes() {
            Mixes::Heads => heads,
            Mixes::Channels => head_dim,
            Mixes::Everything => heads * head_dim,
        }
    }

    /// Number of maps `W_A` per layer: 1, or 2 if cosine and sine have one each.
    pub fn attention_maps(self) -> usize {
        match self {
            Self::Tensor | Self::Vector => 1,
            Self::TensorNotEquivariant | Self::VectorNotEquivariant => 2,
        }
    }

    /// Number of pairs `W_U`, `W_D` per layer: 1, or 2 if cosine and sine have one each.
    pub fn feed_forward_maps(self) -> usize {
        if self == Self::TensorNotEquivariant { 2 } else { 1 }
    }

    /// Reshapes `[B, H, T, 2 E]` to `[B, T, R, M]`, the mixed axis last. If maps are separate, the
    /// first half of `R` is cosine and the second sine.
    pub(super) fn unfold(self, z: Tensor<4>) -> Tensor<4> {
        let [batch, heads, tokens, both] = z.dims();
        match self.mixes() {
            Mixes::Heads => z.permute([0, 2, 3, 1]),
            Mixes::Channels => z.swap_dims(1, 2).reshape([batch, tokens, heads * 2, both / 2]),
            Mixes::Everything => z
                .reshape([batch, heads, tokens, 2, both / 2])
                .permute([0, 2, 3, 1, 4])
                .reshape([batch, tokens, 2, heads * both / 2]),
        }
    }

    /// The reverse of [`unfold`](Self::unfold).
    pub(super) fn fold(self, z: Tensor<4>, heads: usize) -> Tensor<4> {
        let [batch, tokens, rest, mixed] = z.dims();
        let both = rest * mixed / heads;
        match self.mixes() {
            Mixes::Heads => z.permute([0, 3, 1, 2]),
            Mixes::Channels => z.reshape([batch, tokens, heads, both]).swap_dims(1, 2),
            Mixes::Everything => z
                .reshape([batch, tokens, 2, heads, both / 2])
                .permute([0, 3, 1, 2, 4])
                .reshape([batch, heads, tokens, both]),
        }
    }
}

/// Multiplies `[B, T, R, M]` to `[B, T, R, M']` by one map `[M', M]`, or by the maps of cosine and
/// sine.
pub(super) fn through(maps: &[Param<Tensor<2>>], z: &Tensor<4>) -> Tensor<4> {
    let [batch, tokens, rest, mixed] = z.dims();
    let share = rest / maps.len();
    let parts = maps.iter().enumerate().map(|(part, map)| {
        let map = map.val();
        let [out, _mixed] = map.dims();
        let z = if maps.len() == 1 {
            z.clone()
        } else {
            z.clone().slice_dim(2, part * share..(part + 1) * share)
        };
        // One large product instead of many small ones.
        z.reshape([batch * tokens * share, mixed])
            .counted_matmul(map.transpose())
            .reshape([batch, tokens, share, out])
    });
    Tensor::cat(parts.collect(), 2)
}

/// Adds `W_D (gate * W_U z)` to a state whose heads are mixed, with the same maps for cosine and sine; `z` is
/// `[B, H, T, 2 E]`, `up` `[I, H]`, `gate` `[B, T, I]`, `down` `[H, I]`.
///
/// Both maps and the gate of a token are one map of its heads, `[H, H]`, which is smaller than what the maps would give one
/// after the other.
pub(super) fn through_gate(
    z: Tensor<4>,
    up: Tensor<2>,
    gate: Tensor<3>,
    down: Tensor<2>,
) -> Tensor<4> {
    let [size, heads] = up.dims();
    let [batch, tokens, _size] = gate.dims();
    // What the maps would cost one after the other, as the method is defined.
    count(2 * size * z.shape().num_elements());
    let products = down.transpose().unsqueeze_dim::<3>(2) * up.unsqueeze_dim::<3>(1);
    let of_tokens =
        product(gate.reshape([batch * tokens, size]), products.reshape([size, heads * heads]));
    mix_heads(z, of_tokens.reshape([batch, tokens, heads * heads]))
}

/// Row sums of one map `[M, M]`, or of the maps of cosine and sine, as `[1, 1, R, M]`.
pub(super) fn row_sums(maps: &[Param<Tensor<2>>], rest: usize) -> Tensor<4> {
    let parts = maps.iter().map(|map| {
        let sums = map.val().sum_dim(1);
        let [mixed, _one] = sums.dims();
        sums.reshape([1, 1, 1, mixed]).expand([1, 1, rest / maps.len(), mixed])
    });
    Tensor::cat(parts.collect(), 2)
}

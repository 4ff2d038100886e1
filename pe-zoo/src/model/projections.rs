//! Projections of the input of attention to queries, keys and values.

use burn::module::{Module, Param};
use burn::nn::{Linear, RmsNorm, RmsNormConfig};
use burn::tensor::{Device, Tensor};

use super::config::ModelConfig;
use super::layers::rms_epsilon;
use super::lora::{Adapters, LowRank};
use super::weights::{QkGains, learned};
use crate::ops::{self, LinearMap, MatmulPrecision};

/// Numbers of heads of queries, and of keys and values, and of their channels.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadSizes {
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) channels: usize,
}

impl HeadSizes {
    /// Heads of a model.
    pub(super) fn of(config: &ModelConfig) -> Self {
        Self { queries: config.heads, keys: config.kv_heads(), channels: config.head_dim() }
    }
}

/// Projects `[B, T, C]` with one map to queries `[B, H, T, D]`, and keys and values `[B, K, T, D]`.
pub(super) fn project(
    qkv: &Linear,
    HeadSizes { queries, keys, channels }: HeadSizes,
    adapters: Option<&Adapters>,
    x: &Tensor<3>,
    precision: MatmulPrecision,
) -> [Tensor<4>; 3] {
    let [batch, tokens, _width] = x.dims();
    let map = LinearMap { weight: qkv.weight.val(), bias: qkv.bias.as_ref().map(Param::val) };
    let heads = [queries, keys, keys];
    let [q, k, v] = ops::heads_of(precision, x, map, heads, channels);
    let Some(Adapters { q: of_q, k: of_k, v: of_v, .. }) = adapters else { return [q, k, v] };
    [(q, of_q, queries), (k, of_k, keys), (v, of_v, keys)].map(|(product, adapter, heads)| {
        let product = product.swap_dims(1, 2).reshape([batch, tokens, heads * channels]);
        LowRank::beside(Some(adapter), x, product)
            .reshape([batch, tokens, heads, channels])
            .swap_dims(1, 2)
    })
}

/// Normalisation of queries and keys.
#[derive(Module, Debug)]
pub(super) struct QueryKeyNorm {
    queries: RmsNorm,
    keys: RmsNorm,
}

impl QueryKeyNorm {
    pub(super) fn new(config: &ModelConfig, device: &Device) -> Option<Self> {
        let gains = config.qk_gains()?;
        let norm = |count| RmsNormConfig::new(count).with_epsilon(rms_epsilon(config)).init(device);
        Some(Self { queries: norm(gains.queries), keys: norm(gains.keys) })
    }

    /// Creates the normalisation with given gains.
    pub(super) fn of(config: &ModelConfig, gains: QkGains) -> Self {
        let norm = |gamma| RmsNorm { gamma: learned(gamma), epsilon: rms_epsilon(config) };
        Self { queries: norm(gains.queries), keys: norm(gains.keys) }
    }

    /// Lets frozen gains learn again.
    #[must_use]
    pub(super) fn learning(self) -> Self {
        let learning = |norm: RmsNorm| RmsNorm { gamma: norm.gamma.set_require_grad(true), ..norm };
        Self { queries: learning(self.queries), keys: learning(self.keys) }
    }

    /// Normalises queries `[B, H, T, D]` and keys `[B, K, T, D]`.
    pub(super) fn forward(&self, q: Tensor<4>, k: Tensor<4>) -> (Tensor<4>, Tensor<4>) {
        (normalised(&self.queries, q), normalised(&self.keys, k))
    }
}

/// Normalises over the channels of each head, or of all heads if there are as many gains.
fn normalised(norm: &RmsNorm, u: Tensor<4>) -> Tensor<4> {
    let [batch, heads, tokens, head_dim] = u.dims();
    let [gains] = norm.gamma.dims();
    if gains == head_dim {
        return ops::rms_norm(u, norm.gamma.val(), norm.epsilon);
    }
    let joined = u.swap_dims(1, 2).reshape([batch, tokens, heads * head_dim]);
    let joined = ops::rms_norm(joined, norm.gamma.val(), norm.epsilon);
    joined.reshape([batch, tokens, heads, head_dim]).swap_dims(1, 2)
}

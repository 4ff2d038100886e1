//! Projections of the input of attention to queries, keys and values.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::Tensor;

use super::config::ModelConfig;
use super::lora::{Adapters, LowRank};
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

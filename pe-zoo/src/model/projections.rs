//! Projections of the input of attention to queries, keys and values.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::Tensor;

use super::lora::{Adapters, LowRank};
use crate::ops::{self, LinearMap, MatmulPrecision};

/// Numbers of heads of queries, and of keys and values.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadCounts {
    pub(super) queries: usize,
    pub(super) keys: usize,
}

/// Projects `[B, T, C]` with one map to queries `[B, H, T, D]`, and keys and values `[B, K, T, D]`.
pub(super) fn project(
    qkv: &Linear,
    HeadCounts { queries, keys }: HeadCounts,
    adapters: Option<&Adapters>,
    x: &Tensor<3>,
    precision: MatmulPrecision,
) -> [Tensor<4>; 3] {
    let [batch, tokens, width] = x.dims();
    let head_dim = width / queries;
    let map = LinearMap { weight: qkv.weight.val(), bias: qkv.bias.as_ref().map(Param::val) };
    let heads = [queries, keys, keys];
    let [q, k, v] = ops::heads_of(precision, x, map, heads, head_dim);
    let Some(Adapters { q: of_q, k: of_k, v: of_v, .. }) = adapters else { return [q, k, v] };
    [(q, of_q, queries), (k, of_k, keys), (v, of_v, keys)].map(|(product, adapter, heads)| {
        let product = product.swap_dims(1, 2).reshape([batch, tokens, heads * head_dim]);
        LowRank::beside(Some(adapter), x, product)
            .reshape([batch, tokens, heads, head_dim])
            .swap_dims(1, 2)
    })
}

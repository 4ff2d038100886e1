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
    let (weight, bias) = (qkv.weight.val(), qkv.bias.as_ref().map(Param::val));
    let adapter = |part: fn(&Adapters) -> &LowRank| adapters.map(part);
    let parts = [
        (0, queries, adapter(|all| &all.q)),
        (queries, keys, adapter(|all| &all.k)),
        (queries + keys, keys, adapter(|all| &all.v)),
    ];
    // The weight is sliced, not the product, because the gradient of a slice has the size of the whole.
    let maps = parts.map(|(before, heads, _)| {
        let columns = before * head_dim..(before + heads) * head_dim;
        let weight = weight.clone().slice_dim(1, columns.clone());
        let bias = bias.clone().map(|bias| bias.slice_dim(0, columns));
        LinearMap { weight, bias }
    });
    let mut products = ops::linears_of(precision, x, maps).into_iter();
    parts.map(|(_, heads, adapter)| {
        let product = products.next().expect("a product of each part");
        LowRank::beside(adapter, x, product)
            .reshape([batch, tokens, heads, head_dim])
            .swap_dims(1, 2)
    })
}

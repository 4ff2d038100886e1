//! Biases from prices per token and per step, evaluated for every pair of tokens.

use burn::tensor::activation::log_sigmoid;
use burn::tensor::{Device, Tensor};

use crate::Positions;
use crate::count::CountedMatmul;
use crate::score::{StepPrices, TokenPrice};

impl TokenPrice {
    /// Bias added to the logits, `[B, H, T, S]`; `None` if neither keys nor queries set a price.
    pub(super) fn dense(&self, at: &Positions, device: &Device) -> Option<Tensor<4>> {
        let keys = self.keys.clone().map(|keys| keys.swap_dims(2, 3));
        let gates = match (keys, self.queries.clone()) {
            (Some(keys), Some(queries)) => keys + queries,
            (Some(gates), None) | (None, Some(gates)) => gates,
            (None, None) => return None,
        };
        let [heads] = self.rate.dims();
        let rate = self.rate.clone().reshape([1, heads, 1, 1]);
        let price = rate * at.float_distances(device).unsqueeze::<4>();
        Some((price * gates).neg())
    }
}

impl StepPrices {
    /// Bias added to the logits, `[B, H, T, S]`.
    pub(super) fn dense(&self, at: &Positions, device: &Device) -> Tensor<4> {
        let [_batch, heads, _rows, dim] = self.queries.dims();
        let products = self.queries.clone().counted_matmul(self.keys.clone().swap_dims(2, 3));
        let price = log_sigmoid(products / dim as f64);
        let price = price * at.visible(device).unsqueeze::<4>();
        let path = super::sum_after(price);
        path * self.slopes.clone().reshape([1, heads, 1, 1])
    }
}

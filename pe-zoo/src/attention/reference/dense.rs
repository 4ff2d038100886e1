//! Biases from prices and perceptrons, evaluated for every pair of tokens.

use burn::tensor::activation::{leaky_relu, log_sigmoid, relu};
use burn::tensor::{Device, Tensor, TensorData};

use crate::Positions;
use crate::count::CountedMatmul;
use crate::score::{HeadMlp, PositionMlp, StepPrices, TokenPrice};

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

impl PositionMlp {
    /// Computes the bias of every pair of tokens, `[1, H, T, S]`.
    pub(super) fn dense(&self, at: &Positions, device: &Device) -> Tensor<4> {
        let (rows, columns) = (at.rows().len(), at.cols().len());
        let positions = at.memo("row-positions", device, || {
            let values = at.rows().iter().map(|n| *n as f32).collect::<Vec<_>>();
            Tensor::<2>::from_data(TensorData::new(values, [rows, 1]), device)
        });
        let u = self.psi(at.float_distances(device)) / self.normalisers(positions);

        let column = |x: &Tensor<1>| x.clone().unsqueeze_dim::<2>(1);
        let u = u.reshape([1, rows * columns]);
        let hidden = column(&self.w1).counted_matmul(u) + column(&self.b1);
        let hidden = if self.negative_slope == 0.0 {
            relu(hidden)
        } else {
            leaky_relu(hidden, self.negative_slope)
        };
        let bias = self.w2.clone().counted_matmul(hidden) + column(&self.b2);
        let [heads, _pairs] = bias.dims();
        bias.reshape([1, heads, rows, columns])
    }
}

impl HeadMlp {
    /// Bias added to the logits, `[B, H, T, S]`, from products of queries and keys of the same shape and the base
    /// bias, `[1, H, T, S]`.
    pub(super) fn dense(
        &self,
        products: Tensor<4>,
        base: Option<Tensor<4>>,
        at: &Positions,
    ) -> Tensor<4> {
        let content = products * self.scale;
        let Some(base) = base else { return self.mix(content, at) };
        let planes = base.clone().expand(content.dims());
        base + self.mix(Tensor::cat(vec![content, planes], 1), at)
    }

    /// Applies the perceptron `g` to the planes, `[B, planes, T, S] -> [B, H, T, S]`.
    fn mix(&self, planes: Tensor<4>, at: &Positions) -> Tensor<4> {
        let hidden = |planes| leaky_relu(per_pair(planes, &self.w1, &self.c1), self.negative_slope);
        if self.taps == 1 {
            return per_pair(hidden(planes), &self.w2, &self.c2);
        }
        let [batch, inputs, rows, columns] = planes.dims();
        let device = planes.device();
        let seen = planes * at.visible(&device).unsqueeze::<4>();
        // One key more than there are, so that the last row's hidden units see past it as those of
        // every other row do.
        let next = Tensor::zeros([batch, inputs, rows, 1], &device);
        let hidden = hidden(with_neighbours(Tensor::cat(vec![seen, next], 3)));
        per_pair(with_neighbours(hidden), &self.w2, &self.c2).slice_dim(3, 0..columns)
    }
}

/// Applies `weights [M, K]` and a bias `[M]` at every pair of `[B, K, T, S]`; returns `[B, M, T,
/// S]`.
fn per_pair(planes: Tensor<4>, weights: &Tensor<2>, bias: &Tensor<1>) -> Tensor<4> {
    let [batch, inputs, rows, columns] = planes.dims();
    let flat = planes.reshape([batch, inputs, rows * columns]);
    let out = weights.clone().unsqueeze::<3>().counted_matmul(flat);
    let [_batch, outputs, _pairs] = out.dims();
    out.reshape([batch, outputs, rows, columns]) + bias.clone().reshape([1, outputs, 1, 1])
}

/// Stacks planes `[B, K, T, S]` with those of each key's left and right neighbours, `[B, 3 K, T,
/// S]`; 0 past either end.
fn with_neighbours(planes: Tensor<4>) -> Tensor<4> {
    let [batch, inputs, rows, columns] = planes.dims();
    let none = Tensor::zeros([batch, inputs, rows, 1], &planes.device());
    let before = planes.clone().slice_dim(3, 0..columns - 1);
    let after = planes.clone().slice_dim(3, 1..columns);
    let left = Tensor::cat(vec![none.clone(), before], 3);
    let right = Tensor::cat(vec![after, none], 3);
    Tensor::cat(vec![left, planes, right], 1)
}

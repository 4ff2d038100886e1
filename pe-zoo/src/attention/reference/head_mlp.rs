//! Perceptron across heads, evaluated for every pair of tokens.

use burn::tensor::Tensor;
use burn::tensor::activation::leaky_relu;

use crate::Positions;
use crate::count::CountedMatmul;
use crate::score::HeadMlp;

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

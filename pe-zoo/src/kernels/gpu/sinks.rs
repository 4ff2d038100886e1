//! Sinks: a logit of each head in the denominators of the softmax, to which no value belongs.
//!
//! The attention kernels do not know them: their results are changed afterwards. With the logarithm `l` of a row's denominator and
//! the sink `s`, the new logarithm is `ln(exp(l) + exp(s))`, and the output is multiplied by `sigmoid(l - s)`. The backward
//! kernels read both, so the other gradients are right.

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{Shape, Slice};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::elementwise::cubes_of_units;

/// Results of a forward kernel, to whose rows sinks can be added.
pub(super) struct SoftmaxRows<'a> {
    /// Attention output, `[B, H, T, E]`, in memory `[B, T, H, E]`.
    pub(super) output: &'a CubeTensor,
    /// Logarithms of the softmax denominators, `[B, H, T]` or longer, contiguous.
    pub(super) log: &'a CubeTensor,
    /// Difference of the logarithms of two numbers whose ratio is `e`: 1 for natural logarithms.
    pub(super) nat: f32,
}

impl SoftmaxRows<'_> {
    /// Adds sinks, `[H]`, to the denominators, in place.
    pub(super) fn add(&self, sinks: &CubeTensor) {
        let [_batch, heads, rows, width] = self.output.meta.shape().dims::<4>();
        let [_batch, _heads, stride] = self.log.meta.shape().dims::<3>();
        let client = &sinks.client;
        let flat = |tensor: &CubeTensor| tensor.clone().into_buffer_arg();
        let numbers = self.output.meta.shape().num_elements();
        let (count, dim) = cubes_of_units(client, numbers);
        shrink_rows::launch(
            client,
            count,
            dim,
            flat(self.output),
            flat(self.log),
            flat(sinks),
            numbers,
            self.nat,
            rows,
            stride,
            width,
            heads,
        );
        let numbers = self.log.meta.shape().num_elements();
        let (count, dim) = cubes_of_units(client, numbers);
        let (log, sinks) = (flat(self.log), flat(sinks));
        add_to_logs::launch(client, count, dim, log, sinks, numbers, self.nat, stride, heads);
    }

    /// Gradient of the sinks, `[H]`, from that of the output; the sinks have been added.
    pub(super) fn gradient(&self, sinks: &CubeTensor, grad: &CubeTensor) -> CubeTensor {
        let [batch, heads, rows, _width] = self.output.meta.shape().dims::<4>();
        let shares = Cube::float_sum_dim(Cube::float_mul(self.output.clone(), grad.clone()), 3);
        let shares = Cube::float_reshape(shares, Shape::from([batch, heads, rows]));
        let own_rows = [Slice::from(..), Slice::from(..), Slice::from(..rows)];
        let log = Cube::float_slice(self.log.clone(), &own_rows);
        let log = Cube::float_mul_scalar(log, (1.0 / self.nat).into());
        let sinks = Cube::float_reshape(sinks.clone(), Shape::from([1, heads, 1]));
        let weights = Cube::float_exp(Cube::float_sub(sinks, log));
        let of_rows = Cube::float_sum_dim(Cube::float_mul(weights, shares), 2);
        let of_heads = Cube::float_neg(Cube::float_sum_dim(of_rows, 0));
        Cube::float_reshape(of_heads, Shape::from([heads]))
    }
}

/// Multiplies each number of the output, `[B, T, H, E]`, by the share of the denominator that is not the sink's.
#[cube(launch)]
#[expect(clippy::too_many_arguments, reason = "tensors and sizes of a launch")]
fn shrink_rows(
    output: &mut [f32],
    log: &[f32],
    sinks: &[f32],
    count: usize,
    nat: f32,
    rows: usize,
    stride: usize,
    #[comptime] width: usize,
    #[comptime] heads: usize,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let line = at / width;
        let (head, token) = (line % heads, line / heads);
        let plane = token / rows * heads + head;
        let log = log[plane * stride + token % rows] / nat;
        output[at] = output[at] / (f32::new(1.0) + (sinks[head] - log).exp());
    }
}

/// Adds the sink to the denominator behind each logarithm, `[B, H, stride]`.
#[cube(launch)]
fn add_to_logs(
    log: &mut [f32],
    sinks: &[f32],
    count: usize,
    nat: f32,
    stride: usize,
    #[comptime] heads: usize,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let without = log[at] / nat;
        let sink = sinks[at / stride % heads];
        let smaller = (-(without - sink).abs()).exp();
        log[at] = (max(without, sink) + (f32::new(1.0) + smaller).ln()) * nat;
    }
}

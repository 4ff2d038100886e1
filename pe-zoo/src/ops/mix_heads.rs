//! Sums of a state's heads with weights of each token, in one pass.

use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::head_rows::{HeadRows, TokenPlace, each_row};
use super::row_product::dot;
use crate::kernels::cpu::operation::Operation;
use crate::kernels::cpu::parallel::rows_of_piece;
use crate::kernels::cpu::tensors::{contiguous, dense, dims, in_order, numbers};
use crate::kernels::cpu::view::{Start, in_new_memory};

/// Addition of a weighted sum of all heads to each head.
#[derive(Debug, Clone)]
pub(super) struct MixHeads;

impl Operation<2> for MixHeads {
    /// States and weights.
    type Kept = [FlexTensor; 2];

    fn forward(&self, [z, weights]: [FlexTensor; 2]) -> (FlexTensor, Self::Kept) {
        let (z, weights) = (in_order(z), dense(weights));
        (mixed(&z, &weights, false), [z, weights])
    }

    fn backward(
        &self,
        [z, weights]: Self::Kept,
        grad: FlexTensor,
        [of_z, of_weights]: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let grad = in_order(grad);
        let to_weights = of_weights.then(|| weight_grads(&grad, &z, &weights));
        [of_z.then(|| mixed(&grad, &weights, true)), to_weights]
    }
}

/// Computes `z + W z` or `z + W^T z` over the heads of each token.
fn mixed(z: &FlexTensor, weights: &FlexTensor, transposed: bool) -> FlexTensor {
    let [batch, heads, tokens, width] = dims(z);
    let (z, weights) = (HeadRows::new(z), numbers(weights));
    each_row(
        [batch, heads, tokens, width],
        #[inline(always)]
        |at, h, output| {
            let of_token = &weights[(at.sequence * tokens + at.token) * heads * heads..];
            output.copy_from_slice(z.row(at, h));
            for g in 0..heads {
                let weight = of_token[if transposed { g * heads + h } else { h * heads + g }];
                for (output, z) in output.iter_mut().zip(z.row(at, g)) {
                    *output += weight * z;
                }
            }
        },
    )
}

/// Computes the gradient of the weights: products of the gradients of heads with the states of heads.
fn weight_grads(grad: &FlexTensor, z: &FlexTensor, weights: &FlexTensor) -> FlexTensor {
    let [batch, heads, tokens, width] = dims(z);
    let (grad, z, pairs) = (HeadRows::new(grad), HeadRows::new(z), heads * heads);
    let rows = rows_of_piece(width);
    let len = batch * tokens * pairs;
    let output = in_new_memory(
        len,
        (rows * pairs).max(1),
        Start::Zeros,
        (0..len.div_ceil((rows * pairs).max(1))).into_par_iter(),
        #[inline(always)]
        |output, piece| {
            for (n, output) in output.chunks_exact_mut(pairs).enumerate() {
                let row = piece * rows + n;
                let at = TokenPlace::of_row(row, tokens);
                for (pair, output) in output.iter_mut().enumerate() {
                    *output = dot(grad.row(at, pair / heads), z.row(at, pair % heads));
                }
            }
        },
    );
    contiguous(output, weights.layout().shape().clone())
}

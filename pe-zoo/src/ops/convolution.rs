//! Causal convolution of each channel over the tokens, with SiLU, in one pass that keeps the input alone.

use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use crate::kernels::cpu::operation::Operation;
use crate::kernels::cpu::parallel::{rows_of_piece, rows_of_sum, total};
use crate::kernels::cpu::tensors::{contiguous, dense, numbers};
use crate::kernels::cpu::view::{Start, in_new_memory};
use crate::math::lanes;

/// Causal convolution of each channel over the tokens.
#[derive(Debug, Clone)]
pub(super) struct CausalConvolution {
    /// Whether SiLU follows.
    pub(super) silu: bool,
}

impl Operation<2> for CausalConvolution {
    /// Input and taps.
    type Kept = [FlexTensor; 2];

    fn forward(&self, inputs: [FlexTensor; 2]) -> (FlexTensor, Self::Kept) {
        let [x, taps] = inputs.map(dense);
        (Convolution::new(&x, &taps, self.silu).forward(&x), [x, taps])
    }

    fn backward(
        &self,
        [x, taps]: Self::Kept,
        grad: FlexTensor,
        _needed: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let grad = dense(grad);
        Convolution::new(&x, &taps, self.silu).backward(&x, &taps, numbers(&grad)).map(Some)
    }
}

#[derive(Clone, Copy)]
struct Convolution<'a> {
    x: &'a [f32],
    taps: &'a [f32],
    tokens: usize,
    width: usize,
    kernel: usize,
    silu: bool,
}

impl<'a> Convolution<'a> {
    fn new(x: &'a FlexTensor, taps: &'a FlexTensor, silu: bool) -> Self {
        let shape = x.layout().shape();
        let (tokens, width) = (shape[1], shape[2]);
        let kernel = taps.layout().shape()[0];
        Self { x: numbers(x), taps: numbers(taps), tokens, width, kernel, silu }
    }

    /// Tap number `k` of all channels.
    #[inline(always)]
    fn tap(&self, k: usize) -> &'a [f32] {
        &self.taps[k * self.width..][..self.width]
    }

    /// Input at a row, counted over all sequences.
    #[inline(always)]
    fn input(&self, row: usize) -> &'a [f32] {
        &self.x[row * self.width..][..self.width]
    }

    /// First tap of a row whose token is in the sequence, and the row that the tap reads.
    #[inline(always)]
    fn first(&self, row: usize) -> [usize; 2] {
        let before = (self.kernel - 1).min(row % self.tokens);
        [self.kernel - 1 - before, row - before]
    }

    /// Writes the convolution at a row, before SiLU.
    #[inline(always)]
    fn row(&self, row: usize, output: &mut [f32]) {
        let [first, from] = self.first(row);
        output.fill(0.0);
        for k in first..self.kernel {
            let terms = self.input(from + k - first).iter().zip(self.tap(k));
            for (output, (x, tap)) in output.iter_mut().zip(terms) {
                *output += x * tap;
            }
        }
    }

    fn forward(&self, x: &FlexTensor) -> FlexTensor {
        let rows = rows_of_piece(self.width);
        let piece = rows * self.width;
        let output = in_new_memory(
            self.x.len(),
            piece,
            Start::Zeros,
            (0..self.x.len().div_ceil(piece)).into_par_iter(),
            #[inline(always)]
            |output, piece| {
                for (n, output) in output.chunks_exact_mut(self.width).enumerate() {
                    self.row(piece * rows + n, output);
                    if self.silu {
                        for value in output {
                            *value *= lanes::sigmoid(*value);
                        }
                    }
                }
            },
        );
        contiguous(output, x.layout().shape().clone())
    }

    /// Computes the gradients of `x` and of the taps.
    fn backward(&self, x: &FlexTensor, taps: &FlexTensor, upstream: &[f32]) -> [FlexTensor; 2] {
        let (width, taps_len) = (self.width, self.kernel * self.width);
        let rows = rows_of_sum(width);
        let pieces = self.x.len().div_ceil(rows * width);
        let mut sums = vec![0.0; pieces * taps_len];
        let output = in_new_memory(
            self.x.len(),
            rows * width,
            Start::Zeros,
            sums.par_chunks_mut(taps_len).enumerate(),
            #[inline(always)]
            |output, (piece, sums)| self.piece_grads(piece * rows, upstream, output, sums),
        );
        let shape = |tensor: &FlexTensor| tensor.layout().shape().clone();
        [contiguous(output, shape(x)), contiguous(total(&sums, taps_len), shape(taps))]
    }

    /// Writes the gradients of consecutive inputs and adds to those of the taps.
    #[inline(always)]
    fn piece_grads(&self, start: usize, upstream: &[f32], output: &mut [f32], sums: &mut [f32]) {
        let width = self.width;
        let outputs = output.len() / width;
        // Inputs have gradients from the next `kernel - 1` outputs, too.
        let all = (outputs + self.kernel - 1).min(self.x.len() / width - start);
        let mut grads = upstream[start * width..][..all * width].to_vec();
        let mut before = vec![0.0; width];
        for (n, grad) in grads.chunks_exact_mut(width).enumerate() {
            if self.silu {
                self.row(start + n, &mut before);
                for (grad, x) in grad.iter_mut().zip(&before) {
                    let sigmoid = lanes::sigmoid(*x);
                    *grad *= sigmoid * (1.0 + x * (1.0 - sigmoid));
                }
            }
            let [first, from] = self.first(start + n);
            for k in first..self.kernel {
                let row = from + k - first;
                if n < outputs {
                    let terms = self.input(row).iter().zip(&*grad);
                    for (sum, (x, grad)) in sums[k * width..][..width].iter_mut().zip(terms) {
                        *sum += x * grad;
                    }
                }
                if (start..start + outputs).contains(&row) {
                    let terms = grad.iter().zip(self.tap(k));
                    let output = &mut output[(row - start) * width..][..width];
                    for (output, (grad, tap)) in output.iter_mut().zip(terms) {
                        *output += grad * tap;
                    }
                }
            }
        }
    }
}

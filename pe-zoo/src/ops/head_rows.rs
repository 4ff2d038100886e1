//! Queries, keys and states of heads, `[B, H, T, D]`, read and written token by token.

use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use crate::kernels::cpu::parallel::rows_of_piece;
use crate::kernels::cpu::tensors::in_token_order;
use crate::kernels::cpu::view::{Start, in_new_memory};

/// Place of a token in a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenPlace {
    pub(super) sequence: usize,
    pub(super) token: usize,
}

impl TokenPlace {
    /// Place of a row among those of sequences with this many tokens.
    #[inline(always)]
    pub(super) fn of_row(row: usize, tokens: usize) -> Self {
        Self { sequence: row / tokens, token: row % tokens }
    }
}

/// A tensor `[1 or B, 1 or H, 1 or T, D]`, whose axes of length 1 stand for all indices.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadRows<'a> {
    numbers: &'a [f32],
    /// Strides of sequence, head and token; 0 along an axis of length 1.
    strides: [usize; 3],
    width: usize,
}

impl<'a> HeadRows<'a> {
    /// Borrows a tensor that [`in_order`](crate::kernels::cpu::tensors::in_order) returned.
    pub(super) fn new(tensor: &'a FlexTensor) -> Self {
        let layout = tensor.layout();
        let shape = layout.shape();
        let stride = |axis: usize| match shape[axis] {
            1 => 0,
            _ => layout.strides()[axis].unsigned_abs(),
        };
        Self {
            numbers: &tensor.storage::<f32>()[layout.start_offset()..],
            strides: [stride(0), stride(1), stride(2)],
            width: shape[3],
        }
    }

    /// Numbers of one head of one token.
    #[inline(always)]
    pub(super) fn row(&self, at: TokenPlace, h: usize) -> &'a [f32] {
        let [of_batch, of_head, of_token] = self.strides;
        let start = at.sequence * of_batch + h * of_head + at.token * of_token;
        &self.numbers[start..][..self.width]
    }
}

/// Creates `[B, H, T, width]` row by row; `work` gets the place of the token, the head and the row.
#[inline(always)]
pub(super) fn each_row(
    [batch, heads, tokens, width]: [usize; 4],
    work: impl Fn(TokenPlace, usize, &mut [f32]) + Sync,
) -> FlexTensor {
    let of_token = heads * width;
    let rows = rows_of_piece(of_token);
    let (len, piece) = (batch * tokens * of_token, (rows * of_token).max(1));
    let output = in_new_memory(
        len,
        piece,
        Start::Zeros,
        (0..len.div_ceil(piece)).into_par_iter(),
        #[inline(always)]
        |output, piece| {
            for (n, output) in output.chunks_exact_mut(of_token).enumerate() {
                let row = piece * rows + n;
                for (h, output) in output.chunks_exact_mut(width).enumerate() {
                    work(TokenPlace::of_row(row, tokens), h, output);
                }
            }
        },
    );
    in_token_order(output, [batch, heads, tokens, width])
}

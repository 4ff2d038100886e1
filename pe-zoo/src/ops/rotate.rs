//! Rotation of channel pairs, in one pass over strided queries or keys.

use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::Pairs;
use super::head_rows::{HeadRows, TokenPlace};
use crate::kernels::cpu::operation::Operation;
use crate::kernels::cpu::parallel::in_pieces;
use crate::kernels::cpu::tensors::{dense, dims, in_order, in_token_order, numbers, token_layout};
use crate::kernels::cpu::view::{Start, in_new_memory};

/// Rotation of channel pairs by constant angles. Its inputs are `x` and cosines and sines of the angles, `[T, D / 2]` each.
#[derive(Debug, Clone)]
pub(super) struct Rotate {
    /// Channels that are rotated together.
    pub(super) pairs: Pairs,
}

impl Operation<3> for Rotate {
    /// Cosines and sines.
    type Kept = [FlexTensor; 2];

    fn forward(&self, [x, cos, sin]: [FlexTensor; 3]) -> (FlexTensor, Self::Kept) {
        let by = [cos, sin].map(dense);
        (turn(x, &by, self.pairs, 1.0), by)
    }

    fn backward(
        &self,
        by: Self::Kept,
        grad: FlexTensor,
        _needed: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        [Some(turn(grad, &by, self.pairs, -1.0)), None, None]
    }
}

/// Number of elements of a piece of work. No sum crosses elements, so that pieces change no result.
const PIECE: usize = 1 << 14;

/// Number of pairs that are rotated together. Loops over arrays are vectorised without tests of whether slices overlap.
const SIDE: usize = 8;

/// Rotates channel pairs, backwards if the factor `sign` of the sines is -1.
fn turn(x: FlexTensor, [cos, sin]: &[FlexTensor; 2], pairs: Pairs, sign: f32) -> FlexTensor {
    let head_dim = x.layout().shape()[3];
    let (cos, sin) = (numbers(cos), numbers(sin));
    let half = head_dim / 2;
    by_token(
        x,
        &mut [],
        #[inline(always)]
        |TokenPlace { token: t, .. }, row, _| {
            let (cos, sin) = (&cos[t * half..][..half], &sin[t * half..][..half]);
            for head in row.chunks_exact_mut(head_dim) {
                match pairs {
                    Pairs::HalfSplit => turn_halves(head, cos, sin, sign),
                    Pairs::Interleaved => turn_neighbours(head, cos, sin, sign),
                }
            }
        },
    )
}

/// Changes `x`, `[B, H, T, D]`, token by token, in place where its memory is not shared. `work` gets the place of the token, all
/// heads of the token and its part of `beside`, which has equally many numbers for each token or none at all.
///
/// The result is laid out as `[B, T, H, D]` whatever the layout of `x`, like the output of a projection.
#[inline(always)]
pub(super) fn by_token(
    x: FlexTensor,
    beside: &mut [f32],
    work: impl Fn(TokenPlace, &mut [f32], &mut [f32]) + Sync,
) -> FlexTensor {
    let all = dims(&x);
    let [batch, heads, tokens, head_dim] = all;
    let width = heads * head_dim;
    let len = batch * tokens * width;
    let beside_width = beside.len() / (batch * tokens).max(1);
    let rows = (PIECE / width.max(1)).max(1);
    let piece = (rows * width).max(1);
    let mut beside = beside.chunks_mut((rows * beside_width).max(1));
    let beside = (0..len.div_ceil(piece)).map(|_| beside.next().unwrap_or_default());
    let beside = beside.collect::<Vec<_>>().into_par_iter().enumerate();
    let layout = token_layout(all);
    let in_place = x.is_unique()
        && x.layout().start_offset() == 0
        && x.layout().strides() == layout.strides()
        && x.storage::<f32>().len() == len;
    if in_place {
        let mut x = x;
        in_pieces(
            x.storage_mut::<f32>().par_chunks_mut(piece).zip(beside),
            #[inline(always)]
            |(out, (piece, beside))| {
                let tokens = TokenRows { first: piece * rows, tokens, width, head_dim };
                tokens.each(out, beside, None, &work);
            },
        );
        return x;
    }
    let x = in_order(x);
    let source = HeadRows::new(&x);
    let output = in_new_memory(
        len,
        piece,
        Start::Zeros,
        beside,
        #[inline(always)]
        |out, (piece, beside)| {
            let tokens = TokenRows { first: piece * rows, tokens, width, head_dim };
            tokens.each(out, beside, Some(source), &work);
        },
    );
    in_token_order(output, all)
}

/// Consecutive tokens of a batch, all heads of each.
struct TokenRows {
    first: usize,
    tokens: usize,
    width: usize,
    head_dim: usize,
}

impl TokenRows {
    #[inline(always)]
    fn each(
        &self,
        out: &mut [f32],
        beside: &mut [f32],
        source: Option<HeadRows<'_>>,
        work: &impl Fn(TokenPlace, &mut [f32], &mut [f32]),
    ) {
        let beside_width = beside.len() / (out.len() / self.width).max(1);
        for (n, row) in out.chunks_exact_mut(self.width).enumerate() {
            let at = TokenPlace::of_row(self.first + n, self.tokens);
            if let Some(source) = source {
                for (h, head) in row.chunks_exact_mut(self.head_dim).enumerate() {
                    head.copy_from_slice(source.row(at, h));
                }
            }
            work(at, row, &mut beside[n * beside_width..][..beside_width]);
        }
    }
}

/// Rotates `(a, b)`.
#[inline(always)]
fn turned(a: f32, b: f32, cos: f32, sin: f32) -> (f32, f32) {
    (a * cos - b * sin, a * sin + b * cos)
}

/// Rotates channel `m` with channel `m + D / 2`.
#[inline(always)]
fn turn_halves(head: &mut [f32], cos: &[f32], sin: &[f32], sign: f32) {
    let (first, second) = head.split_at_mut(cos.len());
    let (first, first_rest) = first.as_chunks_mut::<SIDE>();
    let (second, second_rest) = second.as_chunks_mut::<SIDE>();
    let (cos, cos_rest) = cos.as_chunks::<SIDE>();
    let (sin, sin_rest) = sin.as_chunks::<SIDE>();
    for ((first, second), (cos, sin)) in first.iter_mut().zip(second).zip(cos.iter().zip(sin)) {
        let (mut a, mut b, cos, sin) = (*first, *second, *cos, *sin);
        for n in 0..SIDE {
            (a[n], b[n]) = turned(a[n], b[n], cos[n], sign * sin[n]);
        }
        (*first, *second) = (a, b);
    }
    let angles = cos_rest.iter().zip(sin_rest);
    for ((a, b), (cos, sin)) in first_rest.iter_mut().zip(second_rest).zip(angles) {
        (*a, *b) = turned(*a, *b, *cos, sign * sin);
    }
}

/// Rotates channel `2 m` with channel `2 m + 1`.
#[inline(always)]
fn turn_neighbours(head: &mut [f32], cos: &[f32], sin: &[f32], sign: f32) {
    for ([a, b], (cos, sin)) in head.as_chunks_mut::<2>().0.iter_mut().zip(cos.iter().zip(sin)) {
        (*a, *b) = turned(*a, *b, *cos, sign * sin);
    }
}

//! Matrices by which each chunk of Householder-like maps changes keys and queries, as a
//! differentiable operation.
//!
//! With `L[m, n] = beta_m w_m . w_n` for `n < m` and `X = (I + L)^-1` (the UT transform of Joffrain
//! et al. 2006, as used by Yang et al. 2025), the matrices are `X (beta W K^T)`, strictly below the
//! diagonal, and `X (beta W)`. Both come from one forward substitution, the gradient from one
//! backward substitution.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape as TensorShape, Tensor};
use rayon::prelude::*;

use crate::kernels::cpu::heads::plane;
use crate::kernels::cpu::operation::{Operation, apply};
use crate::kernels::cpu::parallel::in_pieces;
use crate::kernels::cpu::tensors::{contiguous, dense, dims, forward_strides, numbers};
use crate::kernels::cpu::view::{Add, Matrix, MatrixMut, Shape, multiply};
use crate::score::Reflected;

/// Number of columns per chunk.
const CHUNK: usize = Reflected::CHUNK;

/// Computes `[B, H, S, CHUNK + D]` from keys `[B, H, S, D]`, directions `[B, H, S, D]` and
/// strengths `[B, H, S, 1]`: in each row `X (beta W K^T)` within its chunk, then `X (beta W)`.
pub(crate) fn reflected_chunks(k: Tensor<4>, w: Tensor<4>, beta: Tensor<4>) -> Tensor<4> {
    apply(ReflectedChunks, [k, w, beta].map(Tensor::into_dispatch))
}

#[derive(Debug, Clone)]
struct ReflectedChunks;

#[derive(Debug, Clone)]
struct ReflectedChunksState {
    inputs: ReflectedChunkInputs,
    output: FlexTensor,
}

impl Operation<3> for ReflectedChunks {
    type Kept = ReflectedChunksState;

    fn forward(&self, inputs: [FlexTensor; 3]) -> (FlexTensor, ReflectedChunksState) {
        let inputs = ReflectedChunkInputs::new(inputs);
        let output = forward(&inputs);
        (output.clone(), ReflectedChunksState { inputs, output })
    }

    fn backward(
        &self,
        state: ReflectedChunksState,
        grad: FlexTensor,
        _needed: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        backward(&state, grad).map(Some)
    }
}

#[derive(Debug, Clone)]
struct ReflectedChunkInputs {
    k: FlexTensor,
    w: FlexTensor,
    beta: FlexTensor,
}

/// Columns of one chunk of one head.
struct Chunk<'a> {
    /// Keys, `[K, D]`.
    k: Matrix<'a>,
    /// Directions, `[K, D]`.
    w: Matrix<'a>,
    /// Strengths, `[K, 1]`.
    beta: Matrix<'a>,
}

impl ReflectedChunkInputs {
    fn new(tensors: [FlexTensor; 3]) -> Self {
        let [k, w, beta] = tensors.map(forward_strides);
        Self { k, w, beta }
    }

    /// Returns batch, heads, columns and head dimension.
    fn sizes(&self) -> [usize; 4] {
        dims(&self.k)
    }

    /// Returns the chunk at an index; chunks are numbered head by head.
    fn chunk(&self, index: usize) -> Chunk<'_> {
        let [_batch, heads, columns, _dim] = self.sizes();
        let per_head = columns.div_ceil(CHUNK);
        let (head, first) = (index / per_head, index % per_head * CHUNK);
        let len = CHUNK.min(columns - first);
        let of = |tensor| plane(tensor, head / heads, head % heads).rows(first, len);
        Chunk { k: of(&self.k), w: of(&self.w), beta: of(&self.beta) }
    }

    /// Splits `data`, `[B, H, S, width]`, into one slice per chunk.
    fn pieces<'a>(&self, data: &'a mut [f32], width: usize) -> Vec<&'a mut [f32]> {
        let [_batch, _heads, columns, _dim] = self.sizes();
        let heads = data.chunks_mut((columns * width).max(1));
        heads.flat_map(|head| head.chunks_mut((CHUNK * width).max(1))).collect()
    }
}

/// Computes `beta_m w_m`, `[K, D]`, and its products with the directions, which are `L` below the
/// diagonal.
fn scaled(chunk: &Chunk<'_>) -> (Vec<f32>, Vec<f32>) {
    let (len, dim) = (chunk.w.shape().rows, chunk.w.shape().columns);
    let mut scaled = vec![0.0; len * dim];
    for (m, row) in scaled.chunks_mut(dim.max(1)).enumerate() {
        for (d, value) in row.iter_mut().enumerate() {
            *value = chunk.beta.at(m, 0) * chunk.w.at(m, d);
        }
    }
    let mut lower = vec![0.0; len * len];
    let out = MatrixMut::new(&mut lower, Shape::dense(len, len));
    let rows = Matrix::new(&scaled, Shape::dense(len, dim));
    multiply(out, rows, chunk.w.t(), 1.0, Add::Overwrite);
    (scaled, lower)
}

/// Copies the part of `[K, K]` below the diagonal to the first columns of rows of `width`, and 0
/// elsewhere.
fn strictly_lower(data: &mut [f32], len: usize, width: usize) {
    for (m, row) in data.chunks_mut(width).enumerate() {
        row[m.min(len)..len].fill(0.0);
    }
}

/// Computes `to -= factor * from`.
#[inline(always)]
fn subtract(to: &mut [f32], from: &[f32], factor: f32) {
    for (to, from) in to.iter_mut().zip(from) {
        *to -= factor * from;
    }
}

fn forward(inputs: &ReflectedChunkInputs) -> FlexTensor {
    let [batch, heads, columns, dim] = inputs.sizes();
    let width = CHUNK + dim;
    let mut output = vec![0.0; batch * heads * columns * width];
    in_pieces(
        inputs.pieces(&mut output, width).into_par_iter().enumerate(),
        #[inline(always)]
        |(index, out)| {
            let chunk = inputs.chunk(index);
            let len = chunk.k.shape().rows;
            let (scaled, lower) = scaled(&chunk);
            let rows = Matrix::new(&scaled, Shape::dense(len, dim));
            let mut whole = MatrixMut::new(out, Shape::dense(len, width));
            multiply(whole.columns(len), rows, chunk.k.t(), 1.0, Add::Overwrite);
            strictly_lower(out, len, width);
            for (row, scaled) in out.chunks_mut(width).zip(scaled.chunks(dim.max(1))) {
                row[CHUNK..].copy_from_slice(scaled);
            }
            for m in 1..len {
                let (before, rest) = out.split_at_mut(m * width);
                for (n, from) in before.chunks(width).enumerate() {
                    subtract(&mut rest[..width], from, lower[m * len + n]);
                }
            }
        },
    );
    contiguous(output, TensorShape::from([batch, heads, columns, width]))
}

/// Computes the gradients of keys, directions and strengths.
fn backward(state: &ReflectedChunksState, grad: FlexTensor) -> [FlexTensor; 3] {
    let ReflectedChunksState { inputs, output } = state;
    let [batch, heads, columns, dim] = inputs.sizes();
    let width = CHUNK + dim;
    let grad = dense(grad);
    let all = batch * heads * columns;
    let mut dk = vec![0.0; all * dim];
    let mut dw = vec![0.0; all * dim];
    let mut dbeta = vec![0.0; all];
    let mut rows_before = 0;
    let starts = inputs
        .pieces(&mut dbeta, 1)
        .into_iter()
        .map(|beta| {
            let start = rows_before;
            rows_before += beta.len();
            (start, beta)
        })
        .collect::<Vec<_>>();
    let pieces = inputs.pieces(&mut dk, dim).into_iter().zip(inputs.pieces(&mut dw, dim));
    let pieces = pieces.zip(starts).collect::<Vec<_>>();
    in_pieces(
        pieces.into_par_iter().enumerate(),
        #[inline(always)]
        |(index, ((dk, dw), (start, dbeta)))| {
            let chunk = inputs.chunk(index);
            let len = chunk.k.shape().rows;
            let square = Shape::dense(len, len);
            let (scaled, lower) = scaled(&chunk);
            let scaled = Matrix::new(&scaled, Shape::dense(len, dim));
            let maps = &numbers(output)[start * width..][..len * width];
            // Gradients of the right-hand side of the substitution.
            let mut of_start = numbers(&grad)[start * width..][..len * width].to_vec();
            for m in (1..len).rev() {
                let (before, rest) = of_start.split_at_mut(m * width);
                for (n, to) in before.chunks_mut(width).enumerate() {
                    subtract(to, &rest[..width], lower[m * len + n]);
                }
            }
            let wide = Shape::dense(len, width);
            let mut of_lower = lower;
            let (left, right) = (Matrix::new(&of_start, wide), Matrix::new(maps, wide));
            multiply(MatrixMut::new(&mut of_lower, square), left, right.t(), -1.0, Add::Overwrite);
            strictly_lower(&mut of_lower, len, len);
            strictly_lower(&mut of_start, len, width);
            let of_lower = Matrix::new(&of_lower, square);
            let of_start = Matrix::new(&of_start, wide);
            let of_keys = of_start.columns(len);

            let mut of_scaled = vec![0.0; len * dim];
            let narrow = Shape::dense(len, dim);
            let mut out = MatrixMut::new(&mut of_scaled, narrow);
            multiply(out.reborrow(), of_lower, chunk.w, 1.0, Add::Overwrite);
            multiply(out.reborrow(), of_keys, chunk.k, 1.0, Add::Accumulate);
            let direct = of_start.columns_from(CHUNK);
            for m in 0..len {
                for d in 0..dim {
                    *out.get(m, d) += direct.at(m, d);
                }
            }
            multiply(MatrixMut::new(dk, narrow), of_keys.t(), scaled, 1.0, Add::Overwrite);
            let mut out = MatrixMut::new(dw, narrow);
            multiply(out.reborrow(), of_lower.t(), scaled, 1.0, Add::Overwrite);
            for (m, of_scaled) in of_scaled.chunks(dim.max(1)).enumerate() {
                let beta = chunk.beta.at(m, 0);
                for (d, of_scaled) in of_scaled.iter().enumerate() {
                    *out.get(m, d) += beta * of_scaled;
                    dbeta[m] += of_scaled * chunk.w.at(m, d);
                }
            }
        },
    );
    let like = |data, width| contiguous(data, TensorShape::from([batch, heads, columns, width]));
    [like(dk, dim), like(dw, dim), like(dbeta, 1)]
}

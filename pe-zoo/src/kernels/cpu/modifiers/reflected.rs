//! Products of queries and keys through Householder-like maps, chunk by chunk of columns.
//!
//! With `H_t = I - beta_t w_t w_t^T`, the product of row `i` and column `j` is `q_i . H_i ...
//! H_{j+1} k_j`. A block of rows processes the chunks from the newest to the oldest and carries the
//! queries as transformed so far. Two matrices per chunk, computed by `reflected_chunks`, hold the
//! chunk's effect on keys and on queries.

use crate::kernels::cpu::modifier_scratch::ReflectedScratch;
use crate::kernels::cpu::problem::{Block, Head};
use crate::kernels::cpu::reduce::Grads;
use crate::kernels::cpu::scratch::{grow, lanes as read, lanes_mut as write};
use crate::kernels::cpu::view::{Add, Matrix, MatrixMut, Shape, multiply};
use crate::kernels::operands::Slot;
use crate::math::lanes::Lanes;

/// Operands of the Householder-like maps for one head.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels::cpu) struct ReflectedOperands<'a> {
    /// Directions, `[S, D]`.
    directions: Matrix<'a>,
    /// Effect of each chunk of `K` columns on keys, followed by that on queries, `[S, K + D]`.
    chunks: Matrix<'a>,
}

impl<'a> ReflectedOperands<'a> {
    /// Returns the operands of a head; `None` if it has no such maps.
    pub(in crate::kernels::cpu) fn of(head: &Head<'a>) -> Option<Self> {
        let chunks = head.optional(Slot::ReflectedChunks)?;
        Some(Self { directions: head.required(Slot::ReflectedDirections), chunks })
    }

    fn chunk(&self) -> usize {
        self.chunks.shape().columns - self.directions.shape().columns
    }

    /// Returns the two matrices, `[len, len]` and `[len, D]`, of the chunk that starts at column
    /// `first`.
    fn of_chunk(&self, first: usize, len: usize) -> (Matrix<'a>, Matrix<'a>) {
        let rows = self.chunks.rows(first, len);
        (rows.columns(len), rows.columns_from(self.chunk()))
    }
}

/// Iterates over the chunks that a block sees, oldest first, as first column and number of columns.
fn chunks(columns: usize, chunk: usize) -> impl DoubleEndedIterator<Item = (usize, usize)> {
    (0..columns.div_ceil(chunk)).map(move |n| (n * chunk, chunk.min(columns - n * chunk)))
}

/// Sets entries of columns that a lane does not see to 0.
#[inline(always)]
fn mask<const R: usize>(block: &Block<R>, first: usize, values: &mut [Lanes<R>]) {
    for (j, values) in values.iter_mut().enumerate() {
        let column = first + j;
        if column >= block.open {
            for r in 0..R {
                values[r] = if column as f32 <= block.last_seen[r] { values[r] } else { 0.0 };
            }
        }
    }
}

/// Overwrites `out` with the products times `scale`. With `keep`, stores in `s` what the gradient
/// needs.
#[inline(always)]
pub(in crate::kernels::cpu) fn products<const R: usize>(
    reflected: &ReflectedOperands<'_>,
    head: &Head<'_>,
    block: &Block<R>,
    scale: f32,
    s: &mut ReflectedScratch<R>,
    out: &mut [Lanes<R>],
    keep: bool,
) {
    let (n, rows, q, k) = (block.columns, block.rows, head.q(), head.k());
    let dim = q.shape().columns;
    let size = rows * dim;
    let queries = if keep { n.div_ceil(reflected.chunk()) } else { 1 };
    grow(&mut s.along, n);
    s.queries.resize(queries * size, 0.0);
    let query = q.rows(block.first, rows);
    for r in 0..rows {
        for d in 0..dim {
            s.queries[r * dim + d] = query.at(r, d);
        }
    }
    let shape = Shape::dense(rows, dim);
    let mut at = 0;
    for (first, len) in chunks(n, reflected.chunk()).rev() {
        let (to_key, to_query) = reflected.of_chunk(first, len);
        let seen_from_here = Matrix::new(&s.queries[at..at + size], shape).t();
        let along = &mut s.along[first..first + len];
        let w = reflected.directions.rows(first, len);
        multiply(write(along, len, rows), w, seen_from_here, 1.0, Add::Overwrite);
        mask(block, first, along);
        let along = read(along, len, rows);
        let out = &mut out[first..first + len];
        let k = k.rows(first, len);
        multiply(write(out, len, rows), k, seen_from_here, scale, Add::Overwrite);
        multiply(write(out, len, rows), to_key.t(), along, -scale, Add::Accumulate);
        if first > 0 {
            if keep {
                s.queries.copy_within(at..at + size, at + size);
                at += size;
            }
            let next = MatrixMut::new(&mut s.queries[at..at + size], shape);
            multiply(next, along.t(), to_query, -1.0, Add::Accumulate);
        }
    }
}

/// Adds the gradients of queries (`dq`, the block's own rows), keys and operands, computed from
/// those of the products; [`products`] must have run with `keep` before.
#[inline(always)]
pub(in crate::kernels::cpu) fn backward<const R: usize>(
    reflected: &ReflectedOperands<'_>,
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut ReflectedScratch<R>,
    product_grads: &[Lanes<R>],
    dq: &mut MatrixMut<'_>,
    grads: &mut Grads<'_>,
) {
    let Some(scale) = head.spec.content_scale else { return };
    let slots = [Slot::Key, Slot::ReflectedDirections, Slot::ReflectedChunks];
    let Some([dk, of_directions, of_chunks]) = grads.all(slots) else { return };
    let (n, rows, k) = (block.columns, block.rows, head.k());
    let dim = k.shape().columns;
    let size = rows * dim;
    let shape = Shape::dense(rows, dim);
    let width = reflected.chunk();
    grow(&mut s.along_grads, width);
    // Gradient of the queries as transformed for the previous chunk.
    s.query_grads.clear();
    s.query_grads.resize(size, 0.0);
    s.next_grads.resize(size, 0.0);
    for (first, len) in chunks(n, width) {
        let (to_key, to_query) = reflected.of_chunk(first, len);
        let chunks_after = n.div_ceil(width) - 1 - first / width;
        let query = Matrix::new(&s.queries[chunks_after * size..][..size], shape);
        let of_products = read(&product_grads[first..], len, rows);
        let of_older = Matrix::new(&s.query_grads, shape);
        let along = read(&s.along[first..], len, rows);

        let of_along = &mut s.along_grads[..len];
        multiply(write(of_along, len, rows), to_key, of_products, -scale, Add::Overwrite);
        if first > 0 {
            multiply(write(of_along, len, rows), to_query, of_older.t(), -1.0, Add::Accumulate);
        }
        mask(block, first, of_along);
        let of_along = read(of_along, len, rows);

        let mut of_chunk = of_chunks.rows(first, len);
        multiply(of_chunk.columns(len), along, of_products.t(), -scale, Add::Accumulate);
        if first > 0 {
            multiply(of_chunk.columns_from(width), along, of_older, -1.0, Add::Accumulate);
        }
        s.next_grads.copy_from_slice(&s.query_grads);
        let mut of_query = MatrixMut::new(&mut s.next_grads, shape);
        let (k, w) = (k.rows(first, len), reflected.directions.rows(first, len));
        multiply(of_query.reborrow(), of_products.t(), k, scale, Add::Accumulate);
        multiply(of_query, of_along.t(), w, 1.0, Add::Accumulate);
        multiply(dk.rows(first, len), of_products, query, scale, Add::Accumulate);
        multiply(of_directions.rows(first, len), of_along, query, 1.0, Add::Accumulate);
        std::mem::swap(&mut s.query_grads, &mut s.next_grads);
    }
    for r in 0..rows {
        for d in 0..dim {
            *dq.get(r, d) += s.query_grads[r * dim + d];
        }
    }
}

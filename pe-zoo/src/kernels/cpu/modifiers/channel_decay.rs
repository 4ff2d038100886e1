//! Products of queries and keys whose channels decay with the distance.
//!
//! With `P` the running sums of the channels' decays, the product of row `i` and column `j` is `sum over c of q_ic k_jc exp(P_ic -
//! P_jc)`. For the columns up to a block's first row `a`, `exp(P_i - P_a)` scales the queries and `exp(P_a - P_j)` the keys: both
//! are at most 1, so that nothing overflows, and one that vanishes belongs to a product that does. The few pairs within the
//! block are computed one by one.

use std::borrow::Cow;

use crate::kernels::cpu::modifier_scratch::ChannelDecayScratch;
use crate::kernels::cpu::problem::{Block, Head};
use crate::kernels::cpu::reduce::Grads;
use crate::kernels::cpu::scratch::{lanes as read, lanes_mut as write};
use crate::kernels::cpu::view::{Add, Matrix, MatrixMut, Shape, multiply};
use crate::kernels::operands::Slot;
use crate::math::lanes::{self, Lanes};

/// Running sums of one head.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels::cpu) struct ChannelDecayOperands<'a> {
    /// Running sums, `[S, D]`.
    sums: Matrix<'a>,
}

impl<'a> ChannelDecayOperands<'a> {
    /// Returns the operands of a head; `None` if its channels do not decay.
    pub(in crate::kernels::cpu) fn of(head: &Head<'a>) -> Option<Self> {
        head.optional(Slot::ChannelDecay).map(|sums| Self { sums })
    }
}

/// Row of a matrix, copied if its elements are not adjacent.
fn row(matrix: Matrix<'_>, row: usize) -> Cow<'_, [f32]> {
    let copied = || (0..matrix.shape().columns).map(|c| matrix.at(row, c)).collect();
    matrix.row(row).map_or_else(|| Cow::Owned(copied()), Cow::Borrowed)
}

/// Computes `exp(newer - older)` for each channel, at most 1, and `u` times it.
#[inline(always)]
fn scale(u: &[f32], newer: &[f32], older: &[f32], factors: &mut [f32], scaled: &mut [f32]) {
    for c in 0..u.len() {
        factors[c] = lanes::weight((newer[c] - older[c]).min(0.0));
        scaled[c] = u[c] * factors[c];
    }
}

/// Overwrites `out` with the products times `scale`.
#[inline(always)]
pub(in crate::kernels::cpu) fn products<const R: usize>(
    decay: &ChannelDecayOperands<'_>,
    head: &Head<'_>,
    block: &Block<R>,
    factor: f32,
    s: &mut ChannelDecayScratch,
    out: &mut [Lanes<R>],
) {
    let (n, rows, q, k) = (block.columns, block.rows, head.q(), head.k());
    let dim = q.shape().columns;
    let anchor = head.spec.first_row + block.first;
    let older = anchor + 1;
    for buffer in [&mut s.queries, &mut s.query_factors] {
        buffer.resize(rows * dim, 0.0);
    }
    for buffer in [&mut s.keys, &mut s.key_factors] {
        buffer.resize(older * dim, 0.0);
    }
    let at_anchor = row(decay.sums, anchor);
    for r in 0..rows {
        let of_row = r * dim..(r + 1) * dim;
        let (factors, scaled) = (&mut s.query_factors[of_row.clone()], &mut s.queries[of_row]);
        let sums = row(decay.sums, anchor + r);
        scale(&row(q, block.first + r), &sums, &at_anchor, factors, scaled);
    }
    for j in 0..older {
        let of_column = j * dim..(j + 1) * dim;
        let (factors, scaled) = (&mut s.key_factors[of_column.clone()], &mut s.keys[of_column]);
        scale(&row(k, j), &at_anchor, &row(decay.sums, j), factors, scaled);
    }
    let queries = Matrix::new(&s.queries, Shape::dense(rows, dim));
    let keys = Matrix::new(&s.keys, Shape::dense(older, dim));
    multiply(write(out, older, rows), keys, queries.t(), factor, Add::Overwrite);
    for (j, out) in out.iter_mut().enumerate().take(n).skip(older) {
        *out = [0.0; R];
        let (key, sums) = (row(k, j), row(decay.sums, j));
        for r in j - anchor..rows {
            let (query, newer) = (row(q, block.first + r), row(decay.sums, anchor + r));
            let mut sum = 0.0;
            for c in 0..dim {
                sum += query[c] * key[c] * lanes::weight((newer[c] - sums[c]).min(0.0));
            }
            out[r] = factor * sum;
        }
    }
}

/// Adds the gradients of queries (`dq`, the block's own rows), keys and running sums, computed from those of the products;
/// [`products`] must have run for the same block before.
///
/// The sums of the anchor cancel: what the queries gain by it the keys lose.
#[inline(always)]
pub(in crate::kernels::cpu) fn backward<const R: usize>(
    decay: &ChannelDecayOperands<'_>,
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut ChannelDecayScratch,
    product_grads: &[Lanes<R>],
    dq: &mut MatrixMut<'_>,
    grads: &mut Grads<'_>,
) {
    let Some(factor) = head.spec.content_scale else { return };
    let (n, rows, q, k) = (block.columns, block.rows, head.q(), head.k());
    let dim = q.shape().columns;
    let anchor = head.spec.first_row + block.first;
    let older = anchor + 1;
    s.query_grads.resize(rows * dim, 0.0);
    s.key_grads.resize(older * dim, 0.0);
    let (of_rows, of_older) = (Shape::dense(rows, dim), Shape::dense(older, dim));
    let products = read(product_grads, older, rows);
    let queries = Matrix::new(&s.queries, of_rows);
    let keys = Matrix::new(&s.keys, of_older);
    let out = MatrixMut::new(&mut s.query_grads, of_rows);
    multiply(out, products.t(), keys, factor, Add::Overwrite);
    let out = MatrixMut::new(&mut s.key_grads, of_older);
    multiply(out, products, queries, factor, Add::Overwrite);
    for r in 0..rows {
        for c in 0..dim {
            *dq.get(r, c) += s.query_grads[r * dim + c] * s.query_factors[r * dim + c];
        }
    }
    if let Some(dk) = grads.get(Slot::Key) {
        for j in 0..older {
            for c in 0..dim {
                *dk.get(j, c) += s.key_grads[j * dim + c] * s.key_factors[j * dim + c];
            }
        }
    }
    if let Some(sums) = grads.get(Slot::ChannelDecay) {
        for r in 0..rows {
            for c in 0..dim {
                *sums.get(anchor + r, c) += s.query_grads[r * dim + c] * s.queries[r * dim + c];
            }
        }
        for j in 0..older {
            for c in 0..dim {
                *sums.get(j, c) -= s.key_grads[j * dim + c] * s.keys[j * dim + c];
            }
        }
    }
    for (j, product_grads) in product_grads.iter().enumerate().take(n).skip(older) {
        let (key, older_sums) = (row(k, j), row(decay.sums, j));
        for r in j - anchor..rows {
            let (query, newer) = (row(q, block.first + r), row(decay.sums, anchor + r));
            let grad = factor * product_grads[r];
            for c in 0..dim {
                let decayed = grad * lanes::weight((newer[c] - older_sums[c]).min(0.0));
                *dq.get(r, c) += decayed * key[c];
                if let Some(dk) = grads.get(Slot::Key) {
                    *dk.get(j, c) += decayed * query[c];
                }
                if let Some(sums) = grads.get(Slot::ChannelDecay) {
                    *sums.get(anchor + r, c) += decayed * query[c] * key[c];
                    *sums.get(j, c) -= decayed * query[c] * key[c];
                }
            }
        }
    }
}

//! Products of other queries and keys for pairs of tokens far from each other.
//!
//! Columns ascend by position, so that the first ones are far from every row of a block, the last ones from none, and only those
//! in between, about as many as the block has rows, need both products.

use crate::kernels::cpu::modifier_scratch::FarScratch;
use crate::kernels::cpu::problem::{Block, Head};
use crate::kernels::cpu::reduce::Grads;
use crate::kernels::cpu::scratch::{grow, lanes as read, lanes_mut as write};
use crate::kernels::cpu::view::{Add, Matrix, MatrixMut, multiply};
use crate::kernels::operands::Slot;
use crate::math::lanes::Lanes;
use crate::score::FarPairs;

/// Queries and keys of far pairs, for one head.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels::cpu) struct FarOperands<'a> {
    /// Queries, `[T, D]`.
    queries: Matrix<'a>,
    /// Keys, `[S, D]`.
    keys: Matrix<'a>,
    pairs: FarPairs,
}

/// Columns of a block, by rows from which they are far.
#[derive(Debug, Clone, Copy)]
struct FarColumns {
    /// Number of columns that are far from every row; the first ones.
    all_rows: usize,
    /// Number of columns that are far from at least one row.
    any_row: usize,
}

impl<'a> FarOperands<'a> {
    /// Returns the operands of a head; `None` if no pair has products of its own.
    pub(in crate::kernels::cpu) fn of(head: &Head<'a>) -> Option<Self> {
        let (keys, pairs) = (head.optional(Slot::FarKey)?, head.spec.far_pairs?);
        Some(Self { queries: head.required(Slot::FarQuery), keys, pairs })
    }
}

fn columns<const R: usize>(pairs: FarPairs, head: &Head<'_>, block: &Block<R>) -> FarColumns {
    let spec = head.spec;
    let seen = &spec.columns[..block.columns];
    let far_from = |row: usize| {
        let first_near = pairs.first_near(spec.columns[row]);
        seen.partition_point(|column| *column < first_near)
    };
    FarColumns {
        all_rows: far_from(spec.first_row + block.first),
        any_row: far_from(block.columns - 1),
    }
}

/// First position that is not far from each lane, after that of the first column.
#[inline(always)]
fn first_near<const R: usize>(pairs: FarPairs, head: &Head<'_>, block: &Block<R>) -> Lanes<R> {
    let (spec, first) = (head.spec, head.spec.first_row + block.first);
    std::array::from_fn(|r| {
        let near = pairs.first_near(spec.columns[(first + r).min(block.columns - 1)]);
        near.saturating_sub(spec.columns[0]) as f32
    })
}

/// Whether each lane is far from a column.
#[inline(always)]
fn is_far<const R: usize>(head: &Head<'_>, first_near: &Lanes<R>, column: usize) -> [bool; R] {
    let column = head.spec.relative_position(column);
    first_near.map(|near| column < near)
}

/// Overwrites `out` with the products times `scale`.
#[inline(always)]
pub(in crate::kernels::cpu) fn products<const R: usize>(
    far: &FarOperands<'_>,
    head: &Head<'_>,
    block: &Block<R>,
    scale: f32,
    s: &mut FarScratch<R>,
    out: &mut [Lanes<R>],
) {
    let (n, rows) = (block.columns, block.rows);
    let FarColumns { all_rows, any_row } = columns(far.pairs, head, block);
    if all_rows < n {
        let near = write(&mut out[all_rows..], n - all_rows, rows);
        let query = head.q().rows(block.first, rows);
        let keys = head.k().rows(all_rows, n - all_rows);
        multiply(near, keys, query.t(), scale, Add::Overwrite);
    }
    if any_row == 0 {
        return;
    }
    grow(&mut s.far, any_row);
    let query = far.queries.rows(block.first, rows);
    let products = write(&mut s.far, any_row, rows);
    multiply(products, far.keys.rows(0, any_row), query.t(), scale, Add::Overwrite);
    out[..all_rows].copy_from_slice(&s.far[..all_rows]);
    let near = first_near(far.pairs, head, block);
    for j in all_rows..any_row {
        let is_far = is_far(head, &near, j);
        for r in 0..R {
            out[j][r] = if is_far[r] { s.far[j][r] } else { out[j][r] };
        }
    }
}

/// Adds the gradients of queries (`dq`, the block's own rows), keys and operands, computed from those of the products.
#[inline(always)]
pub(in crate::kernels::cpu) fn backward<const R: usize>(
    far: &FarOperands<'_>,
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut FarScratch<R>,
    product_grads: &[Lanes<R>],
    dq: &mut MatrixMut<'_>,
    grads: &mut Grads<'_>,
) {
    let Some(scale) = head.spec.content_scale else { return };
    let (n, rows) = (block.columns, block.rows);
    let FarColumns { all_rows, any_row } = columns(far.pairs, head, block);
    grow(&mut s.far, any_row);
    grow(&mut s.near, n - all_rows);
    s.far[..any_row].copy_from_slice(&product_grads[..any_row]);
    s.near[..n - all_rows].copy_from_slice(&product_grads[all_rows..n]);
    let near = first_near(far.pairs, head, block);
    for j in all_rows..any_row {
        let is_far = is_far(head, &near, j);
        for r in 0..R {
            let unused = if is_far[r] { &mut s.near[j - all_rows][r] } else { &mut s.far[j][r] };
            *unused = 0.0;
        }
    }
    if all_rows < n {
        let (keys, near) =
            (head.k().rows(all_rows, n - all_rows), read(&s.near, n - all_rows, rows));
        multiply(dq.reborrow(), near.t(), keys, scale, Add::Accumulate);
        if let Some(dk) = grads.get(Slot::Key) {
            let query = head.q().rows(block.first, rows);
            multiply(dk.rows(all_rows, n - all_rows), near, query, scale, Add::Accumulate);
        }
    }
    if any_row == 0 {
        return;
    }
    let products = read(&s.far, any_row, rows);
    if let Some(queries) = grads.get(Slot::FarQuery) {
        let keys = far.keys.rows(0, any_row);
        multiply(queries.rows(block.first, rows), products.t(), keys, scale, Add::Accumulate);
    }
    if let Some(keys) = grads.get(Slot::FarKey) {
        let query = far.queries.rows(block.first, rows);
        multiply(keys.rows(0, any_row), products, query, scale, Add::Accumulate);
    }
}

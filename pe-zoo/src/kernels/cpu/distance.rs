//! Biases that depend on the distance between query and key: slopes and tables.

use super::problem::{Block, Head};
use super::reduce::Grads;
use super::scratch::{Scratch, grow, lanes as read, lanes_mut as write};
use super::view::{Add, Matrix, MatrixMut, multiply};
use crate::kernels::operands::Slot;
use crate::kernels::spec::WeightRule;
use crate::math::lanes::Lanes;

/// Index into a table of `entries` for each lane's distance to column `j`; arbitrary but valid
/// where the lane does not see the column.
#[inline(always)]
pub(super) fn index<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    j: usize,
    entries: usize,
) -> [u32; R] {
    let first = head.spec.first_row + block.first;
    let last = (entries - 1) as i32;
    if head.spec.contiguous {
        let nearest = first as i32 - j as i32;
        std::array::from_fn(|r| nearest.wrapping_add(r as i32).clamp(0, last) as u32)
    } else {
        let columns = &head.spec.columns;
        std::array::from_fn(|r| {
            let row = (first + r).min(block.columns - 1);
            columns[row].saturating_sub(columns[j]).min(entries - 1) as u32
        })
    }
}

/// Start of the window of a table laid out by [`unroll`] that holds the lanes' distances to column
/// `j`.
#[inline(always)]
pub(super) fn window<const R: usize>(head: &Head<'_>, block: &Block<R>, j: usize) -> usize {
    head.spec.first_row + block.first + R - j
}

/// Copies a table for contiguous positions, from distance `-R` (value 0, never seen) on, so that
/// the lanes of one column are adjacent.
#[inline(always)]
pub(super) fn unroll<const R: usize>(block: &Block<R>, table: &Matrix<'_>, out: &mut Vec<f32>) {
    let last = table.shape().columns - 1;
    out.clear();
    out.resize(R, 0.0);
    out.extend((0..block.columns + R).map(|distance| table.at(0, distance.min(last))));
}

/// Number of entries of a distance table that a block can reach.
pub(super) fn reach<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    table: &Matrix<'_>,
) -> usize {
    let columns = &head.spec.columns;
    let farthest = columns[block.columns - 1] - columns[0];
    table.shape().columns.min(farthest + 1)
}

/// Positions of the block's rows relative to the first column; unused lanes repeat the last one.
#[inline(always)]
pub(super) fn row_positions<const R: usize>(head: &Head<'_>, block: &Block<R>) -> Lanes<R> {
    let first = head.spec.first_row + block.first;
    std::array::from_fn(|r| head.spec.relative_position((first + r).min(block.columns - 1)))
}

/// Adds the biases by distance to `s.logits`.
#[inline(always)]
pub(super) fn add<const R: usize>(head: &Head<'_>, block: &Block<R>, s: &mut Scratch<R>) {
    let n = block.columns;
    if let Some(slope) = head.optional(Slot::Slope) {
        let slope = slope.at(0, 0);
        let rows = row_positions(head, block);
        for (j, logits) in s.logits[..n].iter_mut().enumerate() {
            let column = head.spec.relative_position(j);
            for r in 0..R {
                logits[r] += slope * (column - rows[r]);
            }
        }
    }
    if let Some(table) = head.optional(Slot::Distance) {
        if head.spec.contiguous {
            unroll(block, &table, &mut s.unrolled);
            for (j, logits) in s.logits[..n].iter_mut().enumerate() {
                let biases = &s.unrolled[window(head, block, j)..][..R];
                for r in 0..R {
                    logits[r] += biases[r];
                }
            }
        } else {
            let entries = reach(head, block, &table);
            for j in 0..n {
                let index = index(head, block, j, entries);
                let logits = &mut s.logits[j];
                for r in 0..R {
                    logits[r] += table.at(0, index[r] as usize);
                }
            }
        }
    }
    if let Some(table) = head.optional(Slot::QueryDistance) {
        let products = RowProducts { vectors: head.q(), table, scale: head.spec.distance_scale };
        products.add(head, block, s);
    }
    if let Some(table) = head.optional(Slot::RowDistance) {
        let vectors = head.required(Slot::RowVectors);
        RowProducts { vectors, table, scale: 1.0 }.add(head, block, s);
    }
}

/// Products of a vector per row with a vector per distance, which are added to the logits.
struct RowProducts<'a> {
    /// Vectors of the rows, `[T, E]`.
    vectors: Matrix<'a>,
    /// Vectors of the distances, `[E, N]`.
    table: Matrix<'a>,
    scale: f32,
}

impl RowProducts<'_> {
    /// Adds the products to `s.logits`.
    #[inline(always)]
    fn add<const R: usize>(&self, head: &Head<'_>, block: &Block<R>, s: &mut Scratch<R>) {
        let Self { vectors, table, scale } = self;
        let entries = reach(head, block, table);
        grow(&mut s.distance_products, entries);
        multiply(
            write(&mut s.distance_products, entries, block.rows),
            table.columns(entries).t(),
            vectors.rows(block.first, block.rows).t(),
            *scale,
            Add::Overwrite,
        );
        for j in 0..block.columns {
            let index = index(head, block, j, entries);
            let logits = &mut s.logits[j];
            for r in 0..R {
                logits[r] += s.distance_products[index[r] as usize][r];
            }
        }
    }

    /// Adds the gradients of the block's vectors, `[R, E]`, and of the table, computed from those of the logits in `s.grads`.
    #[inline(always)]
    fn backward<const R: usize>(
        &self,
        head: &Head<'_>,
        block: &Block<R>,
        s: &mut Scratch<R>,
        of_vectors: MatrixMut<'_>,
        of_table: &mut MatrixMut<'_>,
    ) {
        let Self { vectors, table, scale } = self;
        let entries = reach(head, block, table);
        grow(&mut s.distance_product_grads, entries);
        s.distance_product_grads[..entries].fill([0.0; R]);
        for j in 0..block.columns {
            let index = index(head, block, j, entries);
            for r in 0..R {
                s.distance_product_grads[index[r] as usize][r] += s.grads[j][r];
            }
        }
        let rows = vectors.rows(block.first, block.rows);
        let products = read(&s.distance_product_grads, entries, block.rows);
        multiply(of_vectors, products.t(), table.columns(entries).t(), *scale, Add::Accumulate);
        multiply(of_table.columns(entries), rows.t(), products.t(), *scale, Add::Accumulate);
    }
}

/// Sum of the gradients of each row's logits under a softmax without a sink, which would be 0 without rounding; 0 under another
/// rule.
///
/// The share of a row is rounded, so that each of its gradients is wrong in proportion to its weight. A table collects this from
/// all rows, while the true sums nearly cancel where the table changes slowly with the distance.
#[inline(always)]
fn excess<const R: usize>(head: &Head<'_>, logit_grads: &[Lanes<R>]) -> Lanes<R> {
    let mut excess = [0.0; R];
    if head.spec.weights == WeightRule::Softmax && head.optional(Slot::Sink).is_none() {
        for logit_grads in logit_grads {
            for r in 0..R {
                excess[r] += logit_grads[r];
            }
        }
    }
    excess
}

/// Adds the gradients of the operands and of the queries, computed from those of the logits in
/// `s.grads`; `s.logits` has the weights.
#[inline(always)]
pub(super) fn backward<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    dq: &mut MatrixMut<'_>,
    grads: &mut Grads<'_>,
) {
    let n = block.columns;
    if let Some(slope) = grads.get(Slot::Slope) {
        let rows = row_positions(head, block);
        let mut sums = [0.0; R];
        for (j, logit_grads) in s.grads[..n].iter().enumerate() {
            let column = head.spec.relative_position(j);
            for r in 0..R {
                sums[r] += logit_grads[r] * (column - rows[r]);
            }
        }
        *slope.get(0, 0) += sums[..block.rows].iter().sum::<f32>();
    }
    if let (Some(table), Some(table_grads)) =
        (head.optional(Slot::Distance), grads.get(Slot::Distance))
    {
        let excess = excess(head, &s.grads[..n]);
        if head.spec.contiguous {
            s.unrolled.clear();
            s.unrolled.resize(n + 2 * R, 0.0);
            for (j, (logit_grads, weights)) in s.grads[..n].iter().zip(&s.logits[..n]).enumerate() {
                let sums = &mut s.unrolled[window(head, block, j)..][..R];
                for r in 0..R {
                    sums[r] += logit_grads[r] - excess[r] * weights[r];
                }
            }
            let last = table.shape().columns - 1;
            for (distance, sum) in s.unrolled[R..].iter().enumerate() {
                *table_grads.get(0, distance.min(last)) += sum;
            }
        } else {
            let entries = reach(head, block, &table);
            for j in 0..n {
                let index = index(head, block, j, entries);
                let (logit_grads, weights) = (&s.grads[j], &s.logits[j]);
                for r in 0..block.rows {
                    *table_grads.get(0, index[r] as usize) +=
                        logit_grads[r] - excess[r] * weights[r];
                }
            }
        }
    }
    if let (Some(table), Some(table_grads)) =
        (head.optional(Slot::QueryDistance), grads.get(Slot::QueryDistance))
    {
        let products = RowProducts { vectors: head.q(), table, scale: head.spec.distance_scale };
        products.backward(head, block, s, dq.reborrow(), table_grads);
    }
    if let Some(table) = head.optional(Slot::RowDistance)
        && let Some([of_vectors, of_table]) = grads.all([Slot::RowVectors, Slot::RowDistance])
    {
        let products = RowProducts { vectors: head.required(Slot::RowVectors), table, scale: 1.0 };
        let of_rows = of_vectors.rows(block.first, block.rows);
        products.backward(head, block, s, of_rows, of_table);
    }
}

//! Distance table that is read for all lanes of a column at once, and its gradient.

use crate::kernels::cpu::distance::{index, reach, unroll, window};
use crate::kernels::cpu::problem::{Block, Head};
use crate::kernels::cpu::view::{Matrix, MatrixMut};
use crate::math::lanes::Lanes;

/// Table `[1, N]` whose last entry holds for all greater distances.
pub(super) struct Distances<'a, const R: usize> {
    head: &'a Head<'a>,
    block: &'a Block<R>,
    table: Matrix<'a>,
    entries: usize,
    /// Copy of the table by distance, for contiguous positions.
    unrolled: &'a [f32],
}

impl<'a, const R: usize> Distances<'a, R> {
    #[inline(always)]
    pub(super) fn new(
        head: &'a Head<'a>,
        block: &'a Block<R>,
        table: Matrix<'a>,
        unrolled: &'a mut Vec<f32>,
    ) -> Self {
        if head.spec.contiguous {
            unroll(block, &table, unrolled);
        }
        Self { head, block, table, entries: reach(head, block, &table), unrolled }
    }

    /// Returns the entries for column `j`; arbitrary entries where the lane does not see the
    /// column.
    #[inline(always)]
    pub(super) fn at(&self, j: usize) -> Lanes<R> {
        let mut values = [0.0; R];
        if self.head.spec.contiguous {
            values.copy_from_slice(&self.unrolled[window(self.head, self.block, j)..][..R]);
        } else {
            let index = index(self.head, self.block, j, self.entries);
            for r in 0..R {
                values[r] = self.table.at(0, index[r] as usize);
            }
        }
        values
    }
}

/// Gradients of a distance table, summed by distance.
pub(super) struct DistanceSums<'a, 'b, const R: usize> {
    head: &'a Head<'a>,
    block: &'a Block<R>,
    entries: usize,
    sums: &'a mut Vec<f32>,
    table: &'a mut MatrixMut<'b>,
}

impl<'a, 'b, const R: usize> DistanceSums<'a, 'b, R> {
    #[inline(always)]
    pub(super) fn new(
        head: &'a Head<'a>,
        block: &'a Block<R>,
        like: &Matrix<'_>,
        sums: &'a mut Vec<f32>,
        table: &'a mut MatrixMut<'b>,
    ) -> Self {
        sums.clear();
        if head.spec.contiguous {
            sums.resize(block.columns + 2 * R, 0.0);
        }
        Self { head, block, entries: reach(head, block, like), sums, table }
    }

    /// Adds the gradients of the entries that [`Distances::at`] returned for column `j`; those of
    /// lanes that do not see the column must be 0.
    #[inline(always)]
    pub(super) fn add(&mut self, j: usize, grads: &Lanes<R>) {
        if self.head.spec.contiguous {
            let sums = &mut self.sums[window(self.head, self.block, j)..][..R];
            for r in 0..R {
                sums[r] += grads[r];
            }
        } else {
            let index = index(self.head, self.block, j, self.entries);
            for r in 0..self.block.rows {
                *self.table.get(0, index[r] as usize) += grads[r];
            }
        }
    }

    /// Adds the sums to the gradient of the table.
    #[inline(always)]
    pub(super) fn finish(self) {
        if self.head.spec.contiguous {
            let last = self.entries - 1;
            for (distance, sum) in self.sums[R..].iter().enumerate() {
                *self.table.get(0, distance.min(last)) += sum;
            }
        }
    }
}

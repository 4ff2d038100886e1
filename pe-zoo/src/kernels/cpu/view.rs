//! Strided matrices over borrowed memory, and their products. This is the only unsafe code of the
//! engine.
//!
//! Tasks of one pass write to interleaved rows of one tensor, which slices cannot express, and
//! products come from the `gemm` crate, which takes pointers. Both are wrapped here with every
//! bound checked.
#![expect(unsafe_code, reason = "disjoint strided writes and the gemm crate; checked in this file")]

mod matrix;

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use rayon::iter::repeat_n;
use rayon::prelude::*;

pub(crate) use matrix::{Matrix, Shape};

use super::parallel::{in_pieces, rows_of_piece};
use crate::math::simd;

/// Strided matrix over mutably borrowed memory.
#[derive(Debug)]
pub(crate) struct MatrixMut<'a> {
    start: *mut f32,
    shape: Shape,
    owner: PhantomData<&'a mut [f32]>,
}

impl<'a> MatrixMut<'a> {
    /// Creates a matrix that starts at the first element of `data`.
    pub(crate) fn new(data: &'a mut [f32], shape: Shape) -> Self {
        assert!(shape.extent() <= data.len(), "{shape:?} in {} elements", data.len());
        Self { start: data.as_mut_ptr(), shape, owner: PhantomData }
    }

    /// Reborrows the same matrix for a shorter lifetime.
    pub(crate) fn reborrow(&mut self) -> MatrixMut<'_> {
        MatrixMut { start: self.start, shape: self.shape, owner: PhantomData }
    }

    /// Splits the matrix into rows `..at` and rows `at..`.
    pub(crate) fn split_at_row(self, at: usize) -> (Self, Self) {
        assert!(at <= self.shape.rows, "row {at} of {:?}", self.shape);
        let first = Self { shape: Shape { rows: at, ..self.shape }, ..self };
        let rest = Shape { rows: self.shape.rows - at, ..self.shape };
        let skip = if rest.extent() == 0 { 0 } else { at * self.shape.row_stride };
        // SAFETY: if there are rows from `at` on, they lie within what `self` owns.
        (first, Self { start: unsafe { self.start.add(skip) }, shape: rest, owner: PhantomData })
    }

    /// Splits the matrix into columns `..at` and columns `at..`.
    pub(crate) fn split_at_column(self, at: usize) -> (Self, Self) {
        assert!(at <= self.shape.columns, "column {at} of {:?}", self.shape);
        let first = Self { shape: Shape { columns: at, ..self.shape }, ..self };
        let rest = Shape { columns: self.shape.columns - at, ..self.shape };
        let skip = if rest.extent() == 0 { 0 } else { at * self.shape.column_stride };
        // SAFETY: if there are columns from `at` on, they lie within what `self` owns. The elements of the two parts differ.
        (first, Self { start: unsafe { self.start.add(skip) }, shape: rest, owner: PhantomData })
    }

    /// Selects rows `from..from + count`.
    pub(crate) fn rows(&mut self, from: usize, count: usize) -> MatrixMut<'_> {
        let (_, rest) = self.reborrow().split_at_row(from);
        rest.split_at_row(count).0
    }

    /// Selects columns `0..count` of the matrix.
    pub(crate) fn columns(&mut self, count: usize) -> MatrixMut<'_> {
        assert!(count <= self.shape.columns, "{count} columns of {:?}", self.shape);
        MatrixMut { shape: Shape { columns: count, ..self.shape }, ..self.reborrow() }
    }

    /// Selects columns from `from` on.
    pub(crate) fn columns_from(&mut self, from: usize) -> MatrixMut<'_> {
        self.reborrow().split_at_column(from).1
    }

    /// Returns a row, which need not have been written yet, if its elements are adjacent.
    #[inline(always)]
    fn row_to_write(&mut self, row: usize) -> Option<&mut [MaybeUninit<f32>]> {
        assert!(row < self.shape.rows, "row {row} of {:?}", self.shape);
        (self.shape.column_stride == 1).then(|| {
            // SAFETY: the row lies within the shape, which was checked against the memory, and `self` borrows it.
            unsafe {
                let start = self.start.add(row * self.shape.row_stride);
                std::slice::from_raw_parts_mut(start.cast(), self.shape.columns)
            }
        })
    }

    /// Returns a row if its elements are adjacent.
    #[inline(always)]
    fn row(&mut self, row: usize) -> Option<&mut [f32]> {
        // SAFETY: only outputs of products are over memory that was not written, and products do not call this.
        self.row_to_write(row).map(|row| unsafe { row.assume_init_mut() })
    }

    /// Replaces every element of a row.
    #[inline(always)]
    fn map_row(&mut self, row: usize, map: impl Fn(f32) -> f32) {
        if let Some(row) = self.row(row) {
            for value in row {
                *value = map(*value);
            }
            return;
        }
        for column in 0..self.shape.columns {
            let value = self.get(row, column);
            *value = map(*value);
        }
    }

    #[inline(always)]
    pub(crate) fn fill(&mut self, value: f32) {
        for row in 0..self.shape.rows {
            self.map_row(row, |_| value);
        }
    }

    #[inline(always)]
    pub(crate) fn scale_row(&mut self, row: usize, factor: f32) {
        self.map_row(row, |value| value * factor);
    }

    /// Adds numbers to the elements of a row.
    #[inline(always)]
    pub(crate) fn add_to_row(&mut self, row: usize, numbers: &[f32]) {
        assert_eq!(numbers.len(), self.shape.columns, "numbers to add to a row");
        if let Some(row) = self.row(row) {
            for (value, number) in row.iter_mut().zip(numbers) {
                *value += number;
            }
            return;
        }
        for (column, number) in numbers.iter().enumerate() {
            *self.get(row, column) += number;
        }
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, row: usize, column: usize, value: f32) {
        *self.get(row, column) = value;
    }

    #[inline(always)]
    pub(crate) fn get(&mut self, row: usize, column: usize) -> &mut f32 {
        assert!(row < self.shape.rows && column < self.shape.columns);
        // SAFETY: the index is within the shape, which was checked against the memory.
        unsafe {
            &mut *self.start.add(row * self.shape.row_stride + column * self.shape.column_stride)
        }
    }
}

// SAFETY: it is a unique borrow of f32s, like `&mut [f32]`.
unsafe impl Send for MatrixMut<'_> {}

/// Splits `[batch, token, head, channel]` into disjoint matrices `[token, channel]`, one per head
/// of each sequence, in that order.
pub(crate) fn planes(
    data: &mut [f32],
    [batch, tokens, heads, width]: [usize; 4],
) -> Vec<MatrixMut<'_>> {
    assert_eq!(data.len(), batch * tokens * heads * width, "memory of the planes");
    let shape = Shape { rows: tokens, columns: width, row_stride: heads * width, column_stride: 1 };
    let start = data.as_mut_ptr();
    (0..batch * heads)
        .map(|plane| {
            let offset = (plane / heads) * tokens * heads * width + (plane % heads) * width;
            // SAFETY: each plane lies within the memory, and planes differ in batch or in head.
            MatrixMut { start: unsafe { start.add(offset) }, shape, owner: PhantomData }
        })
        .collect()
}

/// Computes `out = alpha * a b` or `out += alpha * a b` on this thread.
pub(crate) fn multiply(mut out: MatrixMut<'_>, a: Matrix<'_>, b: Matrix<'_>, alpha: f32, add: Add) {
    let (rows, inner, columns) = (a.shape.rows, a.shape.columns, b.shape.columns);
    assert_eq!(inner, b.shape.rows, "inner sizes");
    assert_eq!((rows, columns), (out.shape.rows, out.shape.columns), "outer sizes");
    if rows == 0 || columns == 0 {
        return;
    }
    if (1..=THIN).contains(&inner) && out.shape.column_stride == 1 && b.shape.column_stride == 1 {
        simd::dispatch(
            #[inline(always)]
            || thin(&mut out, a, b, alpha, add),
        );
        return;
    }
    // SAFETY: all three matrices were checked against their memory when made, `out` borrows its own
    // mutably, and f32 has no invalid bit patterns.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out.start,
            out.shape.column_stride as isize,
            out.shape.row_stride as isize,
            add == Add::Accumulate,
            a.data.as_ptr(),
            a.shape.column_stride as isize,
            a.shape.row_stride as isize,
            b.data.as_ptr(),
            b.shape.column_stride as isize,
            b.shape.row_stride as isize,
            1.0,
            alpha,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Inner size up to which `gemm` adds outer products, one after the other, instead of running a kernel.
const THIN: usize = 2;

/// Product of an inner size up to [`THIN`], whose rows of `b` and `out` are contiguous.
#[inline(always)]
fn thin(out: &mut MatrixMut<'_>, a: Matrix<'_>, b: Matrix<'_>, alpha: f32, add: Add) {
    for row in 0..a.shape.rows {
        for inner in 0..a.shape.columns {
            let weight = alpha * a.at(row, inner);
            let (Some(out), Some(b)) = (out.row_to_write(row), b.row(inner)) else { return };
            let first = inner == 0 && add == Add::Overwrite;
            for (out, b) in out.iter_mut().zip(b) {
                if first {
                    out.write(weight * b);
                } else {
                    // SAFETY: written by the first inner row, or before if the product is added to it.
                    unsafe { *out.assume_init_mut() += weight * b };
                }
            }
        }
    }
}

/// Number of rows or columns of each part of a product that [`product`] cuts along its longer side, so that all threads have
/// a part. Parts are no smaller than this allows, because each packs the other factor again.
fn part(rows: usize, inner: usize, columns: usize) -> usize {
    /// Number of multiplications below which waking a thread costs more than it saves.
    const SMALL: usize = 1 << 20;
    /// Side up to which `gemm` sums in other chunks, if the other side is no longer: only such products have such parts.
    const SHORT: usize = 64;
    const ENOUGH: usize = 512;
    let (shorter, longer) = (rows.min(columns), rows.max(columns));
    let threads = rayon::current_num_threads();
    if threads == 1 || shorter < PANEL || rows * inner * columns < SMALL {
        return longer.max(1);
    }
    let least = if longer <= SHORT { SHORT / 2 } else { 2 * SHORT };
    let parts = (longer / ENOUGH).clamp(threads.min(longer / least).max(1), 4 * threads);
    // A last part with two short sides would be summed in other chunks than the rest.
    let is_summed_alike = |part: &usize| {
        shorter > SHORT || longer <= SHORT || !(1..=SHORT).contains(&(longer % part))
    };
    (1..=parts)
        .rev()
        .map(|parts| longer.div_ceil(parts).next_multiple_of(PANEL))
        .find(is_summed_alike)
        .unwrap_or(longer)
}

/// Multiple of the width of the panels that `gemm` packs: a vector of AVX-512.
const PANEL: usize = 16;

/// Computes `a b` on all threads, in row-major order, without writing zeros to the memory first.
///
/// Parts of the output are computed separately. Each element is the same sum in the same order whatever the part, unless
/// the other side is so small that `gemm` has other kernels for it; such products are not cut.
pub(crate) fn product(a: Matrix<'_>, b: Matrix<'_>) -> Vec<f32> {
    let (rows, columns) = (a.shape.rows, b.shape.columns);
    let len = rows * columns;
    if a.shape.columns == 0 {
        return zeros(len);
    }
    let mut out = Vec::<f32>::with_capacity(len);
    let shape = Shape::dense(rows, columns);
    let mut rest = Some(MatrixMut { start: out.as_mut_ptr(), shape, owner: PhantomData });
    let longer = rows.max(columns);
    let part = part(rows, a.shape.columns, columns);
    let parts = (0..longer).step_by(part).filter_map(|from| {
        let count = part.min(longer - from);
        let (own, other) = match (rest.take()?, rows >= columns) {
            (all, true) => all.split_at_row(count),
            (all, false) => all.split_at_column(count),
        };
        rest = Some(other);
        Some((own, from, count))
    });
    let parts = parts.collect::<Vec<_>>();
    parts.into_par_iter().with_max_len(1).for_each(|(own, from, count)| {
        let (a, b) = if rows >= columns {
            (a.rows(from, count), b)
        } else {
            (a, b.columns_from(from).columns(count))
        };
        multiply(own, a, b, 1.0, Add::Overwrite);
    });
    // SAFETY: the memory has room for `len` elements, and the parts of the product have overwritten each of them without
    // reading.
    unsafe { out.set_len(len) };
    out
}

/// First contents of new memory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start<'a> {
    /// Zeros.
    Zeros,
    /// Equal rows. Their width divides the length of a piece.
    Rows(&'a [f32]),
    /// The product of two matrices in row-major order. The number of its columns divides the length of a piece.
    Product(Matrix<'a>, Matrix<'a>),
}

impl Start<'_> {
    /// Fills piece number `index` of `len` elements.
    #[inline(always)]
    fn fill(self, out: &mut [MaybeUninit<f32>], index: usize, len: usize) -> &mut [f32] {
        match self {
            Self::Product(a, b) if a.shape.columns > 0 => {
                let columns = b.shape.columns;
                let shape = Shape::dense(out.len() / columns, columns);
                assert_eq!((out.len() % columns, len % columns), (0, 0), "rows of a piece");
                let a = a.rows(index * (len / columns), shape.rows);
                let start = out.as_mut_ptr().cast::<f32>();
                let rows = MatrixMut { start, shape, owner: PhantomData };
                multiply(rows, a, b, 1.0, Add::Overwrite);
            }
            Self::Rows(row) if !row.is_empty() => {
                for out in out.chunks_mut(row.len()) {
                    out.write_copy_of_slice(&row[..out.len()]);
                }
            }
            _ => out.fill(MaybeUninit::new(0.0)),
        }
        // SAFETY: every element was just written: by the product, which covers whole rows and reads none, or by the loops.
        unsafe { out.assume_init_mut() }
    }
}

/// Creates `len` numbers in pieces, in parallel: `work` gets each piece, filled by `start`, while it is in the cache, and
/// the item of `with` that belongs to it.
pub(crate) fn in_new_memory<T: Send>(
    len: usize,
    piece: usize,
    start: Start<'_>,
    with: impl IndexedParallelIterator<Item = T>,
    work: impl Fn(&mut [f32], T) + Sync,
) -> Vec<f32> {
    assert_eq!(with.len(), len.div_ceil(piece), "items of {len} elements in pieces of {piece}");
    let mut out = Vec::<f32>::with_capacity(len);
    in_pieces(
        out.spare_capacity_mut()[..len].par_chunks_mut(piece).zip(with).enumerate(),
        #[inline(always)]
        |(index, (out, with))| work(start.fill(out, index, piece), with),
    );
    // SAFETY: the pieces are the first `len` elements, and each piece was written.
    unsafe { out.set_len(len) };
    out
}

/// Creates `len` zeros, in parallel.
pub(crate) fn zeros(len: usize) -> Vec<f32> {
    let piece = rows_of_piece(1);
    in_new_memory(len, piece, Start::Zeros, repeat_n((), len.div_ceil(piece)), |_, ()| {})
}

/// How a product changes its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Add {
    /// The product overwrites the output.
    Overwrite,
    /// The product is added to the output.
    Accumulate,
}

#[cfg(test)]
mod tests;

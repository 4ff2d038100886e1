//! Perceptron across heads (DAPE): its inputs at each pair of tokens are the content logits and
//! base biases of all heads, its outputs are added to the logits of each head.
//!
//! The heads of a sequence are processed together, block by block of rows. Planes are key-major,
//! `[column][row]`, one per head, padded with columns of zeros at both ends, so that a convolution
//! along the keys is a product with shifted planes.

use std::ops::Range;

use super::distances::{DistanceSums, Distances};
use super::position_mlp::{self, PiecewiseOperands};
use crate::kernels::cpu::modifier_scratch::HeadMlpScratch;
use crate::kernels::cpu::problem::{Block, Head};
use crate::kernels::cpu::reduce::Grads;
use crate::kernels::cpu::scratch::{grow, lanes as read, lanes_mut as write};
use crate::kernels::cpu::view::{Add, Matrix, MatrixMut, Shape, multiply};
use crate::kernels::operands::{PiecewiseSlots, Slot};
use crate::kernels::spec::HeadMlpSpec;
use crate::math::lanes::Lanes;

/// Number of zero columns at each end of a plane.
const PAD: usize = 2;
/// Number of columns whose hidden units are computed at once.
const TILE: usize = 8;

/// Operands of the perceptron, with those of the base bias for one head.
#[derive(Debug, Clone, Copy)]
struct HeadMlpOperands<'a> {
    spec: &'a HeadMlpSpec,
    /// Hidden weights, `[N, taps planes]`.
    inner: Matrix<'a>,
    /// Biases of the hidden units, `[1, N]`.
    inner_bias: Matrix<'a>,
    /// Output weights, `[H, taps N]`.
    outer: Matrix<'a>,
    /// Biases of the outputs, `[1, H]`.
    outer_bias: Matrix<'a>,
    base: Option<BaseOperands<'a>>,
}

/// Base bias, an input of the perceptron that is also added to the logits.
#[derive(Debug, Clone, Copy)]
enum BaseOperands<'a> {
    /// Distance table, `[1, N]`; the last entry holds for all greater distances.
    Table(Matrix<'a>),
    Piecewise(PiecewiseOperands<'a>),
}

/// Number of columns of a plane in memory, for a block that sees `columns`.
fn stride(columns: usize) -> usize {
    columns + 2 * PAD
}

/// Offset of a head's plane in [`HeadMlpScratch::added`].
pub(in crate::kernels::cpu) fn plane_start(head: usize, columns: usize) -> usize {
    head * stride(columns) + PAD
}

/// Returns `count` planes at `columns`, which may extend into the padding: `[count, columns *
/// lanes]`.
fn planes<const R: usize>(
    buffer: &[Lanes<R>],
    count: usize,
    stride: usize,
    columns: Range<isize>,
) -> Matrix<'_> {
    let first = (columns.start + PAD as isize) as usize * R;
    let shape =
        Shape { rows: count, columns: columns.len() * R, row_stride: stride * R, column_stride: 1 };
    Matrix::new(&buffer.as_flattened()[first..], shape)
}

fn planes_mut<const R: usize>(
    buffer: &mut [Lanes<R>],
    count: usize,
    stride: usize,
    columns: Range<isize>,
) -> MatrixMut<'_> {
    let first = (columns.start + PAD as isize) as usize * R;
    let shape =
        Shape { rows: count, columns: columns.len() * R, row_stride: stride * R, column_stride: 1 };
    MatrixMut::new(&mut buffer.as_flattened_mut()[first..], shape)
}

fn shifted(columns: &Range<isize>, by: isize) -> Range<isize> {
    columns.start + by..columns.end + by
}

/// Returns the columns of a matrix that belong to one of its taps.
fn tap(matrix: Matrix<'_>, tap: usize, taps: usize) -> Matrix<'_> {
    let width = matrix.shape().columns / taps;
    matrix.columns_from(tap * width).columns(width)
}

impl<'a> HeadMlpOperands<'a> {
    /// Returns the operands of a head; `None` if it has no such perceptron.
    fn of(head: &Head<'a>) -> Option<Self> {
        let spec = head.spec.head_mlp.as_ref()?;
        let base = match head.optional(Slot::HeadMlpBaseTable) {
            Some(table) => Some(BaseOperands::Table(table)),
            None => PiecewiseOperands::of(head, PiecewiseSlots::HEAD_MLP_BASE, &spec.base_bends)
                .map(BaseOperands::Piecewise),
        };
        Some(Self {
            spec,
            inner: head.required(Slot::HeadMlpInner),
            inner_bias: head.required(Slot::HeadMlpInnerBias),
            outer: head.required(Slot::HeadMlpOuter),
            outer_bias: head.required(Slot::HeadMlpOuterBias),
            base,
        })
    }

    fn units(&self) -> usize {
        self.inner.shape().rows
    }

    /// Number of taps on each side of the middle one.
    fn side(&self) -> isize {
        (self.spec.taps / 2) as isize
    }

    /// Iterates over the taps with their shift in columns.
    fn taps(&self) -> impl Iterator<Item = (usize, isize)> + use<> {
        let (taps, side) = (self.spec.taps, self.side());
        (0..taps).map(move |tap| (tap, tap as isize - side))
    }

    /// Computes the activations of the hidden units at `columns` of a block that sees `n`, `[N,
    /// columns * lanes]`; 0 left of the first column.
    #[inline(always)]
    fn hidden<const R: usize>(
        &self,
        seen: &[Lanes<R>],
        count: usize,
        n: usize,
        columns: &Range<isize>,
        hidden: &mut Vec<f32>,
    ) {
        let (units, width) = (self.units(), columns.len() * R);
        hidden.resize(units * width, 0.0);
        for (index, by) in self.taps() {
            let out = MatrixMut::new(hidden, Shape::dense(units, width));
            let planes = planes(seen, count, stride(n), shifted(columns, by));
            let add = if index == 0 { Add::Overwrite } else { Add::Accumulate };
            multiply(out, tap(self.inner, index, self.spec.taps), planes, 1.0, add);
        }
        let slope = self.spec.negative_slope;
        for (unit, values) in hidden.chunks_exact_mut(width.max(1)).enumerate() {
            let bias = self.inner_bias.at(0, unit);
            for value in values.iter_mut() {
                let z = *value + bias;
                *value = if z > 0.0 { z } else { slope * z };
            }
            if columns.start < 0 {
                values[..columns.start.unsigned_abs() * R].fill(0.0);
            }
        }
    }
}

/// Fills the input planes of the perceptron.
#[inline(always)]
fn see<const R: usize>(
    heads: &[Head<'_>],
    mlp: &HeadMlpOperands<'_>,
    block: &Block<R>,
    s: &mut HeadMlpScratch<R>,
) {
    let n = block.columns;
    let stride = stride(n);
    let count = heads.len() * if mlp.base.is_some() { 2 } else { 1 };
    grow(&mut s.planes, count * stride);
    for (index, plane) in s.planes[..count * stride].chunks_exact_mut(stride).enumerate() {
        let (zeros, rest) = plane.split_at_mut(PAD);
        let (values, more_zeros) = rest.split_at_mut(n);
        zeros.fill([0.0; R]);
        more_zeros.fill([0.0; R]);
        let head = &heads[index % heads.len()];
        if index < heads.len() {
            let out = write(values, n, block.rows);
            let query = head.q().rows(block.first, block.rows);
            multiply(out, head.k().rows(0, n), query.t(), mlp.spec.scale, Add::Overwrite);
        } else if let Some(base) = HeadMlpOperands::of(head).and_then(|mlp| mlp.base) {
            values.fill([0.0; R]);
            match base {
                BaseOperands::Table(table) => {
                    let distances = Distances::new(head, block, table, &mut s.unrolled);
                    for (j, values) in values.iter_mut().enumerate() {
                        *values = distances.at(j);
                    }
                }
                BaseOperands::Piecewise(piecewise) => {
                    position_mlp::add(head, &piecewise, block, &mut s.unrolled, values);
                }
            }
        }
        for (j, values) in values.iter_mut().enumerate().skip(block.open) {
            for r in 0..R {
                values[r] = if j as f32 <= block.last_seen[r] { values[r] } else { 0.0 };
            }
        }
    }
}

/// Computes [`HeadMlpScratch::added`] for all heads of one sequence.
#[inline(always)]
pub(in crate::kernels::cpu) fn forward<const R: usize>(
    heads: &[Head<'_>],
    block: &Block<R>,
    s: &mut HeadMlpScratch<R>,
) {
    let Some(mlp) = heads.first().and_then(HeadMlpOperands::of) else { return };
    see(heads, &mlp, block, s);
    let n = block.columns;
    let stride = stride(n);
    let count = mlp.inner.shape().columns / mlp.spec.taps;
    grow(&mut s.added, heads.len() * stride);
    for plane in s.added[..heads.len() * stride].chunks_exact_mut(stride) {
        plane[..PAD].fill([0.0; R]);
        plane[PAD + n..].fill([0.0; R]);
    }
    let side = mlp.side();
    for first in (0..n).step_by(TILE) {
        let columns = first as isize..(first + TILE).min(n) as isize;
        let wide = columns.start - side..columns.end + side;
        mlp.hidden(&s.planes, count, n, &wide, &mut s.hidden);
        let hidden = Matrix::new(&s.hidden, Shape::dense(mlp.units(), wide.len() * R));
        for (index, by) in mlp.taps() {
            let out = planes_mut(&mut s.added, heads.len(), stride, columns.clone());
            let from = (by + side) as usize * R;
            let hidden = hidden.columns_from(from).columns(columns.len() * R);
            let add = if index == 0 { Add::Overwrite } else { Add::Accumulate };
            multiply(out, tap(mlp.outer, index, mlp.spec.taps), hidden, 1.0, add);
        }
    }
    for h in 0..heads.len() {
        let bias = mlp.outer_bias.at(0, h);
        let added = &mut s.added[plane_start(h, n)..][..n];
        for added in added.iter_mut() {
            for r in 0..R {
                added[r] += bias;
            }
        }
        if mlp.base.is_some() {
            let base = &s.planes[plane_start(heads.len() + h, n)..][..n];
            for (added, base) in added.iter_mut().zip(base) {
                for r in 0..R {
                    added[r] += base[r];
                }
            }
        }
    }
}

/// Propagates the gradients of the logits in [`HeadMlpScratch::added`], with the planes as
/// [`forward`] left them: adds those of the perceptron to `grads` of the first head and those of
/// the base bias to each head's, and stores those of the content logits for [`content_grads`].
#[inline(always)]
pub(in crate::kernels::cpu) fn backward<const R: usize>(
    heads: &[Head<'_>],
    block: &Block<R>,
    s: &mut HeadMlpScratch<R>,
    grads: &mut [&mut Grads<'_>],
) {
    let Some(mlp) = heads.first().and_then(HeadMlpOperands::of) else { return };
    let n = block.columns;
    let stride = stride(n);
    let taps = mlp.spec.taps;
    let (units, count) = (mlp.units(), mlp.inner.shape().columns / taps);
    grow(&mut s.plane_grads, count * stride);
    s.plane_grads[..count * stride].fill([0.0; R]);
    let slots =
        [Slot::HeadMlpInner, Slot::HeadMlpInnerBias, Slot::HeadMlpOuter, Slot::HeadMlpOuterBias];
    let first = grads.first_mut().and_then(|grads| grads.all(slots));
    let Some([of_inner_all, of_inner_bias, of_outer_all, of_outer_bias]) = first else { return };
    // The taps of the newest column reach hidden units beyond it.
    let end = n as isize + mlp.side();
    for first in (0..end).step_by(TILE) {
        let columns = first..(first + TILE as isize).min(end);
        let width = columns.len() * R;
        mlp.hidden(&s.planes, count, n, &columns, &mut s.hidden);
        let hidden = Matrix::new(&s.hidden, Shape::dense(units, width));
        s.hidden_grads.resize(units * width, 0.0);
        for (index, by) in mlp.taps() {
            let of_added = planes(&s.added, heads.len(), stride, shifted(&columns, -by));
            let outer = tap(mlp.outer, index, taps).t();
            let out = MatrixMut::new(&mut s.hidden_grads, Shape::dense(units, width));
            let add = if index == 0 { Add::Overwrite } else { Add::Accumulate };
            multiply(out, outer, of_added, 1.0, add);
            let mut of_outer = of_outer_all.columns_from(index * units);
            multiply(of_outer.columns(units), of_added, hidden.t(), 1.0, Add::Accumulate);
        }
        let slope = mlp.spec.negative_slope;
        let tile = s.hidden_grads.chunks_exact_mut(width).zip(s.hidden.chunks_exact(width));
        for (unit, (of_hidden, hidden)) in tile.enumerate() {
            let mut sums = [0.0; R];
            for (of_hidden, hidden) in of_hidden.chunks_exact_mut(R).zip(hidden.chunks_exact(R)) {
                for r in 0..R {
                    of_hidden[r] *= if hidden[r] > 0.0 { 1.0 } else { slope };
                    sums[r] += of_hidden[r];
                }
            }
            *of_inner_bias.get(0, unit) += sums.iter().sum::<f32>();
        }
        let of_hidden = Matrix::new(&s.hidden_grads, Shape::dense(units, width));
        for (index, by) in mlp.taps() {
            let seen = planes(&s.planes, count, stride, shifted(&columns, by));
            let mut of_inner = of_inner_all.columns_from(index * count);
            multiply(of_inner.columns(count), of_hidden, seen.t(), 1.0, Add::Accumulate);
            let out = planes_mut(&mut s.plane_grads, count, stride, shifted(&columns, by));
            multiply(out, tap(mlp.inner, index, taps).t(), of_hidden, 1.0, Add::Accumulate);
        }
    }
    for h in 0..heads.len() {
        let of_added = &s.added[plane_start(h, n)..][..n];
        *of_outer_bias.get(0, h) += of_added.iter().flatten().sum::<f32>();
    }
    for (h, (head, grads)) in heads.iter().zip(grads).enumerate() {
        let Some(base) = HeadMlpOperands::of(head).and_then(|mlp| mlp.base) else { continue };
        let of_added = &s.added[plane_start(h, n)..][..n];
        let of_base = &mut s.plane_grads[plane_start(heads.len() + h, n)..][..n];
        for (j, (of_base, of_added)) in of_base.iter_mut().zip(of_added).enumerate() {
            for r in 0..R {
                let seen = j as f32 <= block.last_seen[r];
                of_base[r] = if seen { of_base[r] + of_added[r] } else { 0.0 };
            }
        }
        match base {
            BaseOperands::Table(table) => {
                let Some(of_table) = grads.get(Slot::HeadMlpBaseTable) else { continue };
                let mut sums = DistanceSums::new(head, block, &table, &mut s.sums, of_table);
                for (j, of_base) in of_base.iter().enumerate() {
                    sums.add(j, of_base);
                }
                sums.finish();
            }
            BaseOperands::Piecewise(piecewise) => {
                let (unrolled, sums) = (&mut s.unrolled, &mut s.sums);
                position_mlp::backward(head, &piecewise, block, unrolled, sums, of_base, grads);
            }
        }
    }
}

/// Adds the gradients of one head's queries (`dq`, the block's own rows) and keys that flow through
/// the perceptron's content inputs.
#[inline(always)]
pub(in crate::kernels::cpu) fn content_grads<const R: usize>(
    heads: &[Head<'_>],
    h: usize,
    block: &Block<R>,
    s: &mut HeadMlpScratch<R>,
    dq: MatrixMut<'_>,
    grads: &mut Grads<'_>,
) {
    let head = &heads[h];
    let Some(mlp) = HeadMlpOperands::of(head) else { return };
    let n = block.columns;
    let of_content = &mut s.plane_grads[plane_start(h, n)..][..n];
    for (j, of_content) in of_content.iter_mut().enumerate().skip(block.open) {
        for r in 0..R {
            of_content[r] = if j as f32 <= block.last_seen[r] { of_content[r] } else { 0.0 };
        }
    }
    let of_content = read(of_content, n, block.rows);
    let query = head.q().rows(block.first, block.rows);
    let scale = mlp.spec.scale;
    multiply(dq, of_content.t(), head.k().rows(0, n), scale, Add::Accumulate);
    if let Some(dk) = grads.get(Slot::Key) {
        multiply(dk.rows(0, n), of_content, query, scale, Add::Accumulate);
    }
}

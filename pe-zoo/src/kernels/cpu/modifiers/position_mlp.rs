//! Piecewise linear function of the distance divided by the row's position (the FIRE bias).
//!
//! Along a row, from the newest column to the oldest, the fraction increases, so each lane keeps
//! its current piece and advances at breakpoints. A pair costs one product and one sum, whatever
//! the number of pieces. Gradients of a piece are accumulated until the lane leaves it.

use crate::kernels::cpu::reduce::Grads;
use crate::kernels::cpu::view::Matrix;
use crate::kernels::operands::PiecewiseSlots;
use crate::math::lanes::Lanes;

use super::distances::{DistanceSums, Distances};
use crate::kernels::cpu::problem::{Block, Head};

/// Operands of a piecewise linear bias for one head.
#[derive(Debug, Clone, Copy)]
pub(super) struct PiecewiseOperands<'a> {
    slots: PiecewiseSlots,
    /// Boundaries between the pieces, ascending.
    bends: &'a [f32],
    /// Slopes of the pieces, then their values at 0, `[1, 2 N]`.
    lines: Matrix<'a>,
    /// Numerators `psi(distance)` of the input, `[1, N]`.
    distances: Matrix<'a>,
    /// Reciprocal denominators of the input for each row, `[1, T]`.
    rows: Matrix<'a>,
}

impl<'a> PiecewiseOperands<'a> {
    /// Returns the operands in these slots; `None` if they are empty.
    pub(super) fn of(head: &Head<'a>, slots: PiecewiseSlots, bends: &'a [f32]) -> Option<Self> {
        let PiecewiseSlots { distances, rows, .. } = slots;
        let lines = head.optional(slots.lines)?;
        Some(Self {
            slots,
            bends,
            lines,
            distances: head.required(distances),
            rows: head.required(rows),
        })
    }
}

/// Current piece of each lane.
struct PieceCursor<const R: usize> {
    piece: [usize; R],
    end: Lanes<R>,
    slope: Lanes<R>,
    start: Lanes<R>,
}

impl<const R: usize> PieceCursor<R> {
    #[inline(always)]
    fn new(piecewise: &PiecewiseOperands<'_>) -> Self {
        let mut walk = Self { piece: [0; R], end: [0.0; R], slope: [0.0; R], start: [0.0; R] };
        for lane in 0..R {
            walk.enter(piecewise, lane, 0);
        }
        walk
    }

    fn enter(&mut self, piecewise: &PiecewiseOperands<'_>, lane: usize, piece: usize) {
        let pieces = piecewise.bends.len() + 1;
        self.piece[lane] = piece;
        self.end[lane] = piecewise.bends.get(piece).copied().unwrap_or(f32::INFINITY);
        self.slope[lane] = piecewise.lines.at(0, piece);
        self.start[lane] = piecewise.lines.at(0, pieces + piece);
    }

    /// Advances the lanes whose piece has ended; `leave` is called with lane and piece before.
    #[inline(always)]
    fn reach(
        &mut self,
        piecewise: &PiecewiseOperands<'_>,
        at: &Lanes<R>,
        mut leave: impl FnMut(usize, usize),
    ) {
        let mut ended = 0;
        for r in 0..R {
            ended += u32::from(at[r] > self.end[r]);
        }
        if ended > 0 {
            for (lane, at) in at.iter().enumerate() {
                if *at > self.end[lane] {
                    leave(lane, self.piece[lane]);
                    let piece = piecewise.bends.partition_point(|bend| bend < at);
                    self.enter(piecewise, lane, piece);
                }
            }
        }
    }
}

/// Reciprocal denominators of the input for each lane; 0 in unused lanes.
#[inline(always)]
fn normalisers<const R: usize>(piecewise: &PiecewiseOperands<'_>, block: &Block<R>) -> Lanes<R> {
    let mut rows = [0.0; R];
    for (r, row) in rows.iter_mut().enumerate().take(block.rows) {
        *row = piecewise.rows.at(0, block.first + r);
    }
    rows
}

/// Adds the values of the function to `out`.
#[inline(always)]
pub(super) fn add<const R: usize>(
    head: &Head<'_>,
    piecewise: &PiecewiseOperands<'_>,
    block: &Block<R>,
    unrolled: &mut Vec<f32>,
    out: &mut [Lanes<R>],
) {
    let rows = normalisers(piecewise, block);
    let distances = Distances::new(head, block, piecewise.distances, unrolled);
    let mut walk = PieceCursor::new(piecewise);
    for (j, out) in out[..block.columns].iter_mut().enumerate().rev() {
        let scaled = distances.at(j);
        let mut at = [0.0; R];
        for r in 0..R {
            at[r] = scaled[r] * rows[r];
        }
        walk.reach(piecewise, &at, |_, _| {});
        for r in 0..R {
            out[r] += walk.slope[r] * at[r] + walk.start[r];
        }
    }
}

/// Adds the gradients of the operands, computed from those of the function's values.
#[inline(always)]
pub(super) fn backward<const R: usize>(
    head: &Head<'_>,
    piecewise: &PiecewiseOperands<'_>,
    block: &Block<R>,
    unrolled: &mut Vec<f32>,
    sums: &mut Vec<f32>,
    function_grads: &[Lanes<R>],
    grads: &mut Grads<'_>,
) {
    let PiecewiseSlots { lines, distances, rows } = piecewise.slots;
    let Some([of_lines, of_distances, of_row_factors]) = grads.all([lines, distances, rows]) else {
        return;
    };
    let n = block.columns;
    let pieces = piecewise.bends.len() + 1;
    let rows = normalisers(piecewise, block);
    let distances = Distances::new(head, block, piecewise.distances, unrolled);
    let mut of_distances = DistanceSums::new(head, block, &piecewise.distances, sums, of_distances);
    let mut walk = PieceCursor::new(piecewise);
    // Sums since the lane entered its piece: gradients, and gradients times inputs.
    let (mut of_start, mut of_slope) = ([0.0; R], [0.0; R]);
    let mut of_rows = [0.0; R];
    for (j, function_grads) in function_grads[..n].iter().enumerate().rev() {
        let scaled = distances.at(j);
        let mut at = [0.0; R];
        for r in 0..R {
            at[r] = scaled[r] * rows[r];
        }
        walk.reach(piecewise, &at, |lane, piece| {
            *of_lines.get(0, piece) += of_slope[lane];
            *of_lines.get(0, pieces + piece) += of_start[lane];
            (of_slope[lane], of_start[lane]) = (0.0, 0.0);
        });
        let mut of_scaled = [0.0; R];
        for r in 0..R {
            of_start[r] += function_grads[r];
            of_slope[r] += function_grads[r] * at[r];
            let through = function_grads[r] * walk.slope[r];
            of_rows[r] += through * scaled[r];
            of_scaled[r] = through * rows[r];
        }
        of_distances.add(j, &of_scaled);
    }
    of_distances.finish();
    for lane in 0..block.rows {
        *of_lines.get(0, walk.piece[lane]) += of_slope[lane];
        *of_lines.get(0, pieces + walk.piece[lane]) += of_start[lane];
        *of_row_factors.get(0, block.first + lane) += of_rows[lane];
    }
}

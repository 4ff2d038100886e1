//! Cuts one attention into tasks, runs them in parallel, and adds up shared results in a fixed
//! order.
//!
//! Tasks depend on the shapes alone, not on the number of threads, so that a seed gives the same
//! bits on any number of cores.

use std::ops::Range;

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::rows::{self, HeadOutput};
use super::scratch::SpareScratch;
use super::tensors::in_token_order;
use super::view::{planes, zeros};
use crate::kernels::operands::{Operands, Sizes};
use crate::kernels::spec::Spec;
use crate::math::lanes::{NARROW, WIDE};
use crate::math::simd;

/// Minimum number of tasks of a pass, if it has enough rows.
const TASKS: usize = 16;

/// Results of the forward pass that the backward pass needs.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    /// Logarithms of the softmax's denominators, `[batch, head, row]`.
    pub(super) log: std::sync::Arc<[f32]>,
}

/// Boundaries of the rows of each task of one head. There are enough tasks for [`TASKS`] in the
/// whole pass; they have equal area under the causal diagonal and begin at multiples of a block.
pub(super) fn cuts(sizes: &Sizes, spec: &Spec, lanes: usize) -> Vec<usize> {
    let heads = sizes.batch * sizes.heads / spec.heads_together(sizes.heads);
    let pieces = TASKS.div_ceil(heads.max(1)).min(sizes.rows.div_ceil(lanes)).max(1);
    let mut cuts = (0..pieces)
        .map(|piece| {
            let share = (piece as f64 / pieces as f64).sqrt();
            ((sizes.rows as f64 * share) as usize).div_ceil(lanes) * lanes
        })
        .map(|row| row.min(sizes.rows))
        .collect::<Vec<_>>();
    cuts.push(sizes.rows);
    cuts.dedup();
    cuts
}

/// Computes the output, `[B, H, T, E]`, and the results that its gradient needs.
pub(super) fn forward(operands: &Operands<Flex>, spec: &Spec) -> (FlexTensor, Kept) {
    if operands.sizes().rows <= NARROW {
        forward_lanes::<NARROW>(operands, spec)
    } else {
        forward_lanes::<WIDE>(operands, spec)
    }
}

/// Tasks of a pass. Each is a range of rows of heads that are processed together.
pub(super) struct WorkItems<T> {
    pub(super) all: Vec<WorkItem<T>>,
    together: usize,
    pieces: usize,
}

/// Range of rows of some heads of one sequence.
pub(super) struct WorkItem<T> {
    pub(super) rows: Range<usize>,
    pub(super) heads: Vec<T>,
}

impl<T> WorkItems<T> {
    /// Creates the tasks without heads.
    pub(super) fn new(sizes: &Sizes, spec: &Spec, cuts: &[usize]) -> Self {
        let together = spec.heads_together(sizes.heads);
        let groups = sizes.batch * sizes.heads / together;
        let all = (0..groups)
            .flat_map(|_| cuts.windows(2))
            .map(|cut| WorkItem { rows: cut[0]..cut[1], heads: Vec::with_capacity(together) })
            .collect();
        Self { all, together, pieces: cuts.len() - 1 }
    }

    /// Adds a head, by its index among those of all sequences, to the task of one range of its
    /// rows.
    pub(super) fn add(&mut self, head: usize, piece: usize, task: T) {
        self.all[head / self.together * self.pieces + piece].heads.push(task);
    }
}

fn forward_lanes<const R: usize>(operands: &Operands<Flex>, spec: &Spec) -> (FlexTensor, Kept) {
    let sizes = operands.sizes();
    let Sizes { batch, heads, rows, value_dim, .. } = sizes;
    let mut output = zeros(batch * heads * rows * value_dim);
    let mut log = vec![0.0; batch * heads * rows];
    let cuts = cuts(&sizes, spec, R);
    let mut tasks = WorkItems::new(&sizes, spec, &cuts);
    let outs = planes(&mut output, [batch, rows, heads, value_dim]);
    for (plane, (mut out, mut log)) in outs.into_iter().zip(log.chunks_mut(rows)).enumerate() {
        let head = operands.head(spec, plane / heads, plane % heads);
        for (piece, cut) in cuts.windows(2).enumerate() {
            let (own, rest) = out.split_at_row(cut[1] - cut[0]);
            let (own_log, rest_log) = log.split_at_mut(cut[1] - cut[0]);
            (out, log) = (rest, rest_log);
            tasks.add(plane, piece, HeadOutput { head, out: own, log: own_log });
        }
    }
    let spare = SpareScratch::<R>::default();
    tasks.all.into_par_iter().with_max_len(1).for_each(|mut task| {
        spare.lend(|scratch| {
            simd::dispatch(
                #[inline(always)]
                || rows::forward(&mut task.heads, task.rows.clone(), scratch),
            );
        });
    });
    (in_token_order(output, [batch, heads, rows, value_dim]), Kept { log: log.into() })
}

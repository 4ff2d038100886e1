//! Gradients to which several tasks contribute, added up in the order of the tasks.

use rayon::prelude::*;

use super::parallel::in_pieces;
use super::problem::Head;
use super::view::{MatrixMut, Shape, planes};
use crate::kernels::operands::{SLOTS, Slot};

/// How the tasks of a pass produce the gradient of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Collection {
    /// Each task writes its own rows of the gradient.
    Rows,
    /// The gradient has one row per token: a task writes directly if no other task has its head;
    /// otherwise contributions are added up.
    Tokens,
    /// The contributions of all tasks are added up.
    Summed,
}

/// Returns how the gradient of an operand is produced.
pub(super) fn collection(slot: Slot) -> Collection {
    match slot {
        Slot::Query | Slot::Dense => Collection::Rows,
        Slot::Key | Slot::Values | Slot::ContextualGateKeys => Collection::Tokens,
        _ => Collection::Summed,
    }
}

/// Returns the operand whose sums are the gradient of `slot`. Both decay operands have the same
/// gradient, since both are added to the same logits.
pub(super) fn summed_as(slot: Slot) -> Slot {
    if slot == Slot::DecayResidual { Slot::Decay } else { slot }
}

/// Gradients to add to, one matrix per operand that has a gradient.
#[derive(Debug)]
pub(super) struct Grads<'a>(pub(super) [Option<MatrixMut<'a>>; SLOTS]);

impl<'a> Grads<'a> {
    pub(super) fn none() -> Self {
        Self([const { None }; SLOTS])
    }

    pub(super) fn get(&mut self, slot: Slot) -> Option<&mut MatrixMut<'a>> {
        self.0[slot as usize].as_mut()
    }

    /// Borrows several gradients at once; `None` unless all are present. `slots` must differ.
    pub(super) fn all<const N: usize>(
        &mut self,
        slots: [Slot; N],
    ) -> Option<[&mut MatrixMut<'a>; N]> {
        let matrices = self.0.get_disjoint_mut(slots.map(|slot| slot as usize)).ok()?;
        let matrices = matrices.into_iter().filter_map(Option::as_mut).collect::<Vec<_>>();
        matrices.try_into().ok()
    }
}

/// Contributions of one task, row-major; empty for operands to which the task does not contribute.
#[derive(Debug)]
pub(super) struct Sums([Vec<f32>; SLOTS]);

impl Sums {
    /// Creates zeros for a task whose last row sees `seen` columns. With `alone`, gradients of
    /// tokens are written directly and need no memory here.
    pub(super) fn new(head: &Head<'_>, seen: usize, alone: bool) -> Self {
        Self(Slot::ALL.map(|slot| {
            let shape = head.required(slot).shape();
            let rows = match collection(slot) {
                Collection::Tokens if !alone => seen.min(shape.rows),
                Collection::Summed if summed_as(slot) == slot => shape.rows,
                _ => 0,
            };
            vec![0.0; rows * shape.columns]
        }))
    }

    pub(super) fn of(&self, slot: Slot) -> &[f32] {
        &self.0[slot as usize]
    }

    /// Returns the matrices that the kernel adds its gradients to: `own` where present, else the
    /// sums.
    pub(super) fn grads<'a>(&'a mut self, head: &Head<'_>, mut own: Grads<'a>) -> Grads<'a> {
        for (slot, sums) in Slot::ALL.into_iter().zip(&mut self.0) {
            if !sums.is_empty() {
                let columns = head.required(slot).shape().columns;
                let shape = Shape::dense(sums.len() / columns, columns);
                own.0[slot as usize] = Some(MatrixMut::new(sums, shape));
            }
        }
        own
    }
}

/// Adds up the contributions of tasks in `groups` groups of equal size, one group after the other.
pub(super) fn grouped(
    sums: &[Sums],
    groups: usize,
    group_of: impl Fn(usize) -> usize,
    slot: Slot,
) -> Vec<f32> {
    let len = sums.first().map_or(0, |sum| sum.of(slot).len());
    let mut total = vec![0.0; groups * len];
    for (task, sum) in sums.iter().enumerate() {
        let group = &mut total[group_of(task) * len..][..len];
        for (total, value) in group.iter_mut().zip(sum.of(slot)) {
            *total += value;
        }
    }
    total
}

/// Adds the contributions of the tasks of each head, `[seen, width]`, to `[batch, token, head,
/// width]`, heads in parallel.
pub(super) fn pieces(
    out: &mut [f32],
    sums: &[Sums],
    pieces: usize,
    layout: [usize; 4],
    slot: Slot,
) {
    let [_batch, _tokens, _heads, width] = layout;
    let heads = planes(out, layout).into_par_iter().zip(sums.par_chunks(pieces));
    in_pieces(
        heads,
        #[inline(always)]
        |(mut head, sums)| {
            for sum in sums {
                for (token, row) in sum.of(slot).chunks(width).enumerate() {
                    head.add_to_row(token, row);
                }
            }
        },
    );
}

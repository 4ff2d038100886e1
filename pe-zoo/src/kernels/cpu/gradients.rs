//! Backward pass on the CPU: gradients of all operands, by tasks in parallel whose shared results
//! are added up in a fixed order.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::Shape as TensorShape;
use rayon::prelude::*;

use super::engine::{Kept, WorkItem, WorkItems, cuts};
use super::heads::plane;
use super::kernel::UpstreamGrad;
use super::reduce::{self, Collection, Grads, Sums, collection, summed_as};
use super::rows::{self, HeadGrads};
use super::scratch::{Scratch, SpareScratch};
use super::tensors::{contiguous, in_token_order};
use super::view::{MatrixMut, Shape, planes, zeros};
use crate::kernels::operands::{HeadSlice, Operands, SLOTS, Sizes, Slot, present};
use crate::kernels::spec::Spec;
use crate::math::lanes::{NARROW, WIDE};
use crate::math::simd;

/// Inputs and results of the forward pass, and the gradient of its output.
#[derive(Debug, Clone, Copy)]
pub(super) struct BackwardPass<'a> {
    pub(super) operands: &'a Operands<Flex>,
    pub(super) spec: &'a Spec,
    pub(super) kept: &'a Kept,
    /// Output of the forward pass, `[B, H, T, E]`.
    pub(super) output: &'a FlexTensor,
    /// Gradient of the output, `[B, H, T, E]`.
    pub(super) grad: &'a FlexTensor,
}

/// Computes the gradients of all operands by slot; `None` for absent operands.
pub(super) fn backward(pass: BackwardPass<'_>) -> [Option<FlexTensor>; SLOTS] {
    if pass.operands.sizes().rows <= NARROW {
        backward_lanes::<NARROW>(pass)
    } else {
        backward_lanes::<WIDE>(pass)
    }
}

fn backward_lanes<const R: usize>(pass: BackwardPass<'_>) -> [Option<FlexTensor>; SLOTS] {
    let sizes = pass.operands.sizes();
    let cuts = cuts(&sizes, pass.spec, R);
    let pieces = cuts.len() - 1;
    let together = pass.spec.heads_together(sizes.heads);
    let mut buffers = Buffers::new(pass.operands, &sizes);
    let spare = SpareScratch::<R>::default();
    let sums_of_tasks = buffers
        .tasks(pass, &sizes, &cuts)
        .all
        .into_par_iter()
        .with_max_len(1)
        .map(|task| {
            let seen = pass.spec.first_row + task.rows.end;
            let new = |head: &HeadGrads<'_>| Sums::new(&head.head, seen, pieces == 1);
            let mut sums = task.heads.iter().map(new).collect::<Vec<_>>();
            spare.lend(|scratch| {
                simd::dispatch(
                    #[inline(always)]
                    || run(task, scratch, &mut sums),
                );
            });
            sums
        })
        .collect::<Vec<Vec<Sums>>>();
    // Reorders the results by head, and within each head by piece.
    let placed = sums_of_tasks.into_iter().enumerate().flat_map(|(task, heads)| {
        let place = move |h| (task / pieces * together + h) * pieces + task % pieces;
        heads.into_iter().enumerate().map(move |(h, sums)| (place(h), sums))
    });
    let mut sums = placed.collect::<Vec<_>>();
    sums.sort_by_key(|(place, _)| *place);
    let sums = sums.into_iter().map(|(_, sums)| sums).collect::<Vec<_>>();
    buffers.finish(pass.operands, &sizes, &sums, pieces)
}

#[inline(always)]
fn run<const R: usize>(task: WorkItem<HeadGrads<'_>>, scratch: &mut Scratch<R>, sums: &mut [Sums]) {
    // A task already has the gradients of tokens, if no other task shares the head.
    let heads = task
        .heads
        .into_iter()
        .zip(sums)
        .map(|(task, sums)| HeadGrads { grads: sums.grads(&task.head, task.grads), ..task });
    rows::backward(&mut heads.collect::<Vec<_>>(), task.rows, scratch);
}

/// Memory of the gradients that tasks write to directly; empty for the other operands.
struct Buffers([Vec<f32>; SLOTS]);

/// Shape of a gradient in memory, `[batch, token, head, width]`; of the dense bias, `[batch, head,
/// row, column]`.
fn layout(slot: Slot, sizes: &Sizes) -> [usize; 4] {
    let Sizes { batch, heads, rows, columns, head_dim, value_dim } = *sizes;
    match slot {
        Slot::Query => [batch, rows, heads, head_dim],
        Slot::Values => [batch, columns, heads, value_dim],
        Slot::Dense => [batch, heads, rows, columns],
        _ => [batch, columns, heads, head_dim],
    }
}

impl Buffers {
    fn new(operands: &Operands<Flex>, sizes: &Sizes) -> Self {
        Self(Slot::ALL.map(|slot| {
            let direct = present(&operands[slot]) && collection(slot) != Collection::Summed;
            zeros(if direct { layout(slot, sizes).iter().product() } else { 0 })
        }))
    }

    /// Splits the pass into tasks, and the memory of the gradients with it.
    fn tasks<'a>(
        &'a mut self,
        pass: BackwardPass<'a>,
        sizes: &Sizes,
        cuts: &[usize],
    ) -> WorkItems<HeadGrads<'a>> {
        let Sizes { heads, rows, columns, .. } = *sizes;
        let alone = cuts.len() == 2;
        let mut slots = Slot::ALL.into_iter();
        // One iterator over planes for each operand; those without memory have none.
        let mut memory = self.0.each_mut().map(|data| match slots.next() {
            Some(_) if data.is_empty() => Vec::new(),
            Some(Slot::Dense) => {
                let shape = Shape::dense(rows, columns);
                data.chunks_mut(rows * columns).map(|plane| MatrixMut::new(plane, shape)).collect()
            }
            Some(slot) => planes(data, layout(slot, sizes)),
            None => Vec::new(),
        });
        let queries = std::mem::take(&mut memory[Slot::Query as usize]).into_iter();
        let mut memory = memory.each_mut().map(|planes| planes.drain(..));
        let mut tasks = WorkItems::new(sizes, pass.spec, cuts);
        for (plane_index, mut dq) in queries.enumerate() {
            let (b, h) = (plane_index / heads, plane_index % heads);
            let head = pass.operands.head(pass.spec, b, h);
            let upstream = UpstreamGrad {
                output: plane(pass.output, b, h),
                grad: plane(pass.grad, b, h),
                log: &pass.kept.log[plane_index * rows..][..rows],
            };
            let mut dense = memory[Slot::Dense as usize].next();
            let mut token_grads = Grads::none();
            for slot in Slot::ALL.into_iter().filter(|s| collection(*s) == Collection::Tokens) {
                token_grads.0[slot as usize] = memory[slot as usize].next().filter(|_| alone);
            }
            for (piece, cut) in cuts.windows(2).enumerate() {
                let own_rows;
                (own_rows, dq) = dq.split_at_row(cut[1] - cut[0]);
                let own_dense = dense.take().map(|whole| {
                    let (token_grads, rest) = whole.split_at_row(cut[1] - cut[0]);
                    dense = Some(rest);
                    token_grads
                });
                let grads = std::mem::replace(&mut token_grads, Grads::none());
                let task = HeadGrads { head, upstream, dq: own_rows, dense: own_dense, grads };
                tasks.add(plane_index, piece, task);
            }
        }
        tasks
    }

    /// Adds up the contributions of the tasks of each head, and converts all gradients to tensors.
    fn finish(
        mut self,
        operands: &Operands<Flex>,
        sizes: &Sizes,
        sums: &[Sums],
        pieces: usize,
    ) -> [Option<FlexTensor>; SLOTS] {
        let Sizes { batch, heads, .. } = *sizes;
        Slot::ALL.map(|slot| {
            let operand = &operands[slot];
            if !present(operand) {
                return None;
            }
            let mut data = std::mem::take(&mut self.0[slot as usize]);
            let layout = layout(slot, sizes);
            if collection(slot) == Collection::Tokens && pieces > 1 {
                reduce::pieces(&mut data, sums, pieces, layout, slot);
            }
            Some(match (collection(slot), slot.head_slice()) {
                (Collection::Rows, _) if slot == Slot::Dense => {
                    contiguous(data, TensorShape::from(layout))
                }
                (Collection::Rows | Collection::Tokens, _) => {
                    let [batch, tokens, heads, width] = layout;
                    in_token_order(data, [batch, heads, tokens, width])
                }
                (Collection::Summed, part) => {
                    let group = |task: usize| match part {
                        HeadSlice::Whole => 0,
                        HeadSlice::HeadRow | HeadSlice::HeadScalar => (task / pieces) % heads,
                        HeadSlice::Plane | HeadSlice::Column => task / pieces,
                    };
                    let groups = match part {
                        HeadSlice::Whole => 1,
                        HeadSlice::HeadRow | HeadSlice::HeadScalar => heads,
                        HeadSlice::Plane | HeadSlice::Column => batch * heads,
                    };
                    let sum = reduce::grouped(sums, groups, group, summed_as(slot));
                    contiguous(sum, operand.layout().shape().clone())
                }
            })
        })
    }
}

//! Gradients of all operands: tasks in parallel, and what they share added up in order.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::Shape as TensorShape;
use rayon::prelude::*;

use super::engine::{Kept, NARROW, Task, Tasks, WIDE, cuts, tensor};
use super::heads::{plane, present};
use super::kernel::UpstreamGrad;
use super::problem::Head;
use super::reduce::{self, OwnGrads, Sums};
use super::rows::{self, HeadGrads};
use super::scratch::Scratch;
use super::tensors::contiguous;
use super::view::{MatrixMut, Shape, planes};
use crate::kernels::forms::{By, SHARED_BY};
use crate::kernels::operands::{OPERANDS, Operands, Sizes};
use crate::kernels::spec::Spec;
use crate::math::simd;

/// What the gradients are made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) operands: &'a Operands<Flex>,
    pub(super) spec: &'a Spec,
    pub(super) kept: &'a Kept,
    /// `[B, H, T, E]`.
    pub(super) output: &'a FlexTensor,
    /// `[B, H, T, E]`.
    pub(super) grad: &'a FlexTensor,
}

/// Gradients of all operands, in the order of their fields; `None` for absent ones.
pub(super) fn backward(pass: Pass<'_>) -> [Option<FlexTensor>; OPERANDS] {
    if pass.operands.sizes().rows <= NARROW {
        backward_lanes::<NARROW>(pass)
    } else {
        backward_lanes::<WIDE>(pass)
    }
}

fn backward_lanes<const R: usize>(pass: Pass<'_>) -> [Option<FlexTensor>; OPERANDS] {
    let sizes = pass.operands.sizes();
    let cuts = cuts(&sizes, pass.spec, R);
    let pieces = cuts.len() - 1;
    let mut buffers = Buffers::new(pass.operands, &sizes);
    let together = pass.spec.heads_together(sizes.heads);
    let found = buffers
        .tasks(pass, &sizes, &cuts)
        .all
        .into_par_iter()
        .map_init(Scratch::<R>::default, |scratch, task| {
            let seen = pass.spec.first_row + task.rows[1];
            let new = |head: &TaskHead<'_>| Sums::new(&head.head, seen, head.own.is_some());
            let mut sums = task.heads.iter().map(new).collect::<Vec<_>>();
            simd::dispatch(
                #[inline(always)]
                || run(task, scratch, &mut sums),
            );
            sums
        })
        .collect::<Vec<Vec<Sums>>>();
    // By head, then by piece.
    let mut sums =
        std::iter::repeat_with(Sums::default).take(found.len() * together).collect::<Vec<Sums>>();
    for (task, heads) in found.into_iter().enumerate() {
        for (h, own) in heads.into_iter().enumerate() {
            sums[(task / pieces * together + h) * pieces + task % pieces] = own;
        }
    }
    buffers.finish(pass.operands, &sizes, &sums, pieces)
}

/// One head of a task.
struct TaskHead<'a> {
    head: Head<'a>,
    upstream: UpstreamGrad<'a>,
    dq: MatrixMut<'a>,
    dense: Option<MatrixMut<'a>>,
    /// Keys, values and gate keys, if the head is this task's alone.
    own: Option<OwnGrads<'a>>,
}

#[inline(always)]
fn run<const R: usize>(task: Task<TaskHead<'_>>, scratch: &mut Scratch<R>, sums: &mut [Sums]) {
    let heads = task.heads.into_iter().zip(sums).map(|(task, sums)| {
        let TaskHead { head, upstream, dq, dense, own } = task;
        HeadGrads { head, upstream, dq, dense, grads: sums.grads(&head, own) }
    });
    rows::backward(&mut heads.collect::<Vec<_>>(), task.rows, scratch);
}

/// Memory of the gradients that are as large as the operands' tokens; empty for absent operands.
struct Buffers {
    q: Vec<f32>,
    k: Vec<f32>,
    values: Vec<f32>,
    gate_keys: Vec<f32>,
    dense: Vec<f32>,
}

impl Buffers {
    fn new(operands: &Operands<Flex>, sizes: &Sizes) -> Self {
        let Sizes { batch, heads, rows, columns, head_dim, value_dim } = *sizes;
        let all = batch * heads;
        let if_present = |operand, len| vec![0.0; if present(operand) { all * len } else { 0 }];
        Self {
            q: vec![0.0; all * rows * head_dim],
            k: vec![0.0; all * columns * head_dim],
            values: vec![0.0; all * columns * value_dim],
            gate_keys: if_present(&operands.gate_keys, columns * head_dim),
            dense: if_present(&operands.dense, rows * columns),
        }
    }

    /// Cuts the pass, and the memory with it.
    fn tasks<'a>(
        &'a mut self,
        pass: Pass<'a>,
        sizes: &Sizes,
        cuts: &[usize],
    ) -> Tasks<TaskHead<'a>> {
        let Sizes { batch, heads, rows, columns, head_dim, value_dim } = *sizes;
        let alone = cuts.len() == 2;
        let mut keys = planes(&mut self.k, [batch, columns, heads, head_dim]).into_iter();
        let mut values = planes(&mut self.values, [batch, columns, heads, value_dim]).into_iter();
        let gate_keys = &mut self.gate_keys;
        let mut gate_keys = (!gate_keys.is_empty())
            .then(|| planes(gate_keys, [batch, columns, heads, head_dim]).into_iter());
        let mut denses = self.dense.chunks_mut((rows * columns).max(1));
        let mut tasks = Tasks::new(sizes, pass.spec, cuts);
        for (index, mut dq) in
            planes(&mut self.q, [batch, rows, heads, head_dim]).into_iter().enumerate()
        {
            let (b, h) = (index / heads, index % heads);
            let head = pass.operands.head(pass.spec, b, h);
            let upstream = UpstreamGrad {
                output: plane(pass.output, b, h),
                grad: plane(pass.grad, b, h),
                log: &pass.kept.log[index * rows..][..rows],
            };
            let mut own = match (keys.next(), values.next()) {
                (Some(k), Some(values)) => {
                    let gate_keys = gate_keys.as_mut().and_then(Iterator::next);
                    Some(OwnGrads { k, values, gate_keys })
                }
                _ => None,
            };
            let mut dense =
                denses.next().map(|dense| MatrixMut::new(dense, Shape::dense(rows, columns)));
            for (piece, cut) in cuts.windows(2).enumerate() {
                let own_rows;
                (own_rows, dq) = dq.split_at_row(cut[1] - cut[0]);
                let own_dense = dense.take().map(|whole| {
                    let (own, rest) = whole.split_at_row(cut[1] - cut[0]);
                    dense = Some(rest);
                    own
                });
                let own = if alone { own.take() } else { None };
                let task = TaskHead { head, upstream, dq: own_rows, dense: own_dense, own };
                tasks.add(index, piece, task);
            }
        }
        tasks
    }

    /// Adds what the pieces of each head contribute, and makes tensors of everything.
    fn finish(
        mut self,
        operands: &Operands<Flex>,
        sizes: &Sizes,
        sums: &[Sums],
        pieces: usize,
    ) -> [Option<FlexTensor>; OPERANDS] {
        let Sizes { batch, heads, rows, columns, head_dim, value_dim } = *sizes;
        let (keys, values) =
            ([batch, columns, heads, head_dim], [batch, columns, heads, value_dim]);
        if pieces > 1 {
            reduce::pieces(&mut self.k, sums, pieces, keys, |sum| &sum.k);
            reduce::pieces(&mut self.values, sums, pieces, values, |sum| &sum.values);
            reduce::pieces(&mut self.gate_keys, sums, pieces, keys, |sum| &sum.gate_keys);
        }
        let reduced = |operand: &FlexTensor, by: By, pick: &dyn Fn(&Sums) -> &[f32]| {
            present(operand).then(|| {
                let group = |task: usize| match by {
                    By::All => 0,
                    By::Head => (task / pieces) % heads,
                    By::Plane => task / pieces,
                };
                let groups = match by {
                    By::All => 1,
                    By::Head => heads,
                    By::Plane => batch * heads,
                };
                let sum = reduce::grouped(sums, groups, &group, pick);
                contiguous(sum, operand.layout().shape().clone())
            })
        };
        let plain = [
            Some(tensor(self.q, [batch, heads, rows, head_dim])),
            Some(tensor(self.k, [batch, heads, columns, head_dim])),
            Some(tensor(self.values, [batch, heads, columns, value_dim])),
            reduced(&operands.slopes, By::Head, &|sum| &sum.slope),
            reduced(&operands.distance, By::Head, &|sum| &sum.distance),
            reduced(&operands.query_distance, By::All, &|sum| &sum.query_distance),
            reduced(&operands.decay, By::Plane, &|sum| &sum.decay),
            // Both decays are added to the same logits.
            reduced(&operands.decay_residual, By::Plane, &|sum| &sum.decay),
            present(&operands.gate_keys)
                .then(|| tensor(self.gate_keys, [batch, heads, columns, head_dim])),
            reduced(&operands.table, By::All, &|sum| &sum.table),
            reduced(&operands.hidden, By::All, &|sum| &sum.hidden),
            reduced(&operands.contextual_slopes, By::Head, &|sum| &sum.contextual_slope),
            present(&operands.dense)
                .then(|| contiguous(self.dense, TensorShape::from([batch, heads, rows, columns]))),
        ];
        let forms = operands.forms.clone().into_array();
        let forms =
            forms.iter().zip(SHARED_BY).enumerate().map(|(index, (operand, by))| {
                reduced(operand, by, &|sum| sum.forms.as_array()[index])
            });
        let mut all = plain.into_iter().chain(forms);
        std::array::from_fn(|_| all.next().flatten())
    }
}

//! Cuts one attention into tasks, runs them in parallel, and adds up what they share in a fixed order.
//!
//! Tasks depend on the shapes alone, never on the number of threads: the same seed gives the same
//! bits on any number of cores.

use burn::backend::Flex;
use burn::backend::flex::{FlexTensor, Layout};
use burn::tensor::Shape as TensorShape;
use burn::tensor::{Bytes, DType};
use rayon::prelude::*;

use super::kernel::{self, Behind};
use super::operands::{OPERANDS, Operands, Sizes, plane, present};
use super::problem::{Block, Head};
use super::reduce::{self, OwnGrads, Sums};
use super::scratch::Scratch;
use super::spec::Spec;
use crate::cpu::view::{MatrixMut, Shape, planes};
use crate::cpu::{Run, contiguous};

/// Lanes of a block, when there are enough rows.
const WIDE: usize = 64;
/// Lanes of a block in decoding, where there are few.
const NARROW: usize = 16;
/// Pieces of work that a pass is cut into at least, if it has rows enough.
const TASKS: usize = 16;

/// What the forward pass leaves for the backward pass.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    /// Logarithms of the softmax's denominators, `[batch, head, row]`.
    log: std::sync::Arc<[f32]>,
}

/// Rows of each task of one head: as many tasks as make the whole pass `TASKS`, of equal area under
/// the causal diagonal, at multiples of a block.
fn cuts(sizes: &Sizes, lanes: usize) -> Vec<usize> {
    let heads = sizes.batch * sizes.heads;
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

/// `[batch, token, head, channel]` in memory, seen as `[batch, head, token, channel]`.
fn tensor(data: Vec<f32>, [batch, heads, tokens, width]: [usize; 4]) -> FlexTensor {
    let strides = [tokens * heads * width, width, heads * width, 1].map(|s| s as isize);
    let layout = Layout::new(TensorShape::from([batch, heads, tokens, width]), strides.to_vec(), 0);
    FlexTensor::new(Bytes::from_elems(data), layout, DType::F32)
}

/// The output, `[B, H, T, E]`, and what its gradient needs.
pub(super) fn forward(operands: &Operands<Flex>, spec: &Spec) -> (FlexTensor, Kept) {
    if operands.sizes().rows <= NARROW {
        forward_lanes::<NARROW>(operands, spec)
    } else {
        forward_lanes::<WIDE>(operands, spec)
    }
}

struct ForwardTask<'a> {
    head: Head<'a>,
    first: usize,
    end: usize,
    out: MatrixMut<'a>,
    log: &'a mut [f32],
}

fn forward_lanes<const R: usize>(operands: &Operands<Flex>, spec: &Spec) -> (FlexTensor, Kept) {
    let sizes = operands.sizes();
    let Sizes { batch, heads, rows, value_dim, .. } = sizes;
    let mut output = vec![0.0; batch * heads * rows * value_dim];
    let mut log = vec![0.0; batch * heads * rows];
    let cuts = cuts(&sizes, R);
    let mut tasks = Vec::new();
    let outs = planes(&mut output, [batch, rows, heads, value_dim]);
    for (plane, (mut out, mut log)) in outs.into_iter().zip(log.chunks_mut(rows)).enumerate() {
        let head = operands.head(spec, plane / heads, plane % heads);
        for cut in cuts.windows(2) {
            let (own, rest) = out.split_at_row(cut[1] - cut[0]);
            let (own_log, rest_log) = log.split_at_mut(cut[1] - cut[0]);
            (out, log) = (rest, rest_log);
            tasks.push(ForwardTask { head, first: cut[0], end: cut[1], out: own, log: own_log });
        }
    }
    tasks.into_par_iter().for_each_init(Scratch::<R>::default, |scratch, task| {
        pulp::Arch::new().dispatch(Run(|| forward_task(task, scratch)));
    });
    (tensor(output, [batch, heads, rows, value_dim]), Kept { log: log.into() })
}

#[inline(always)]
fn forward_task<const R: usize>(mut task: ForwardTask<'_>, scratch: &mut Scratch<R>) {
    for first in (task.first..task.end).step_by(R) {
        let block = Block::<R>::new(first, task.end, task.head.spec.first_row);
        let out = task.out.rows(first - task.first, block.rows);
        let log = &mut task.log[first - task.first..][..block.rows];
        kernel::forward(&task.head, &block, scratch, out, log);
    }
}

/// Gradients of all operands, in the order of their fields; `None` for absent ones.
pub(super) fn backward(
    operands: &Operands<Flex>,
    spec: &Spec,
    kept: &Kept,
    output: &FlexTensor,
    grad: &FlexTensor,
) -> [Option<FlexTensor>; OPERANDS] {
    if operands.sizes().rows <= NARROW {
        backward_lanes::<NARROW>(operands, spec, kept, output, grad)
    } else {
        backward_lanes::<WIDE>(operands, spec, kept, output, grad)
    }
}

struct BackwardTask<'a> {
    head: Head<'a>,
    behind: Behind<'a>,
    first: usize,
    end: usize,
    dq: MatrixMut<'a>,
    dense: Option<MatrixMut<'a>>,
    /// Keys, values and gate keys, if the head is this task's alone.
    own: Option<OwnGrads<'a>>,
}

fn backward_lanes<const R: usize>(
    operands: &Operands<Flex>,
    spec: &Spec,
    kept: &Kept,
    output: &FlexTensor,
    grad: &FlexTensor,
) -> [Option<FlexTensor>; OPERANDS] {
    let sizes = operands.sizes();
    let Sizes { batch, heads, rows, columns, head_dim, value_dim } = sizes;
    let has_gate_keys = present(&operands.gate_keys);
    let has_dense = present(&operands.dense);
    let all = batch * heads;
    let mut dq = vec![0.0; all * rows * head_dim];
    let mut dk = vec![0.0; all * columns * head_dim];
    let mut dv = vec![0.0; all * columns * value_dim];
    let mut dg = vec![0.0; if has_gate_keys { all * columns * head_dim } else { 0 }];
    let mut dense = vec![0.0; if has_dense { all * rows * columns } else { 0 }];
    let cuts = cuts(&sizes, R);
    let alone = cuts.len() == 2;

    let behind = |batch, head| (plane(output, batch, head), plane(grad, batch, head));
    let mut tasks = Vec::new();
    {
        let mut gate_keys =
            has_gate_keys.then(|| planes(&mut dg, [batch, columns, heads, head_dim]).into_iter());
        let mut denses = has_dense.then(|| dense.chunks_mut(rows * columns));
        let mut keys = planes(&mut dk, [batch, columns, heads, head_dim]).into_iter();
        let mut values = planes(&mut dv, [batch, columns, heads, value_dim]).into_iter();
        for (plane, mut dq) in
            planes(&mut dq, [batch, rows, heads, head_dim]).into_iter().enumerate()
        {
            let (b, h) = (plane / heads, plane % heads);
            let head = operands.head(spec, b, h);
            let log = &kept.log[plane * rows..][..rows];
            let (output, grad) = behind(b, h);
            let mut own = match (keys.next(), values.next()) {
                (Some(k), Some(values)) => Some(OwnGrads {
                    k,
                    values,
                    gate_keys: gate_keys.as_mut().and_then(Iterator::next),
                }),
                _ => None,
            };
            let mut dense = denses
                .as_mut()
                .and_then(Iterator::next)
                .map(|dense| MatrixMut::new(dense, Shape::dense(rows, columns)));
            for cut in cuts.windows(2) {
                let own_rows;
                (own_rows, dq) = dq.split_at_row(cut[1] - cut[0]);
                let own_dense = dense.take().map(|whole| {
                    let (own, rest) = whole.split_at_row(cut[1] - cut[0]);
                    dense = Some(rest);
                    own
                });
                tasks.push(BackwardTask {
                    head,
                    behind: Behind { output, grad, log },
                    first: cut[0],
                    end: cut[1],
                    dq: own_rows,
                    dense: own_dense,
                    own: if alone { own.take() } else { None },
                });
            }
        }
    }
    let sums: Vec<Sums> = tasks
        .into_par_iter()
        .map_init(Scratch::<R>::default, |scratch, task| {
            let mut sums = Sums::new(&task.head, spec.first_row + task.end, task.own.is_some());
            pulp::Arch::new().dispatch(Run(|| backward_task(task, scratch, &mut sums)));
            sums
        })
        .collect::<Vec<_>>();

    let pieces = cuts.len() - 1;
    if !alone {
        let keys = [batch, columns, heads, head_dim];
        reduce::pieces(&mut dk, &sums, pieces, keys, |sum| &sum.k);
        reduce::pieces(&mut dv, &sums, pieces, [batch, columns, heads, value_dim], |s| &s.values);
        if has_gate_keys {
            reduce::pieces(&mut dg, &sums, pieces, keys, |sum| &sum.gate_keys);
        }
    }
    let of_head = |task: usize| (task / pieces) % heads;
    let of_plane = |task: usize| task / pieces;
    let shared = |_task: usize| 0;
    let entries = |tensor: &FlexTensor| tensor.layout().shape()[1];
    let add = |groups, of: &dyn Fn(usize) -> usize, pick: fn(&Sums) -> &[f32]| {
        reduce::grouped(&sums, groups, of, pick)
    };
    let table = |operand: &FlexTensor, pick: fn(&Sums) -> &[f32]| {
        present(operand).then(|| {
            contiguous(add(1, &shared, pick), TensorShape::from([head_dim, entries(operand)]))
        })
    };
    let per_head = |operand: &FlexTensor, pick: fn(&Sums) -> &[f32]| {
        present(operand).then(|| contiguous(add(heads, &of_head, pick), TensorShape::from([heads])))
    };
    // Of one gradient, whichever sum it is asked for.
    let decay = |operand: &FlexTensor| {
        present(operand).then(|| {
            let sum = add(all, &of_plane, |sum| &sum.decay);
            contiguous(sum, TensorShape::from([batch, heads, columns]))
        })
    };
    [
        Some(tensor(dq, [batch, heads, rows, head_dim])),
        Some(tensor(dk, [batch, heads, columns, head_dim])),
        Some(tensor(dv, [batch, heads, columns, value_dim])),
        per_head(&operands.slopes, |sum| &sum.slope),
        present(&operands.distance).then(|| {
            let sum = add(heads, &of_head, |sum| &sum.distance);
            contiguous(sum, TensorShape::from([heads, entries(&operands.distance)]))
        }),
        table(&operands.query_distance, |sum| &sum.query_distance),
        decay(&operands.decay),
        decay(&operands.finer_decay),
        has_gate_keys.then(|| tensor(dg, [batch, heads, columns, head_dim])),
        table(&operands.table, |sum| &sum.table),
        per_head(&operands.contextual_slopes, |sum| &sum.contextual_slope),
        has_dense.then(|| contiguous(dense, TensorShape::from([batch, heads, rows, columns]))),
    ]
}

#[inline(always)]
fn backward_task<const R: usize>(
    task: BackwardTask<'_>,
    scratch: &mut Scratch<R>,
    sums: &mut Sums,
) {
    let BackwardTask { head, behind, first: start, end, mut dq, mut dense, own } = task;
    let mut grads = sums.grads(&head, own);
    for first in (start..end).step_by(R) {
        let block = Block::<R>::new(first, end, head.spec.first_row);
        let own_dq = dq.rows(first - start, block.rows);
        let own_dense = dense.as_mut().map(|dense| dense.rows(first - start, block.rows));
        kernel::backward(&head, &block, &behind, scratch, own_dq, own_dense, &mut grads);
    }
}

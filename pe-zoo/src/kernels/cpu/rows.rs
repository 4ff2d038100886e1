//! Processing of rows of one head, or of all heads of a sequence where a perceptron across heads
//! needs them.
//!
//! For each block of rows the perceptron is evaluated for all heads first. Then each head attends
//! separately and adds its part of the perceptron's output; the backward pass replaces that part by
//! the gradients of the head's logits.

use std::ops::Range;

use super::kernel::{self, UpstreamGrad};
use super::modifiers::head_mlp;
use super::problem::{Block, Head};
use super::reduce::Grads;
use super::scratch::Scratch;
use super::view::MatrixMut;

/// Offset of the perceptron's output for a head; `None` without a perceptron.
fn head_plane<const R: usize>(heads: &[Head<'_>], h: usize, block: &Block<R>) -> Option<usize> {
    heads[h].spec.head_mlp.as_ref().map(|_| head_mlp::plane_start(h, block.columns))
}

/// Output and softmax logarithms of one head's rows.
pub(super) struct HeadOutput<'a> {
    pub(super) head: Head<'a>,
    pub(super) out: MatrixMut<'a>,
    pub(super) log: &'a mut [f32],
}

/// Computes `rows` of all given heads of one sequence.
#[inline(always)]
pub(super) fn forward<const R: usize>(
    outputs: &mut [HeadOutput<'_>],
    rows: Range<usize>,
    s: &mut Scratch<R>,
) {
    let heads = outputs.iter().map(|output| output.head).collect::<Vec<_>>();
    let before = heads.first().map_or(0, |head| head.spec.first_row);
    for first in rows.clone().step_by(R) {
        let block = Block::<R>::new(first, rows.end, before);
        head_mlp::forward(&heads, &block, &mut s.modifiers.head_mlp);
        for (h, output) in outputs.iter_mut().enumerate() {
            s.modifiers.head_mlp_plane = head_plane(&heads, h, &block);
            let out = output.out.rows(first - rows.start, block.rows);
            let log = &mut output.log[first - rows.start..][..block.rows];
            kernel::forward(&output.head, &block, s, out, log);
        }
    }
    s.modifiers.head_mlp_plane = None;
}

/// Inputs and outputs of the backward pass for one head.
pub(super) struct HeadGrads<'a> {
    pub(super) head: Head<'a>,
    pub(super) upstream: UpstreamGrad<'a>,
    pub(super) dq: MatrixMut<'a>,
    pub(super) dense: Option<MatrixMut<'a>>,
    pub(super) grads: Grads<'a>,
}

/// Computes the gradients for `rows` of all given heads; those of the perceptron's own
/// operands are added to the first head.
#[inline(always)]
pub(super) fn backward<const R: usize>(
    all: &mut [HeadGrads<'_>],
    rows: Range<usize>,
    s: &mut Scratch<R>,
) {
    let heads = all.iter().map(|grads| grads.head).collect::<Vec<_>>();
    let before = heads.first().map_or(0, |head| head.spec.first_row);
    for first in rows.clone().step_by(R) {
        let block = Block::<R>::new(first, rows.end, before);
        head_mlp::forward(&heads, &block, &mut s.modifiers.head_mlp);
        for (h, own) in all.iter_mut().enumerate() {
            s.modifiers.head_mlp_plane = head_plane(&heads, h, &block);
            let dq = own.dq.rows(first - rows.start, block.rows);
            let dense = own.dense.as_mut().map(|dense| dense.rows(first - rows.start, block.rows));
            kernel::backward(&own.head, &block, &own.upstream, s, dq, dense, &mut own.grads);
        }
        if s.modifiers.head_mlp_plane.is_none() {
            continue;
        }
        let mut grads = all.iter_mut().map(|own| &mut own.grads).collect::<Vec<_>>();
        head_mlp::backward(&heads, &block, &mut s.modifiers.head_mlp, &mut grads);
        for (h, own) in all.iter_mut().enumerate() {
            let dq = own.dq.rows(first - rows.start, block.rows);
            head_mlp::content_grads(
                &heads,
                h,
                &block,
                &mut s.modifiers.head_mlp,
                dq,
                &mut own.grads,
            );
        }
    }
    s.modifiers.head_mlp_plane = None;
}

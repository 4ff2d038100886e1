//! Processing of rows of one head, or of all heads of a sequence where a perceptron across heads
//! needs them.
//!
//! For each block of rows the perceptron is evaluated for all heads first. Then each head attends
//! separately and adds its part of the perceptron's output; the backward pass replaces that part by
//! the gradients of the head's logits.

use super::forms::mixer;
use super::kernel::{self, UpstreamGrad};
use super::problem::{Block, Head};
use super::reduce::Grads;
use super::scratch::Scratch;
use super::view::MatrixMut;

/// Offset of the perceptron's output for a head; `None` without a perceptron.
fn head_plane<const R: usize>(heads: &[Head<'_>], h: usize, block: &Block<R>) -> Option<usize> {
    heads[h].spec.mixer.as_ref().map(|_| mixer::plane_start(h, block.columns))
}

/// Output and softmax logarithms of one head's rows.
pub(super) struct HeadOutput<'a> {
    pub(super) head: Head<'a>,
    pub(super) out: MatrixMut<'a>,
    pub(super) log: &'a mut [f32],
}

/// Computes rows `start..end` of all given heads of one sequence.
#[inline(always)]
pub(super) fn forward<const R: usize>(
    outputs: &mut [HeadOutput<'_>],
    [start, end]: [usize; 2],
    s: &mut Scratch<R>,
) {
    let heads = outputs.iter().map(|output| output.head).collect::<Vec<_>>();
    let before = heads.first().map_or(0, |head| head.spec.first_row);
    for first in (start..end).step_by(R) {
        let block = Block::<R>::new(first, end, before);
        mixer::forward(&heads, &block, &mut s.forms.mixer);
        for (h, output) in outputs.iter_mut().enumerate() {
            s.forms.added_at = head_plane(&heads, h, &block);
            let out = output.out.rows(first - start, block.rows);
            let log = &mut output.log[first - start..][..block.rows];
            kernel::forward(&output.head, &block, s, out, log);
        }
    }
    s.forms.added_at = None;
}

/// Inputs and outputs of the backward pass for one head.
pub(super) struct HeadGrads<'a> {
    pub(super) head: Head<'a>,
    pub(super) upstream: UpstreamGrad<'a>,
    pub(super) dq: MatrixMut<'a>,
    pub(super) dense: Option<MatrixMut<'a>>,
    pub(super) grads: Grads<'a>,
}

/// Computes the gradients for rows `start..end` of all given heads; those of the perceptron's own
/// operands are added to the first head.
#[inline(always)]
pub(super) fn backward<const R: usize>(
    all: &mut [HeadGrads<'_>],
    [start, end]: [usize; 2],
    s: &mut Scratch<R>,
) {
    let heads = all.iter().map(|grads| grads.head).collect::<Vec<_>>();
    let before = heads.first().map_or(0, |head| head.spec.first_row);
    for first in (start..end).step_by(R) {
        let block = Block::<R>::new(first, end, before);
        mixer::forward(&heads, &block, &mut s.forms.mixer);
        for (h, own) in all.iter_mut().enumerate() {
            s.forms.added_at = head_plane(&heads, h, &block);
            let dq = own.dq.rows(first - start, block.rows);
            let dense = own.dense.as_mut().map(|dense| dense.rows(first - start, block.rows));
            kernel::backward(&own.head, &block, &own.upstream, s, dq, dense, &mut own.grads);
        }
        if s.forms.added_at.is_none() {
            continue;
        }
        let mut grads = all.iter_mut().map(|own| &mut own.grads).collect::<Vec<_>>();
        mixer::backward(&heads, &block, &mut s.forms.mixer, &mut grads);
        for (h, own) in all.iter_mut().enumerate() {
            let dq = own.dq.rows(first - start, block.rows);
            mixer::content_grads(&heads, h, &block, &mut s.forms.mixer, dq, &mut own.grads);
        }
    }
    s.forms.added_at = None;
}

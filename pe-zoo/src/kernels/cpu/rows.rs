//! Rows of the heads that are worked on together: one, or all of a sequence where a perceptron sees
//! them all.
//!
//! Block by block of rows the perceptron is read for all heads; then each head attends as it does
//! alone, with a plane to add, which the backward pass turns into its logits' gradients.

use super::forms::mixer;
use super::kernel::{self, UpstreamGrad};
use super::problem::{Block, Head};
use super::reduce::Grads;
use super::scratch::Scratch;
use super::view::MatrixMut;

/// Where the plane of a head starts that the perceptron adds to it, if there is one.
fn head_plane<const R: usize>(heads: &[Head<'_>], h: usize, block: &Block<R>) -> Option<usize> {
    heads[h].spec.mixer.as_ref().map(|_| mixer::plane_start(h, block.columns))
}

/// Output and logarithms of one head's rows, those of the task alone.
pub(super) struct HeadOutput<'a> {
    pub(super) head: Head<'a>,
    pub(super) out: MatrixMut<'a>,
    pub(super) log: &'a mut [f32],
}

/// Rows `start..end` of all heads of one sequence.
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

/// Inputs and sums of the gradients of one head.
pub(super) struct HeadGrads<'a> {
    pub(super) head: Head<'a>,
    pub(super) upstream: UpstreamGrad<'a>,
    pub(super) dq: MatrixMut<'a>,
    pub(super) dense: Option<MatrixMut<'a>>,
    pub(super) grads: Grads<'a>,
}

/// As [`forward`], for the gradients; the perceptron's own are those of the first head.
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

//! Biases of modifiers with operands of their own, for the logits of one head.

use super::curve::{self, PiecewiseOperands};
use super::price;
use super::steps::{self, Steps};
use crate::kernels::cpu::form_scratch::FormScratch;
use crate::kernels::cpu::problem::{Block, Head};
use crate::kernels::cpu::reduce::Grads;
use crate::math::lanes::Lanes;

/// Adds the biases to the logits, `[column][row]`. With `keep`, stores in `s` what the gradient
/// needs.
#[inline(always)]
pub(in crate::kernels::cpu) fn add<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut FormScratch<R>,
    logits: &mut [Lanes<R>],
    keep: bool,
) {
    if let Some(curve) = PiecewiseOperands::of(head, curve::OWN, &head.spec.bends) {
        curve::add(head, &curve, block, &mut s.unrolled, logits);
    }
    price::add(head, block, logits);
    if let Some(steps) = Steps::of(head) {
        steps::add(&steps, block, &mut s.steps, logits, keep);
    }
    if let Some(start) = s.added_at {
        for (logits, added) in logits[..block.columns].iter_mut().zip(&s.mixer.added[start..]) {
            for r in 0..R {
                logits[r] += added[r];
            }
        }
    }
}

/// Adds the gradients of the operands, computed from those of the logits; [`add`] must have run for
/// the same block before.
#[inline(always)]
pub(in crate::kernels::cpu) fn backward<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut FormScratch<R>,
    logit_grads: &[Lanes<R>],
    grads: &mut Grads<'_>,
) {
    if let Some(curve) = PiecewiseOperands::of(head, curve::OWN, &head.spec.bends) {
        let (unrolled, sums) = (&mut s.unrolled, &mut s.sums);
        curve::backward(head, &curve, block, unrolled, sums, logit_grads, grads);
    }
    price::backward(head, block, logit_grads, grads);
    if let Some(steps) = Steps::of(head) {
        steps::backward(&steps, block, &mut s.steps, logit_grads, grads);
    }
    if let Some(start) = s.added_at {
        let n = block.columns;
        s.mixer.added[start..start + n].copy_from_slice(&logit_grads[..n]);
    }
}

//! Biases of modifiers with operands of their own, for the logits of one head.

use super::position_mlp::{self, PiecewiseOperands};
use super::step_prices::{self, StepPricesOperands};
use super::token_price;
use crate::kernels::cpu::modifier_scratch::ModifierScratch;
use crate::kernels::cpu::problem::{Block, Head};
use crate::kernels::cpu::reduce::Grads;
use crate::kernels::operands::PiecewiseSlots;
use crate::math::lanes::Lanes;

/// Adds the biases to the logits, `[column][row]`. With `keep`, stores in `s` what the gradient
/// needs.
#[inline(always)]
pub(in crate::kernels::cpu) fn add<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut ModifierScratch<R>,
    logits: &mut [Lanes<R>],
    keep: bool,
) {
    if let Some(piecewise) =
        PiecewiseOperands::of(head, PiecewiseSlots::LOGIT_BIAS, &head.spec.position_mlp_bends)
    {
        position_mlp::add(head, &piecewise, block, &mut s.unrolled, logits);
    }
    token_price::add(head, block, logits);
    if let Some(steps) = StepPricesOperands::of(head) {
        step_prices::add(&steps, block, &mut s.step_prices, logits, keep);
    }
    if let Some(start) = s.head_mlp_plane {
        for (logits, added) in logits[..block.columns].iter_mut().zip(&s.head_mlp.added[start..]) {
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
    s: &mut ModifierScratch<R>,
    logit_grads: &[Lanes<R>],
    grads: &mut Grads<'_>,
) {
    if let Some(piecewise) =
        PiecewiseOperands::of(head, PiecewiseSlots::LOGIT_BIAS, &head.spec.position_mlp_bends)
    {
        let (unrolled, sums) = (&mut s.unrolled, &mut s.sums);
        position_mlp::backward(head, &piecewise, block, unrolled, sums, logit_grads, grads);
    }
    token_price::backward(head, block, logit_grads, grads);
    if let Some(steps) = StepPricesOperands::of(head) {
        step_prices::backward(&steps, block, &mut s.step_prices, logit_grads, grads);
    }
    if let Some(start) = s.head_mlp_plane {
        let n = block.columns;
        s.head_mlp.added[start..start + n].copy_from_slice(&logit_grads[..n]);
    }
}

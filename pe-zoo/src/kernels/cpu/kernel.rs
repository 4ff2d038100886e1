//! Forward and backward pass of one block of query rows.

use super::contextual;
use super::distance;
use super::modifiers::bias;
use super::modifiers::channel_decay::{self, ChannelDecayOperands};
use super::modifiers::far::{self, FarOperands};
use super::modifiers::reflected::{self, ReflectedOperands};
use super::problem::{Block, Head};
use super::reduce::Grads;
use super::scratch::{Scratch, grow, lanes as read, lanes_mut as write};
use super::term;
use super::view::{Add, Matrix, MatrixMut, multiply};
use crate::kernels::operands::Slot;
use crate::kernels::spec::WeightRule;
use crate::math::lanes::{self, Lanes};
use crate::score::Remainder;

/// Computes `s.logits` for a block; returns the first column whose contextual bias is not constant.
#[inline(always)]
fn logits<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    keep: bool,
) -> usize {
    let n = block.columns;
    grow(&mut s.logits, n);
    let query = head.q().rows(block.first, block.rows);
    if let Some(scale) = head.spec.content_scale {
        if let Some(operands) = ReflectedOperands::of(head) {
            let (s, out) = (&mut s.modifiers.reflected, &mut s.logits);
            reflected::products(&operands, head, block, scale, s, out, keep);
        } else if let Some(operands) = FarOperands::of(head) {
            let (s, out) = (&mut s.modifiers.far, &mut s.logits[..n]);
            far::products(&operands, head, block, scale, s, out);
        } else if let Some(operands) = ChannelDecayOperands::of(head) {
            let (s, out) = (&mut s.modifiers.channel_decay, &mut s.logits[..n]);
            channel_decay::products(&operands, head, block, scale, s, out);
        } else {
            let out = write(&mut s.logits, n, block.rows);
            multiply(out, head.k().rows(0, n), query.t(), scale, Add::Overwrite);
        }
    } else {
        s.logits[..n].fill([0.0; R]);
    }
    if !head.spec.terms.is_empty() {
        term::apply(head, block, s, keep);
    }
    let constant_below = match &head.contextual {
        Some(contextual) => contextual::add(head, contextual, block, s, keep),
        None => 0,
    };
    distance::add(head, block, s);
    for cumulative in
        [head.optional(Slot::Decay), head.optional(Slot::DecayResidual)].into_iter().flatten()
    {
        let rows = decay_rows(head, block, cumulative);
        for (j, logits) in s.logits[..n].iter_mut().enumerate() {
            let column = cumulative.at(j, 0);
            for r in 0..R {
                logits[r] += rows[r] - column;
            }
        }
    }
    bias::add(head, block, &mut s.modifiers, &mut s.logits, keep);
    if let Some(dense) = head.optional(Slot::Dense) {
        let dense = dense.rows(block.first, block.rows);
        for (j, logits) in s.logits[..n].iter_mut().enumerate() {
            for (r, logit) in logits.iter_mut().enumerate().take(block.rows) {
                *logit += dense.at(r, j);
            }
        }
    }
    constant_below
}

#[inline(always)]
fn decay_rows<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    cumulative: Matrix<'_>,
) -> Lanes<R> {
    let first = head.spec.first_row + block.first;
    std::array::from_fn(|r| cumulative.at((first + r).min(block.columns - 1), 0))
}

/// Converts `s.logits` to weights, for a softmax without the division. Returns the divisors and the
/// logarithms of the softmax's denominators.
#[inline(always)]
fn weights<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
) -> (Lanes<R>, Lanes<R>) {
    let n = block.columns;
    let (last, open) = block.attended(head.spec);
    match head.spec.weights {
        WeightRule::Softmax => {
            let sink = head.optional(Slot::Sink).map(|sink| sink.at(0, 0));
            let mut largest = [sink.unwrap_or(f32::MIN); R];
            for (j, logits) in s.logits[..n].iter_mut().enumerate() {
                if j >= open {
                    for r in 0..R {
                        logits[r] = if j as f32 <= last[r] { logits[r] } else { f32::NEG_INFINITY };
                    }
                }
                for r in 0..R {
                    largest[r] = if logits[r] > largest[r] { logits[r] } else { largest[r] };
                }
            }
            let mut sum =
                largest.map(|largest| sink.map_or(0.0, |sink| lanes::weight(sink - largest)));
            for logits in &mut s.logits[..n] {
                for r in 0..R {
                    logits[r] = lanes::weight(logits[r] - largest[r]);
                    sum[r] += logits[r];
                }
            }
            let log = std::array::from_fn(|r| largest[r] + sum[r].ln());
            (sum, log)
        }
        WeightRule::StickBreaking(rule) => {
            let left = break_sticks(head, block, s);
            if rule.remainder == Remainder::OwnToken {
                give_remainders(head, block, s, &left);
            }
            ([1.0; R], [0.0; R])
        }
    }
}

/// Converts `s.logits` to stick-breaking weights; returns the logarithm of each row's remainder.
#[inline(always)]
fn break_sticks<const R: usize>(head: &Head<'_>, block: &Block<R>, s: &mut Scratch<R>) -> Lanes<R> {
    let (last, _) = block.attended(head.spec);
    let mut left = [0.0; R];
    for (j, logits) in s.logits[..block.columns].iter_mut().enumerate().rev() {
        for r in 0..R {
            let seen = j as f32 <= last[r];
            let stays = lanes::log_sigmoid(-logits[r]);
            let weight = lanes::weight(logits[r] + stays + left[r]);
            logits[r] = if seen { weight } else { 0.0 };
            left[r] += if seen { stays } else { 0.0 };
        }
    }
    left
}

/// Adds each row's stick-breaking remainder to the weight of the row's own token.
#[inline(always)]
fn give_remainders<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    left: &Lanes<R>,
) {
    let diagonal = head.spec.first_row + block.first;
    for (r, left) in left.iter().enumerate().take(block.rows) {
        s.logits[diagonal + r][r] += lanes::weight(*left);
    }
}

/// Runs the forward pass of a block. `out` is `[rows, E]`; `log` receives the logarithm of each
/// row's softmax denominator.
#[inline(always)]
pub(super) fn forward<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    mut out: MatrixMut<'_>,
    log: &mut [f32],
) {
    logits(head, block, s, false);
    let (sum, log_sum) = weights(head, block, s);
    let n = block.columns;
    let values = head.values().rows(0, n);
    multiply(out.reborrow(), read(&s.logits, n, block.rows).t(), values, 1.0, Add::Overwrite);
    for r in 0..block.rows {
        out.scale_row(r, 1.0 / sum[r]);
        log[r] = log_sum[r];
    }
}

/// Output of the forward pass and its gradient, for one head.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpstreamGrad<'a> {
    /// Output of the forward pass, `[T, E]`.
    pub(super) output: Matrix<'a>,
    /// Gradient of the output, `[T, E]`.
    pub(super) grad: Matrix<'a>,
    /// Logarithms of the softmax's denominators, one per row.
    pub(super) log: &'a [f32],
}

/// Runs the backward pass of a block. `dq` and `dense` are the gradients of the block's own rows,
/// `[rows, D]` and `[rows, S]`.
#[inline(always)]
pub(super) fn backward<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    upstream: &UpstreamGrad<'_>,
    s: &mut Scratch<R>,
    mut dq: MatrixMut<'_>,
    dense: Option<MatrixMut<'_>>,
    grads: &mut Grads<'_>,
) {
    let n = block.columns;
    let constant_below = logits(head, block, s, true);
    let grad = upstream.grad.rows(block.first, block.rows);
    grow(&mut s.grads, n);
    let out = write(&mut s.grads, n, block.rows);
    multiply(out, head.values().rows(0, n), grad.t(), 1.0, Add::Overwrite);
    match head.spec.weights {
        WeightRule::Softmax => softmax_backward(head, block, upstream, s, grads),
        WeightRule::StickBreaking(rule) => {
            stick_breaking_backward(head, block, s, rule.remainder);
        }
    }
    let weights = read(&s.logits, n, block.rows);
    if let Some(values) = grads.get(Slot::Values) {
        multiply(values.rows(0, n), weights, grad, 1.0, Add::Accumulate);
    }

    dq.fill(0.0);
    distance::backward(head, block, s, &mut dq, grads);
    if let Some(decay) = grads.get(Slot::Decay) {
        let first = head.spec.first_row + block.first;
        let mut rows = [0.0; R];
        for (j, logit_grads) in s.grads[..n].iter().enumerate() {
            *decay.get(j, 0) -= logit_grads[..block.rows].iter().sum::<f32>();
            for r in 0..R {
                rows[r] += logit_grads[r];
            }
        }
        for (r, sum) in rows.iter().enumerate().take(block.rows) {
            *decay.get(first + r, 0) += sum;
        }
    }
    bias::backward(head, block, &mut s.modifiers, &s.grads, grads);
    if let Some(mut dense) = dense {
        for (j, logit_grads) in s.grads[..n].iter().enumerate() {
            for (r, value) in logit_grads.iter().enumerate().take(block.rows) {
                dense.set(r, j, *value);
            }
        }
    }
    if let Some(contextual) = &head.contextual {
        contextual::backward(head, contextual, block, constant_below, s, &mut dq, grads);
    }
    if !head.spec.terms.is_empty() {
        term::backward(head, block, s, grads);
    }
    if let Some(operands) = ReflectedOperands::of(head) {
        reflected::backward(
            &operands,
            head,
            block,
            &mut s.modifiers.reflected,
            &s.grads,
            &mut dq,
            grads,
        );
    } else if let Some(operands) = ChannelDecayOperands::of(head) {
        let scratch = &mut s.modifiers.channel_decay;
        channel_decay::backward(&operands, head, block, scratch, &s.grads[..n], &mut dq, grads);
    } else if let Some(operands) = FarOperands::of(head) {
        let far_scratch = &mut s.modifiers.far;
        far::backward(&operands, head, block, far_scratch, &s.grads[..n], &mut dq, grads);
    } else if let Some(scale) = head.spec.content_scale {
        let logit_grads = read(&s.grads, n, block.rows);
        let query = head.q().rows(block.first, block.rows);
        multiply(dq.reborrow(), logit_grads.t(), head.k().rows(0, n), scale, Add::Accumulate);
        if let Some(keys) = grads.get(Slot::Key) {
            multiply(keys.rows(0, n), logit_grads, query, scale, Add::Accumulate);
        }
    }
}

/// Converts `s.logits` to weights and fills `s.grads` with the gradients of the logits.
#[inline(always)]
fn softmax_backward<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    upstream: &UpstreamGrad<'_>,
    s: &mut Scratch<R>,
    grads: &mut Grads<'_>,
) {
    let (last, open) = block.attended(head.spec);
    let (mut log, mut share) = ([0.0; R], [0.0; R]);
    for r in 0..block.rows {
        log[r] = upstream.log[block.first + r];
        share[r] = upstream.output.row_dot(&upstream.grad, block.first + r);
    }
    if let (Some(sink), Some(grad)) = (head.optional(Slot::Sink), grads.get(Slot::Sink)) {
        // Its value is 0.
        let rows = log[..block.rows].iter().zip(&share);
        let weights = rows.map(|(log, share)| lanes::weight(sink.at(0, 0) - log) * share);
        *grad.get(0, 0) -= weights.sum::<f32>();
    }
    let n = block.columns;
    for (j, (logits, grads)) in s.logits[..n].iter_mut().zip(&mut s.grads[..n]).enumerate() {
        for r in 0..R {
            let weight = lanes::weight(logits[r] - log[r]);
            logits[r] = weight;
            grads[r] = weight * (grads[r] - share[r]);
        }
        if j >= open {
            for r in 0..R {
                let seen = j as f32 <= last[r];
                logits[r] = if seen { logits[r] } else { 0.0 };
                grads[r] = if seen { grads[r] } else { 0.0 };
            }
        }
    }
}

/// Does the same as [`softmax_backward`] for stick-breaking.
#[inline(always)]
fn stick_breaking_backward<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    remainder: Remainder,
) {
    let (last, _) = block.attended(head.spec);
    let n = block.columns;
    // The gradient needs the logits after they were converted to weights in place.
    grow(&mut s.kept, n);
    s.kept[..n].copy_from_slice(&s.logits[..n]);
    let left = break_sticks(head, block, s);
    let mut older = [0.0; R];
    if remainder == Remainder::OwnToken {
        // Every column reduces the remainder, as if the remainder were an even older column.
        let diagonal = head.spec.first_row + block.first;
        for r in 0..block.rows {
            older[r] = lanes::weight(left[r]) * s.grads[diagonal + r][r];
        }
    }
    for j in 0..n {
        let (logits, weights, grads) = (&s.kept[j], &s.logits[j], &mut s.grads[j]);
        for r in 0..R {
            let seen = j as f32 <= last[r];
            let breaks = lanes::sigmoid(logits[r]);
            let log_grad = if seen { weights[r] * grads[r] } else { 0.0 };
            grads[r] = if seen { log_grad * (1.0 - breaks) - breaks * older[r] } else { 0.0 };
            older[r] += log_grad;
        }
    }
    if remainder == Remainder::OwnToken {
        give_remainders(head, block, s, &left);
    }
}

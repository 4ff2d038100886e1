//! Contextual positions on the CPU: suffix sums of gates along each row, and the function of these
//! sums.
//!
//! Columns are processed from the newest to the oldest with the sum carried. Once every lane has
//! passed the largest position, the bias of all older columns is one constant per lane.

use super::contextual_mlp as mlp;
use super::contextual_mlp_pieces::{self as pieces, Walk};
use super::problem::{Block, ContextualHead, ContextualOperand, Head};
use super::reduce::Grads;
use super::scratch::{Scratch, grow, lanes as read, lanes_mut as write};
use super::view::{Add, MatrixMut, multiply};
use crate::kernels::operands::Slot;
use crate::math::lanes::{self, Lanes};
use crate::score::HiddenActivation;

/// Number of columns between two tests of whether every lane has passed the largest position.
const ASK_EVERY: usize = 8;

/// Returns the table entry below each position, at most `last`, and the fraction of the way to the
/// next entry.
///
/// For a position that is NaN the entry is arbitrary but within the table, and the fraction is NaN.
#[inline(always)]
fn place<const R: usize>(counts: &Lanes<R>, max: f32, last: u32) -> ([u32; R], Lanes<R>) {
    let (mut index, mut fraction) = ([0; R], [0.0; R]);
    for r in 0..R {
        let position = lanes::at_most(counts[r], max);
        let (whole, at) = lanes::floor(position);
        index[r] = at.min(last);
        fraction[r] = position - whole;
    }
    (index, fraction)
}

/// Returns the values at the given entries, and the differences to the next entries.
#[inline(always)]
fn look_up<const R: usize>(products: &[Lanes<R>], index: &[u32; R]) -> (Lanes<R>, Lanes<R>) {
    let (mut low, mut rise) = ([0.0; R], [0.0; R]);
    for r in 0..R {
        let at = index[r] as usize;
        let below = products[at][r];
        low[r] = below;
        rise[r] = products[at + 1][r] - below;
    }
    (low, rise)
}

/// Number of entries of the table that a block can reach.
fn entries(operand: &ContextualOperand<'_>, columns: usize) -> usize {
    match operand {
        ContextualOperand::Table(table) => table.shape().columns.min(columns + 1),
        ContextualOperand::Mlp(perceptron) => perceptron.out.shape().columns,
        ContextualOperand::Slope(_) => 0,
    }
}

/// Index of the last of `entries`, 0 if there are none.
fn last_entry(entries: usize) -> u32 {
    entries.saturating_sub(1) as u32
}

/// Adds the contextual bias to the content logits in `s.logits`. With `keep`, stores in `s.gates`,
/// `s.counts` and `s.rises` what the gradient needs. Returns the first column whose bias is not
/// constant.
#[inline(always)]
pub(super) fn add<const R: usize>(
    head: &Head<'_>,
    contextual: &ContextualHead<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    keep: bool,
) -> usize {
    let n = block.columns;
    let spec = contextual.spec;
    let max = spec.max_position;
    let query = head.q().rows(block.first, block.rows);
    let own_gates = contextual.gate_keys.is_some();
    if own_gates || keep {
        grow(&mut s.gates, n);
    }
    if let Some(keys) = contextual.gate_keys {
        let out = write(&mut s.gates, n, block.rows);
        multiply(out, keys.rows(0, n), query.t(), spec.gate_scale, Add::Overwrite);
    }
    if keep {
        grow(&mut s.counts, n);
        grow(&mut s.rises, n);
    }
    let reach = entries(&contextual.function, n);
    if let Some(table) = contextual.function.table() {
        grow(&mut s.products, reach + 1);
        let out = write(&mut s.products, reach, block.rows);
        multiply(out, table.columns(reach).t(), query.t(), spec.function_scale, Add::Overwrite);
        s.products[reach] = s.products[reach - 1];
    }

    let mut walk = match &contextual.function {
        ContextualOperand::Mlp(perceptron) if perceptron.activation == HiddenActivation::Relu => {
            s.contextual_mlp.prepare(perceptron, &s.products);
            Some(Walk::default())
        }
        _ => None,
    };
    let last = last_entry(reach);
    let scale = if own_gates { 1.0 } else { head.spec.gates_from_content(spec) };
    let mut counts = [0.0; R];
    let mut constant_below = 0;
    for j in (0..n).rev() {
        if j < block.open && j % ASK_EVERY == 0 && counts.iter().all(|count| *count > max) {
            constant_below = j + 1;
            break;
        }
        let gate_logits = if own_gates { &s.gates[j] } else { &s.logits[j] };
        let mut gates = [0.0; R];
        for r in 0..R {
            let gate = lanes::sigmoid(gate_logits[r] * scale);
            gates[r] = if j as f32 <= block.last_seen[r] { gate } else { 0.0 };
            counts[r] += gates[r];
        }
        let logits = &mut s.logits[j];
        let mut rises = [0.0; R];
        match contextual.function {
            ContextualOperand::Table(_) => {
                let (index, fraction) = place(&counts, max, last);
                let (low, rise) = look_up(&s.products, &index);
                for r in 0..R {
                    logits[r] += low[r] + rise[r] * fraction[r];
                    // At an integer position the derivative is defined as 0, as in the tensor code.
                    let counted = counts[r] <= max && fraction[r] > 0.0;
                    rises[r] = if counted { rise[r] } else { 0.0 };
                }
            }
            ContextualOperand::Mlp(perceptron) => {
                let positions = counts.map(|count| lanes::at_most(count, max));
                let (bias, rise) = match &mut walk {
                    Some(walk) => s.contextual_mlp.at(walk, &positions),
                    None => mlp::at(&perceptron, &s.products, &positions),
                };
                for r in 0..R {
                    logits[r] += bias[r];
                    rises[r] = if counts[r] <= max { rise[r] } else { 0.0 };
                }
            }
            ContextualOperand::Slope(slope) => {
                let slope = slope * spec.function_scale;
                for r in 0..R {
                    logits[r] += slope * lanes::at_most(counts[r], max);
                    rises[r] = if counts[r] <= max { slope } else { 0.0 };
                }
            }
        }
        if keep {
            s.gates[j] = gates;
            s.counts[j] = counts;
            s.rises[j] = rises;
        }
    }
    if constant_below > 0 {
        let constant = at_max(contextual, &s.products, last);
        for logits in &mut s.logits[..constant_below] {
            for r in 0..R {
                logits[r] += constant[r];
            }
        }
    }
    constant_below
}

/// Bias at the largest position.
#[inline(always)]
fn at_max<const R: usize>(
    contextual: &ContextualHead<'_>,
    products: &[Lanes<R>],
    last: u32,
) -> Lanes<R> {
    let max = contextual.spec.max_position;
    match contextual.function {
        ContextualOperand::Table(_) => {
            let (index, fraction) = place(&[max; R], max, last);
            let (low, rise) = look_up(products, &index);
            std::array::from_fn(|r| low[r] + rise[r] * fraction[r])
        }
        ContextualOperand::Mlp(perceptron) => mlp::at(&perceptron, products, &[max; R]).0,
        ContextualOperand::Slope(slope) => [slope * contextual.spec.function_scale * max; R],
    }
}

/// Propagates the gradients of the logits in `s.grads` to the gates (into `s.grads` itself if gates
/// come from the content, else to the gate keys), to the queries, and to the operands of the
/// function.
#[inline(always)]
pub(super) fn backward<const R: usize>(
    head: &Head<'_>,
    contextual: &ContextualHead<'_>,
    block: &Block<R>,
    constant_below: usize,
    s: &mut Scratch<R>,
    dq: &mut MatrixMut<'_>,
    grads: &mut Grads<'_>,
) {
    let n = block.columns;
    let spec = contextual.spec;
    let query = head.q().rows(block.first, block.rows);
    let reach = entries(&contextual.function, n);
    let last = last_entry(reach);
    let own_gates = contextual.gate_keys.is_some();
    if own_gates {
        grow(&mut s.gate_grads, n);
        s.gate_grads[..constant_below].fill([0.0; R]);
    }
    grow(&mut s.product_grads, reach + 1);
    s.product_grads[..=reach].fill([0.0; R]);

    let mut constant = [0.0; R];
    for grads in &s.grads[..constant_below] {
        for r in 0..R {
            constant[r] += grads[r];
        }
    }
    let mut slope = [0.0; R];
    match contextual.function {
        ContextualOperand::Table(_) if constant_below > 0 => {
            let (index, fraction) = place(&[spec.max_position; R], spec.max_position, last);
            scatter(&mut s.product_grads, &index, &fraction, &constant);
        }
        // The largest position may be infinite, but is finite where it is reached.
        ContextualOperand::Slope(_) if constant_below > 0 => {
            for r in 0..R {
                slope[r] = constant[r] * spec.max_position;
            }
        }
        ContextualOperand::Table(_) | ContextualOperand::Slope(_) => {}
        ContextualOperand::Mlp(perceptron) => {
            if let Some(hidden) = grads.get(Slot::ContextualHidden) {
                let max = spec.max_position;
                let of = &perceptron;
                match perceptron.activation {
                    HiddenActivation::Relu => {
                        pieces::backward(of, max, constant_below, &constant, block, s, hidden);
                    }
                    HiddenActivation::Gelu => {
                        mlp::backward(of, max, constant_below, &constant, block, s, hidden);
                    }
                }
            }
        }
    }

    let scale = head.spec.gates_from_content(spec);
    let mut through = [0.0; R];
    for j in constant_below..n {
        let (counts, rises, gates) = (&s.counts[j], &s.rises[j], &s.gates[j]);
        let logit_grads = &mut s.grads[j];
        match contextual.function {
            ContextualOperand::Table(_) => {
                let (index, fraction) = place(counts, spec.max_position, last);
                scatter(&mut s.product_grads, &index, &fraction, logit_grads);
            }
            ContextualOperand::Slope(_) => {
                for r in 0..R {
                    slope[r] += logit_grads[r] * lanes::at_most(counts[r], spec.max_position);
                }
            }
            ContextualOperand::Mlp(_) => {}
        }
        let mut gate_grads = [0.0; R];
        for r in 0..R {
            through[r] += logit_grads[r] * rises[r];
            gate_grads[r] = through[r] * gates[r] * (1.0 - gates[r]);
        }
        if own_gates {
            s.gate_grads[j] = gate_grads;
        } else {
            for r in 0..R {
                logit_grads[r] += gate_grads[r] * scale;
            }
        }
    }

    if let Some(total) = grads.get(Slot::ContextualSlopes) {
        for value in &slope[..block.rows] {
            *total.get(0, 0) += value * spec.function_scale;
        }
    }
    if let (Some(table), Some(table_grads)) =
        (contextual.function.table(), grads.get(Slot::ContextualVectors))
    {
        let products = read(&s.product_grads, reach, block.rows);
        let scale = spec.function_scale;
        multiply(dq.reborrow(), products.t(), table.columns(reach).t(), scale, Add::Accumulate);
        multiply(table_grads.columns(reach), query.t(), products.t(), scale, Add::Accumulate);
    }
    if let (Some(keys), Some(key_grads)) =
        (contextual.gate_keys, grads.get(Slot::ContextualGateKeys))
    {
        let gate_grads = read(&s.gate_grads, n, block.rows);
        let scale = spec.gate_scale;
        multiply(dq.reborrow(), gate_grads.t(), keys.rows(0, n), scale, Add::Accumulate);
        multiply(key_grads.rows(0, n), gate_grads, query, scale, Add::Accumulate);
    }
}

/// Adds each lane's gradient to the two entries that its value was interpolated between.
#[inline(always)]
fn scatter<const R: usize>(
    product_grads: &mut [Lanes<R>],
    index: &[u32; R],
    fraction: &Lanes<R>,
    grads: &Lanes<R>,
) {
    let mut above = [0.0; R];
    for r in 0..R {
        above[r] = grads[r] * fraction[r];
    }
    for r in 0..R {
        let at = index[r] as usize;
        product_grads[at][r] += grads[r] - above[r];
        product_grads[at + 1][r] += above[r];
    }
}

//! Sum of prices of the steps between key and query; a step's price comes from separate queries and
//! keys.
//!
//! Columns are processed from the newest to the oldest with the sum carried, as for contextual
//! positions.

use crate::kernels::cpu::modifier_scratch::StepPricesScratch;
use crate::kernels::cpu::problem::{Block, Head};
use crate::kernels::cpu::reduce::Grads;
use crate::kernels::cpu::scratch::{grow, lanes as read, lanes_mut as write};
use crate::kernels::cpu::view::{Add, Matrix, multiply};
use crate::kernels::operands::Slot;
use crate::math::lanes::{self, Lanes};

/// Operands of the step prices for one head.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepPricesOperands<'a> {
    /// Queries of the steps, `[T, E]`.
    queries: Matrix<'a>,
    /// Keys of the steps, `[S, E]`.
    keys: Matrix<'a>,
    /// Slope by which the sum of prices is multiplied.
    slope: f32,
}

impl<'a> StepPricesOperands<'a> {
    /// Returns the operands of a head; `None` if it has no step prices.
    pub(super) fn of(head: &Head<'a>) -> Option<Self> {
        let slope = head.optional(Slot::StepPricesSlopes)?.at(0, 0);
        Some(Self {
            queries: head.required(Slot::StepPricesQueries),
            keys: head.required(Slot::StepPricesKeys),
            slope,
        })
    }

    /// Returns the divisor of the products.
    fn scale(&self) -> f32 {
        1.0 / self.keys.shape().columns as f32
    }
}

/// Adds to `logits` the sum of the prices of the steps after each column. With `keep`, stores in
/// `s` what the gradient needs.
#[inline(always)]
pub(super) fn add<const R: usize>(
    steps: &StepPricesOperands<'_>,
    block: &Block<R>,
    s: &mut StepPricesScratch<R>,
    logits: &mut [Lanes<R>],
    keep: bool,
) {
    let n = block.columns;
    grow(&mut s.prices, n);
    let query = steps.queries.rows(block.first, block.rows);
    let out = write(&mut s.prices, n, block.rows);
    multiply(out, steps.keys.rows(0, n), query.t(), steps.scale(), Add::Overwrite);
    if keep {
        grow(&mut s.rises, n);
    }
    let (last, slope) = (block.last_seen, steps.slope);
    let mut sums = [0.0; R];
    for (j, (logits, prices)) in logits[..n].iter_mut().zip(&mut s.prices[..n]).enumerate().rev() {
        // Separate local arrays cannot alias, so that the loop is vectorised.
        let products = *prices;
        let (mut own, mut rises) = ([0.0; R], [0.0; R]);
        for r in 0..R {
            let seen = j as f32 <= last[r];
            let (price, rise) = lanes::log_sigmoid_and_slope(products[r]);
            own[r] = if seen { price } else { 0.0 };
            rises[r] = if seen { rise } else { 0.0 };
        }
        for r in 0..R {
            logits[r] += slope * sums[r];
        }
        for r in 0..R {
            sums[r] += own[r];
        }
        *prices = own;
        if keep {
            s.rises[j] = rises;
        }
    }
}

/// Adds the gradients of the operands, computed from those of the logits and the values stored by
/// [`add`].
#[inline(always)]
pub(super) fn backward<const R: usize>(
    steps: &StepPricesOperands<'_>,
    block: &Block<R>,
    s: &mut StepPricesScratch<R>,
    logit_grads: &[Lanes<R>],
    grads: &mut Grads<'_>,
) {
    let slots = [Slot::StepPricesQueries, Slot::StepPricesKeys, Slot::StepPricesSlopes];
    let Some([of_queries, of_keys, of_factor]) = grads.all(slots) else { return };
    let n = block.columns;
    let slope = steps.slope;
    // A price contributes to the sums of all older columns.
    let mut older = [0.0; R];
    let mut of_slope = [0.0; R];
    let columns = s.prices[..n].iter().zip(&mut s.rises[..n]);
    for ((prices, rises), logit_grads) in columns.zip(&logit_grads[..n]) {
        let mut of_products = *rises;
        for r in 0..R {
            of_slope[r] += prices[r] * older[r];
            of_products[r] *= slope * older[r];
            older[r] += logit_grads[r];
        }
        *rises = of_products;
    }
    *of_factor.get(0, 0) += of_slope[..block.rows].iter().sum::<f32>();
    let of_products = read(&s.rises, n, block.rows);
    let query = steps.queries.rows(block.first, block.rows);
    let scale = steps.scale();
    let of_query = of_queries.rows(block.first, block.rows);
    multiply(of_query, of_products.t(), steps.keys.rows(0, n), scale, Add::Accumulate);
    multiply(of_keys.rows(0, n), of_products, query, scale, Add::Accumulate);
}

//! A price for every step between key and query, which queries and keys of their own set.
//!
//! Columns are walked from the newest to the oldest with the sum carried, as contextual positions are.

use crate::kernels::cpu::problem::{Block, Head};
use crate::kernels::cpu::reduce::Grads;
use crate::kernels::cpu::scratch::{grow, lanes as read, lanes_mut as write};
use crate::kernels::cpu::view::{Add, Matrix, multiply};
use crate::kernels::operands::Slot;
use crate::math::lanes::{self, Lanes};

/// The operands of one head.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps<'a> {
    /// `[T, E]`.
    queries: Matrix<'a>,
    /// `[S, E]`.
    keys: Matrix<'a>,
    /// What the sum of prices is multiplied with.
    slope: f32,
}

impl<'a> Steps<'a> {
    /// Those of a head, if it has any.
    pub(super) fn of(head: &Head<'a>) -> Option<Self> {
        let slope = head.given(Slot::StepSlopes)?.at(0, 0);
        Some(Self { queries: head.part(Slot::StepQueries), keys: head.part(Slot::StepKeys), slope })
    }

    /// What products are divided by.
    fn scale(&self) -> f32 {
        1.0 / self.keys.shape().columns as f32
    }
}

/// Adds to `logits` the prices of the steps after each column, and leaves what their logarithms of a
/// sigmoid are taken of in `products`.
#[inline(always)]
pub(super) fn add<const R: usize>(
    steps: &Steps<'_>,
    block: &Block<R>,
    products: &mut Vec<Lanes<R>>,
    logits: &mut [Lanes<R>],
) {
    let n = block.columns;
    grow(products, n);
    let query = steps.queries.rows(block.first, block.rows);
    let out = write(products, n, block.rows);
    multiply(out, steps.keys.rows(0, n), query.t(), steps.scale(), Add::Overwrite);
    let mut sums = [0.0; R];
    for (j, (logits, products)) in logits[..n].iter_mut().zip(&products[..n]).enumerate().rev() {
        for r in 0..R {
            let seen = j as f32 <= block.last_seen[r];
            logits[r] += steps.slope * sums[r];
            sums[r] += if seen { lanes::log_sigmoid(products[r]) } else { 0.0 };
        }
    }
}

/// Adds the gradients of the operands, from those of the logits; `products` are those that [`add`]
/// left, and are overwritten.
#[inline(always)]
pub(super) fn backward<const R: usize>(
    steps: &Steps<'_>,
    block: &Block<R>,
    products: &mut [Lanes<R>],
    logit_grads: &[Lanes<R>],
    grads: &mut Grads<'_>,
) {
    let slots = [Slot::StepQueries, Slot::StepKeys, Slot::StepSlopes];
    let Some([of_queries, of_keys, of_factor]) = grads.all(slots) else { return };
    let n = block.columns;
    // A price is part of the sum of every older column.
    let mut older = [0.0; R];
    let mut of_slope = [0.0; R];
    for (j, (products, logit_grads)) in products[..n].iter_mut().zip(&logit_grads[..n]).enumerate()
    {
        for r in 0..R {
            let seen = j as f32 <= block.last_seen[r];
            let product = products[r];
            let price = if seen { lanes::log_sigmoid(product) } else { 0.0 };
            of_slope[r] += price * older[r];
            let through = steps.slope * older[r] * lanes::sigmoid(-product);
            products[r] = if seen { through } else { 0.0 };
            older[r] += logit_grads[r];
        }
    }
    *of_factor.get(0, 0) += of_slope[..block.rows].iter().sum::<f32>();
    let of_products = read(products, n, block.rows);
    let query = steps.queries.rows(block.first, block.rows);
    let scale = steps.scale();
    let of_query = of_queries.rows(block.first, block.rows);
    multiply(of_query, of_products.t(), steps.keys.rows(0, n), scale, Add::Accumulate);
    multiply(of_keys.rows(0, n), of_products, query, scale, Add::Accumulate);
}

//! Bias proportional to the distance, with a price per unit of distance set by the key, the query
//! or both.

use crate::kernels::cpu::distance::row_positions;
use crate::kernels::cpu::problem::{Block, Head};
use crate::kernels::cpu::reduce::Grads;
use crate::kernels::operands::Slot;
use crate::math::lanes::Lanes;

/// Adds the priced distances to `out`, if there are prices.
#[inline(always)]
pub(super) fn add<const R: usize>(head: &Head<'_>, block: &Block<R>, out: &mut [Lanes<R>]) {
    let (keys, queries) =
        (head.optional(Slot::TokenPriceKeys), head.optional(Slot::TokenPriceQueries));
    if keys.is_none() && queries.is_none() {
        return;
    }
    let rows = row_positions(head, block);
    let mut by_query = [0.0; R];
    if let Some(queries) = queries {
        for (r, by_query) in by_query.iter_mut().enumerate().take(block.rows) {
            *by_query = queries.at(block.first + r, 0);
        }
    }
    for (j, out) in out[..block.columns].iter_mut().enumerate() {
        let by_key = keys.map_or(0.0, |keys| keys.at(j, 0));
        let column = head.spec.relative_position(j);
        for r in 0..R {
            out[r] += (rows[r] - column) * (by_key + by_query[r]);
        }
    }
}

/// Adds the gradients of the prices, computed from those of the logits.
#[inline(always)]
pub(super) fn backward<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    logit_grads: &[Lanes<R>],
    grads: &mut Grads<'_>,
) {
    let slots = [Slot::TokenPriceKeys, Slot::TokenPriceQueries];
    if slots.iter().all(|slot| grads.get(*slot).is_none()) {
        return;
    }
    let rows = row_positions(head, block);
    let mut of_queries = [0.0; R];
    for (j, logit_grads) in logit_grads[..block.columns].iter().enumerate() {
        let column = head.spec.relative_position(j);
        let mut of_key = [0.0; R];
        for r in 0..R {
            of_key[r] = logit_grads[r] * (rows[r] - column);
            of_queries[r] += of_key[r];
        }
        if let Some(keys) = grads.get(Slot::TokenPriceKeys) {
            *keys.get(j, 0) += of_key[..block.rows].iter().sum::<f32>();
        }
    }
    if let Some(queries) = grads.get(Slot::TokenPriceQueries) {
        for (r, sum) in of_queries.iter().enumerate().take(block.rows) {
            *queries.get(block.first + r, 0) += sum;
        }
    }
}

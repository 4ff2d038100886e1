//! The distance at a price that the key, the query or both set.

use crate::kernels::cpu::distance::row_positions;
use crate::kernels::cpu::form_views::Price;
use crate::kernels::cpu::problem::{Block, Head};
use crate::kernels::cpu::view::MatrixMut;
use crate::math::lanes::Lanes;

/// Gradients of the operands.
#[derive(Debug)]
pub(in crate::kernels::cpu) struct Grads<'a> {
    pub(in crate::kernels::cpu) keys: Option<MatrixMut<'a>>,
    pub(in crate::kernels::cpu) queries: Option<MatrixMut<'a>>,
}

/// Adds the priced distances to `out`.
#[inline(always)]
pub(in crate::kernels::cpu) fn add<const R: usize>(
    head: &Head<'_>,
    price: &Price<'_>,
    block: &Block<R>,
    out: &mut [Lanes<R>],
) {
    let rows = row_positions(head, block);
    let mut by_query = [0.0; R];
    if let Some(queries) = price.queries {
        for (r, by_query) in by_query.iter_mut().enumerate().take(block.rows) {
            *by_query = queries.at(block.first + r, 0);
        }
    }
    for (j, (out, column)) in out[..block.columns].iter_mut().zip(&*head.spec.columns).enumerate() {
        let by_key = price.keys.map_or(0.0, |keys| keys.at(j, 0));
        let column = *column as f32;
        for r in 0..R {
            out[r] += (rows[r] - column) * (by_key + by_query[r]);
        }
    }
}

/// Adds the gradients of the prices, from those of the logits.
#[inline(always)]
pub(in crate::kernels::cpu) fn backward<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    logit_grads: &[Lanes<R>],
    grads: &mut Grads<'_>,
) {
    let rows = row_positions(head, block);
    let mut of_queries = [0.0; R];
    for (j, (logit_grads, column)) in
        logit_grads[..block.columns].iter().zip(&*head.spec.columns).enumerate()
    {
        let column = *column as f32;
        let mut of_key = [0.0; R];
        for r in 0..R {
            of_key[r] = logit_grads[r] * (rows[r] - column);
            of_queries[r] += of_key[r];
        }
        if let Some(keys) = &mut grads.keys {
            *keys.get(j, 0) += of_key[..block.rows].iter().sum::<f32>();
        }
    }
    if let Some(queries) = &mut grads.queries {
        for (r, sum) in of_queries.iter().enumerate().take(block.rows) {
            *queries.get(block.first + r, 0) += sum;
        }
    }
}

//! Checks of decoding with a cache.

use burn::tensor::{Device, Tensor};

use super::Outcome;
use super::passes::{chunk, full_pass};
use crate::attention::LayerCache;
use crate::encoding::{LayerContext, StateContext};
use crate::probe::close::{self, F32_REORDERED, Tolerance, numbers};
use crate::probe::passes::{DIMS, embedded};
use crate::probe::problem::{Problem, tensor3, tensor4};
use crate::{Hooks, Positions, TokenState};

/// Length of the decoding in large chunks, or the encoding's limit: more than a block of the fused engine.
const LONG: usize = 80;

/// Tolerance for running sums over [`LONG`] tokens, whose rounding grows with their size.
const LONG_SUMS: Tolerance = Tolerance { absolute: 1e-3, relative: 1e-3 };

/// Checks that each decoding step equals the rows of the full pass over the tokens so far.
///
/// Some steps lie beyond the training length, where encodings may begin to change.
pub(super) fn decodes_as_full_pass(encoding: &dyn Hooks, device: &Device) -> Outcome {
    let short = DIMS.train_len + 4;
    let long = encoding.max_len().map_or(LONG, |limit| limit.min(LONG));
    if encoding.fixed_keys() {
        fixes_heads_alike(encoding, &Problem::random(2, short, &DIMS, 1), device)?;
    }
    for (tokens, step, tolerance) in
        [(short, 1, F32_REORDERED), (short, 3, F32_REORDERED), (long, 27, LONG_SUMS)]
    {
        let problem = Problem::random(2, tokens, &DIMS, 1);
        let mut cache = LayerCache::default();
        for start in (0..tokens).step_by(step) {
            let end = (start + step).min(tokens);
            let range = start..end;
            let failed = |e: String| {
                format!("decoding in steps of {step}, tokens {start} to {}: {e}", end - 1)
            };
            let whole = Positions::contiguous(0, end);
            let at = Positions::contiguous(start, end - start);
            let expected = full_pass(encoding, &problem, &whole, 1, device);
            let expected = numbers(expected.slice_dim(2, range.clone()));
            let output = chunk(encoding, &problem, &at, range.clone(), 1, Some(&mut cache), device);
            close::compare(&numbers(output), &expected, tolerance)
                .map_err(|e| failed(format!("attention output: {e}")))?;
            let expected = embedded(encoding, &problem, &whole, device).slice_dim(1, range);
            let embedding = numbers(embedded(encoding, &problem, &at, device));
            close::compare(&embedding, &numbers(expected), F32_REORDERED)
                .map_err(|e| failed(format!("embedding: {e}")))?;
        }
    }
    Ok(())
}

/// Checks that the keys of each head are changed as if it were the only one.
fn fixes_heads_alike(encoding: &dyn Hooks, problem: &Problem, device: &Device) -> Outcome {
    let x = tensor3(&problem.x, device);
    let [_batch, tokens, _width] = x.dims();
    let (at, carried) = (Positions::contiguous(0, tokens), TokenState::default());
    let rows = encoding.state(&StateContext { layer: 1, at: &at, x: &x, carried: &carried });
    let ctx = LayerContext { layer: 1, at: &at, rows: &rows, cols: &rows };
    let (q, k) = (tensor4(&problem.q, device), tensor4(&problem.k, device));
    let (_, all) = encoding.transform_qk(q.clone(), k.clone(), &ctx);
    for head in 0..DIMS.heads {
        let of_head = |u: &Tensor<4>| u.clone().slice_dim(1, head..head + 1);
        let (_, alone) = encoding.transform_qk(q.clone(), of_head(&k), &ctx);
        close::compare(&numbers(alone), &numbers(of_head(&all)), F32_REORDERED).map_err(|e| {
            format!(
                "keys of head {head} (counted from 0), transformed without the other heads: {e}"
            )
        })?;
    }
    Ok(())
}

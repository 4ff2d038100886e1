//! Checks of the attention outputs of an encoding.

use burn::tensor::Device;

use crate::encoding::{LayerContext, StateContext};
use crate::probe::close::{self, F32, F32_REORDERED, numbers};
use crate::probe::passes::{DIMS, LayerEngine, TOKENS, chunk_by, embedded};
use crate::probe::problem::{Problem, tensor3, tensor4};
use crate::reference::{ScalarReference, attention};
use crate::testkit::passes::{engines, full_pass, later_entries};
use crate::testkit::{Outcome, build};
use crate::{Combination, Combined, Dims, Hooks, Positions, TokenState};

/// Batch size, tokens and shift of positions: one token, an odd number, an offset, and more tokens
/// than in training.
const SIZES: [(usize, usize, usize); 4] = [(1, 1, 0), (2, TOKENS, 0), (2, TOKENS, 5), (1, 40, 0)];

fn each_size(
    layers: usize,
    mut check: impl FnMut(&Problem, &Positions, usize) -> Outcome,
) -> Outcome {
    for (batch, tokens, shift) in SIZES {
        let problem = Problem::random(batch, tokens, &DIMS, 100 + tokens as u64);
        let at = Positions::contiguous(0, tokens).shifted(shift);
        for index in 0..layers {
            check(&problem, &at, index).map_err(|e| {
                format!(
                    "layer {index} (counted from 0), batch size {batch}, {tokens} tokens, positions from {shift} \
                     on: {e}"
                )
            })?;
        }
    }
    Ok(())
}

fn expect<const D: usize>(what: &str, found: [usize; D], expected: [usize; D]) -> Outcome {
    (found == expected)
        .then_some(())
        .ok_or_else(|| format!("{what} has shape {found:?}, expected {expected:?}"))
}

pub(super) fn shapes(encoding: &Combined, device: &Device) -> Outcome {
    each_size(encoding.layers, |problem, at, index| {
        let (batch, tokens) = (problem.x.len(), at.cols().len());
        let heads = [batch, DIMS.heads, tokens, DIMS.head_dim];
        let x = tensor3(&problem.x, device);
        let (q, k) = (tensor4(&problem.q, device), tensor4(&problem.k, device));
        let carried = TokenState::default();
        let rows = encoding.state(&StateContext { layer: index, at, x: &x, carried: &carried });
        for tensor in &rows.tensors {
            let [b, h, t, _any] = tensor.dims();
            if b != batch || t != tokens || (h != 1 && h != DIMS.heads) {
                return Err(format!(
                    "a tensor of the state has shape {:?}, expected [{batch}, 1 or {}, {tokens}, any]",
                    tensor.dims(),
                    DIMS.heads
                ));
            }
        }
        let ctx = LayerContext { layer: index, at, rows: &rows, cols: &rows };
        let (q, k) = encoding.transform_qk(q, k, &ctx);
        let [_batch, _heads, _tokens, width] = q.dims();
        expect("transformed queries", q.dims(), [batch, DIMS.heads, tokens, width])?;
        expect("transformed keys", k.dims(), q.dims())?;
        if let Some(mixed) = encoding.mixed_values(&ctx) {
            let [_batch, _heads, _tokens, any] = mixed.dims();
            expect("mixed values", mixed.dims(), [batch, DIMS.heads, tokens, any])?;
        }
        let output = full_pass(encoding, problem, at, index, device);
        expect("the output", output.dims(), heads)?;
        let embedding = embedded(encoding, problem, at, device);
        expect("the embedding", embedding.dims(), [batch, tokens, DIMS.width])
    })
}

pub(super) fn finite(encoding: &Combined, device: &Device) -> Outcome {
    each_size(encoding.layers, |problem, at, index| {
        let output = numbers(full_pass(encoding, problem, at, index, device));
        let embedding = numbers(embedded(encoding, problem, at, device));
        for (name, values) in [("attention output", output), ("embedding", embedding)] {
            if let Some((n, value)) = values.iter().enumerate().find(|(_, x)| !x.is_finite()) {
                return Err(format!(
                    "{name}: element {n} (counted from 0) is {value}, expected a finite number"
                ));
            }
        }
        Ok(())
    })
}

pub(in crate::testkit) fn equals_reference(
    encoding: &Combined,
    reference: &dyn ScalarReference,
    device: &Device,
) -> Outcome {
    each_size(encoding.layers, |problem, at, index| {
        equals_on(encoding, reference, problem, at, index, device)
    })?;
    let with_gaps = (0..TOKENS).map(|n| 3 + n + n * n / 7).collect();
    let with_gaps = Positions::new(with_gaps, 0).map_err(|error| error.to_string())?;
    equals_reference_at(encoding, reference, &DIMS, &with_gaps, device)
        .map_err(|e| format!("positions with gaps: {e}"))
}

/// Checks [`equals_reference`] for one sequence at these positions, by an encoding that is built for `dims`.
pub(in crate::testkit) fn equals_reference_at(
    encoding: &Combined,
    reference: &dyn ScalarReference,
    dims: &Dims,
    at: &Positions,
    device: &Device,
) -> Outcome {
    let problem = Problem::random(1, at.cols().len(), dims, 6);
    (0..encoding.layers)
        .try_for_each(|layer| equals_on(encoding, reference, &problem, at, layer, device))
}

fn equals_on(
    encoding: &dyn Hooks,
    reference: &dyn ScalarReference,
    problem: &Problem,
    at: &Positions,
    index: usize,
    device: &Device,
) -> Outcome {
    let mut expected = Vec::new();
    for entry in 0..problem.x.len() {
        let input = problem.scalar(entry, index, at);
        let mixed = attention::mix(&reference.scalar_weights(&input), &input.v);
        expected.extend(mixed.into_iter().flatten().flatten());
    }
    for engine in engines(device) {
        let place = LayerEngine { layer: index, engine };
        let range = 0..at.cols().len();
        let output = chunk_by(encoding, problem, at, range, place, None, device);
        close::compare(&numbers(output), &expected, F32)
            .map_err(|e| format!("attention output of the {} engine: {e}", engine.id()))?;
    }
    let sequences = problem.x.iter().zip(&problem.tokens);
    let expected =
        sequences.flat_map(|(x, ids)| reference.scalar_embed(x, ids, at.cols())).flatten();
    let embedding = numbers(embedded(encoding, problem, at, device));
    close::compare(&embedding, &expected.collect::<Vec<_>>(), F32)
        .map_err(|e| format!("embedding: {e}"))
}

/// Seeds of the later tokens that [`causal`] puts in place of the first ones.
const OTHER_ENDINGS: std::ops::RangeInclusive<u64> = 3..=8;

pub(super) fn causal(encoding: &dyn Hooks, device: &Device) -> Outcome {
    let at = Positions::contiguous(0, TOKENS);
    let problem = Problem::random(1, TOKENS, &DIMS, 2);
    let changed_at = 7;
    let split = |problem: &Problem| {
        let output = full_pass(encoding, problem, &at, 0, device);
        let embedding = embedded(encoding, problem, &at, device);
        let mut before = numbers(output.clone().slice_dim(2, 0..changed_at));
        before.extend(numbers(embedding.slice_dim(1, 0..changed_at)));
        (before, numbers(output.slice_dim(2, changed_at..TOKENS)))
    };
    let (before, after) = split(&problem);
    for seed in OTHER_ENDINGS {
        let other = Problem::random(1, TOKENS, &DIMS, seed);
        let mut changed = problem.clone();
        for h in 0..DIMS.heads {
            changed.q[0][h][changed_at..].clone_from_slice(&other.q[0][h][changed_at..]);
            changed.k[0][h][changed_at..].clone_from_slice(&other.k[0][h][changed_at..]);
            changed.v[0][h][changed_at..].clone_from_slice(&other.v[0][h][changed_at..]);
        }
        changed.x[0][changed_at..].clone_from_slice(&other.x[0][changed_at..]);
        changed.tokens[0][changed_at..].clone_from_slice(&other.tokens[0][changed_at..]);
        let (before_changed, after_changed) = split(&changed);
        if before != before_changed {
            return Err(format!(
                "an output or embedding before position {changed_at} changed when the tokens from there on \
                 were replaced"
            ));
        }
        if after == after_changed {
            return Err(format!(
                "no output from position {changed_at} on changed when the tokens from there on were replaced"
            ));
        }
    }
    Ok(())
}

pub(super) fn batch_independent(encoding: &dyn Hooks, device: &Device) -> Outcome {
    let at = Positions::contiguous(0, TOKENS);
    let both = Problem::random(2, TOKENS, &DIMS, 4);
    let second = later_entries(&both, 1);
    let alone = numbers(full_pass(encoding, &second, &at, 0, device));
    let together = numbers(full_pass(encoding, &both, &at, 0, device).slice_dim(0, 1..2));
    let differs = |name: &str, e: String| {
        format!(
            "{name} of the second sequence in a batch of two, compared with this sequence alone: {e}"
        )
    };
    close::compare(&together, &alone, F32_REORDERED).map_err(|e| differs("attention output", e))?;
    let alone = numbers(embedded(encoding, &second, &at, device));
    let together = numbers(embedded(encoding, &both, &at, device).slice_dim(0, 1..2));
    close::compare(&together, &alone, F32_REORDERED).map_err(|e| differs("embedding", e))
}

pub(super) fn reproducible(config: &Combination, device: &Device) -> Outcome {
    let problem = Problem::random(1, TOKENS, &DIMS, 9);
    let at = Positions::contiguous(0, TOKENS);
    let run = || -> Result<_, String> {
        let encoding = build(config, 21, device)?;
        let output = numbers(full_pass(&encoding, &problem, &at, 0, device));
        Ok((output, numbers(embedded(&encoding, &problem, &at, device))))
    };
    (run()? == run()?)
        .then_some(())
        .ok_or_else(|| "two runs with the same seed gave different bits".to_owned())
}

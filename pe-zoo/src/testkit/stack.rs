//! Checks over a stack of layers: state is carried from layer to layer, and the feed-forward block
//! of each layer has an arbitrary but fixed output.

use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::passes::{engines, later_entries};
use super::{Outcome, dims};
use crate::attention::{Engine, LayerCache, LayerInput, Weights, layer};
use crate::encoding::Update;
use crate::probe::close::{self, F32, F32_REORDERED, numbers};
use crate::probe::passes::DIMS;
use crate::probe::problem::{Problem, tensor3, tensor4};
use crate::probe::randomise_by;
use crate::reference::{Heads, NoEffect, ScalarLayer, ScalarReference, Tokens, attention};
use crate::{Combination, Combined, Dims, Hooks, Positions, TokenState};

/// Sizes of the kit with at least three layers, so that a layer lies between the first and the last.
fn deep(config: &Combination) -> Dims {
    let dims = dims(config);
    Dims { layers: dims.layers.max(3), ..dims }
}

const TOKENS: usize = 13;

/// Standard deviation of random parameters. With larger ones, state that is updated three times
/// makes logits so large that f32 and f64 differ by more than rounding.
const STD: f64 = 0.2;

/// Random layers: attention problems with the outputs of their feed-forward blocks.
#[derive(Debug, Clone)]
pub(super) struct Stack {
    layers: Vec<(Problem, Vec<Tokens>)>,
}

/// Result of a pass through a stack of layers.
pub(super) struct StackOutput {
    /// Attention output of each layer, `[B, H, T, D]`.
    pub(super) outputs: Vec<Tensor<4>>,
    /// State of the tokens of the last pass after the last layer.
    pub(super) carried: TokenState,
}

impl Stack {
    pub(super) fn random(batch: usize, tokens: usize, dims: &Dims, seed: u64) -> Self {
        let layers = (0..dims.layers as u64)
            .map(|index| {
                let problem = Problem::random(batch, tokens, dims, seed + 2 * index);
                (problem, Problem::random(batch, tokens, dims, seed + 2 * index + 1).x)
            })
            .collect();
        Self { layers }
    }

    /// Runs the tokens through all layers, `step` at a time with a cache, by the fastest engine.
    pub(super) fn run(
        &self,
        encoding: &dyn Hooks,
        whole: &Positions,
        step: usize,
        device: &Device,
    ) -> StackOutput {
        self.run_by(Engine::best(device), encoding, whole, step, device)
    }

    fn run_by(
        &self,
        engine: Engine,
        encoding: &dyn Hooks,
        whole: &Positions,
        step: usize,
        device: &Device,
    ) -> StackOutput {
        let tokens = whole.cols().len();
        let mut caches = vec![LayerCache::default(); self.layers.len()];
        let mut outputs = vec![Vec::new(); self.layers.len()];
        let mut carried = TokenState::default();
        for start in (0..tokens).step_by(step) {
            let end = (start + step).min(tokens);
            let at = Positions::new(whole.cols()[..end].to_vec(), start).expect("ascending ones");
            let at = at.in_steps(whole.steps());
            carried = TokenState::default();
            for (index, (problem, feed_forward)) in self.layers.iter().enumerate() {
                let part = |heads: &[Heads]| tensor4(heads, device).slice_dim(2, start..end);
                let x = tensor3(&problem.x, device).slice_dim(1, start..end);
                let input = LayerInput {
                    engine,
                    ..LayerInput::new(
                        index,
                        &at,
                        &x,
                        [&problem.q, &problem.k, &problem.v].map(|heads| part(heads)),
                        &carried,
                    )
                };
                let cache = (step < tokens).then_some(&mut caches[index]);
                let output = layer(encoding, input, cache, Weights::Drop);
                let x = tensor3(feed_forward, device).slice_dim(1, start..end);
                carried = encoding.update(output.carried, index, Update::FeedForward(&x));
                outputs[index].push(output.output);
            }
        }
        let outputs = outputs.into_iter().map(|parts| Tensor::cat(parts, 2)).collect();
        StackOutput { outputs, carried }
    }

    /// All outputs of one full pass, concatenated.
    #[cfg(test)]
    pub(super) fn full_pass(
        &self,
        encoding: &dyn Hooks,
        at: &Positions,
        device: &Device,
    ) -> Vec<f64> {
        let outputs = self.run(encoding, at, at.cols().len(), device).outputs;
        outputs.into_iter().flat_map(numbers).collect()
    }

    /// All outputs of the scalar reference, in the order of [`full_pass`](Self::full_pass).
    pub(super) fn scalar(&self, encoding: &dyn ScalarReference, at: &Positions) -> Vec<f64> {
        let batch = self.layers[0].0.x.len();
        let mut by_layer = vec![Vec::new(); self.layers.len()];
        for entry in 0..batch {
            let layers = self
                .layers
                .iter()
                .enumerate()
                .map(|(index, (problem, feed_forward))| ScalarLayer {
                    input: problem.scalar(entry, index, at),
                    feed_forward: feed_forward[entry].clone(),
                })
                .collect::<Vec<_>>();
            for (index, weights) in encoding.scalar_stack(&layers).iter().enumerate() {
                let mixed = attention::mix(weights, &layers[index].input.v);
                by_layer[index].extend(mixed.into_iter().flatten().flatten());
            }
        }
        by_layer.into_iter().flatten().collect()
    }
}

/// Builds the encoding with random parameters small enough for a stack.
pub(super) fn built(
    config: &Combination,
    dims: &Dims,
    device: &Device,
) -> Result<Combined, String> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let encoding = config.init(dims, &mut rng, device);
    Ok(randomise_by(STD, encoding.map_err(|error| error.to_string())?, 11))
}

fn within(outcome: Outcome) -> Outcome {
    outcome.map_err(|found| format!("stack of layers: {found}"))
}

/// Checks that the outputs of a stack equal those of the scalar reference, which the encoding must
/// have.
pub(super) fn equals_reference(config: &Combination, device: &Device) -> Outcome {
    let encoding = &built(config, &deep(config), device)?;
    let reference = encoding.reference().ok_or("no scalar reference")?;
    equals(encoding, reference, device)
}

/// Checks that the outputs of a stack equal those without a position encoding.
pub(super) fn equals_no_effect(config: &Combination, device: &Device) -> Outcome {
    equals(&built(config, &deep(config), device)?, &NoEffect, device)
}

fn equals(encoding: &Combined, reference: &dyn ScalarReference, device: &Device) -> Outcome {
    for (batch, tokens, shift) in [(1, 1, 0), (2, TOKENS, 0), (1, TOKENS, 5)] {
        let stack = Stack::random(
            batch,
            tokens,
            &Dims { layers: encoding.layers, ..DIMS },
            200 + tokens as u64,
        );
        let at = Positions::contiguous(0, tokens).shifted(shift);
        let expected = stack.scalar(reference, &at);
        for engine in engines(device) {
            let outputs = stack.run_by(engine, encoding, &at, tokens, device).outputs;
            let actual = outputs.into_iter().flat_map(numbers).collect::<Vec<_>>();
            within(close::compare(&actual, &expected, F32).map_err(|e| {
                let engine = engine.id();
                format!(
                    "attention outputs of the {engine} engine, batch size {batch}, {tokens} tokens, positions \
                     from {shift} on: {e}"
                )
            }))?;
        }
    }
    Ok(())
}

/// Checks that each decoding step gives every layer the outputs of the full pass over the tokens so
/// far.
pub(super) fn decodes_as_full_pass(config: &Combination, device: &Device) -> Outcome {
    let encoding = &built(config, &deep(config), device)?;
    let stack = Stack::random(2, TOKENS, &Dims { layers: encoding.layers, ..DIMS }, 210);
    let at = Positions::contiguous(0, TOKENS);
    for step in [1, 3] {
        let decoded = stack.run(encoding, &at, step, device).outputs;
        for start in (0..TOKENS).step_by(step) {
            let end = (start + step).min(TOKENS);
            let whole = Positions::contiguous(0, end);
            let expected = stack.run(encoding, &whole, end, device).outputs;
            let rows = |outputs: &[Tensor<4>]| {
                let rows = outputs.iter().map(|layer| layer.clone().slice_dim(2, start..end));
                rows.flat_map(numbers).collect::<Vec<_>>()
            };
            let same = close::compare(&rows(&decoded), &rows(&expected), F32_REORDERED);
            within(same.map_err(|e| {
                format!(
                    "decoding in steps of {step}, attention outputs of tokens {start} to {}: {e}",
                    end - 1
                )
            }))?;
        }
    }
    Ok(())
}

pub(super) fn causal(config: &Combination, device: &Device) -> Outcome {
    const CHANGED: usize = 7;
    let encoding = &built(config, &deep(config), device)?;
    let at = Positions::contiguous(0, TOKENS);
    let stack = Stack::random(1, TOKENS, &Dims { layers: encoding.layers, ..DIMS }, 220);
    let other = Stack::random(1, TOKENS, &Dims { layers: encoding.layers, ..DIMS }, 230);
    let mut changed = stack.clone();
    for ((to, to_x), (from, from_x)) in changed.layers.iter_mut().zip(&other.layers) {
        for h in 0..DIMS.heads {
            to.q[0][h][CHANGED].clone_from(&from.q[0][h][CHANGED]);
            to.k[0][h][CHANGED].clone_from(&from.k[0][h][CHANGED]);
            to.v[0][h][CHANGED].clone_from(&from.v[0][h][CHANGED]);
        }
        to.x[0][CHANGED].clone_from(&from.x[0][CHANGED]);
        to_x[0][CHANGED].clone_from(&from_x[0][CHANGED]);
    }
    let before = |stack: &Stack| {
        let outputs = stack.run(encoding, &at, TOKENS, device).outputs;
        outputs.into_iter().map(|o| numbers(o.slice_dim(2, 0..CHANGED))).collect::<Vec<_>>()
    };
    let moved = before(&stack).into_iter().zip(before(&changed)).position(|(a, b)| a != b);
    match moved {
        Some(index) => within(Err(format!(
            "an output of layer {index} (counted from 0) before position {CHANGED} changed when the token there was \
             replaced"
        ))),
        None => Ok(()),
    }
}

/// Checks that no layer's outputs of a sequence depend on the other sequence of its batch.
pub(super) fn batch_independent(config: &Combination, device: &Device) -> Outcome {
    let encoding = &built(config, &deep(config), device)?;
    let at = Positions::contiguous(0, TOKENS);
    let both = Stack::random(2, TOKENS, &Dims { layers: encoding.layers, ..DIMS }, 240);
    let second =
        both.layers.iter().map(|(problem, x)| (later_entries(problem, 1), x[1..].to_vec()));
    let second = Stack { layers: second.collect() };
    let together = both.run(encoding, &at, TOKENS, device).outputs;
    let alone = second.run(encoding, &at, TOKENS, device).outputs;
    for (index, (together, alone)) in together.into_iter().zip(alone).enumerate() {
        let together = numbers(together.slice_dim(0, 1..2));
        within(
            close::compare(&together, &numbers(alone), F32_REORDERED)
                .map_err(|e| {
                    format!(
                        "outputs of layer {index} (counted from 0) for the second sequence in a batch of two, compared \
                         with this sequence alone: {e}"
                    )
                }),
        )?;
    }
    Ok(())
}

/// Sum of the squares of all outputs and of the final state, to which every parameter read by any
/// layer contributes.
pub(super) fn loss(encoding: &Combined, at: &Positions, device: &Device) -> Tensor<1> {
    let tokens = at.cols().len();
    let StackOutput { outputs, carried } =
        Stack::random(2, tokens, &Dims { layers: encoding.layers, ..DIMS }, 250)
            .run(encoding, at, tokens, device);
    let outputs = outputs.into_iter().chain(carried.tensors);
    outputs
        .map(|tensor| tensor.powf_scalar(2.0).sum())
        .fold(Tensor::zeros([1], device), Tensor::add)
}

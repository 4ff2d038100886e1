//! Comparison of the fused engine with the reference engine.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};

use crate::attention::{Engine, LayerInput, Weights, layer};
use crate::encoding::Update;
use crate::probe::close::{self, Tolerance, numbers};
use crate::probe::passes::{DIMS, TOKENS};
use crate::probe::problem::{Problem, tensor3, tensor4};
use crate::testkit::stack::built;
use crate::testkit::{Outcome, dims};
use crate::{Combination, Combined, Hooks, Positions, TokenState};

/// Batch size, tokens and shift of positions: one case with an offset, one with more tokens than a
/// block of the fused engine.
const SIZES: [(usize, usize, usize); 2] = [(2, TOKENS, 5), (1, 64, 0)];

/// Tolerance for two orders of f32 sums, relative to the largest number of the tensor.
const PART: Tolerance = Tolerance { absolute: 2e-5, relative: 1e-4 };

/// Lower bound of the scale that differences are divided by: gradients whose true value is 0 are
/// rounding errors of sums of terms near 1.
const LEAST: f64 = 1.0;

/// Outputs and gradients through all layers, by name.
type EngineResults = Vec<(String, Vec<f64>)>;

/// Checks that the outputs of every layer and the gradients of queries, keys, values, layer inputs
/// and parameters equal those of the reference engine.
pub(in crate::testkit) fn engines_agree(config: &Combination, device: &Device) -> Outcome {
    let device = device.clone().autodiff();
    let encoding = built(config, &dims(config), &device)?;
    for (batch, tokens, shift) in SIZES {
        let problem = Problem::random(batch, tokens, &DIMS, 300 + tokens as u64);
        let at = Positions::contiguous(0, tokens).shifted(shift);
        let run = |engine| through(&encoding, &problem, &at, engine, &device);
        let (fused, reference) = (run(Engine::Fused)?, run(Engine::Reference)?);
        for ((name, fused), (_, reference)) in fused.iter().zip(&reference) {
            let largest = reference.iter().fold(LEAST, |largest, x| largest.max(x.abs()));
            let part = |values: &[f64]| values.iter().map(|x| x / largest).collect::<Vec<_>>();
            close::compare(&part(fused), &part(reference), PART).map_err(|e| {
                format!(
                    "{name}, batch size {batch}, {tokens} tokens, fused engine compared with reference engine, both \
                     divided by {largest:e}: {e}"
                )
            })?;
        }
    }
    Ok(())
}

fn through(
    encoding: &Combined,
    problem: &Problem,
    at: &Positions,
    engine: Engine,
    device: &Device,
) -> Result<EngineResults, String> {
    let leaf = |heads| tensor4(heads, device).require_grad();
    let [q, k, v] = [&problem.q, &problem.k, &problem.v].map(|heads| leaf(heads));
    let x = tensor3(&problem.x, device).require_grad();
    let mut carried = TokenState::default();
    let (mut found, mut loss) = (Vec::new(), Tensor::<1>::zeros([1], device));
    for index in 0..encoding.layers {
        let input = LayerInput {
            engine,
            ..LayerInput::new(index, at, &x, [q.clone(), k.clone(), v.clone()], &carried)
        };
        let output = layer(encoding, input, None, Weights::Drop);
        found.push((
            format!("output of layer {index} (counted from 0)"),
            numbers(output.output.clone()),
        ));
        loss = loss + weighted(output.output);
        carried = encoding.update(output.carried, index, Update::FeedForward(&x));
    }
    for tensor in carried.tensors {
        loss = loss + weighted(tensor);
    }
    let grads = loss.backward();
    for (name, tensor) in [("queries", &q), ("keys", &k), ("values", &v)] {
        let grad = tensor.grad(&grads).ok_or_else(|| format!("{name} get no gradient"))?;
        found.push((format!("gradient of {name}"), numbers(grad)));
    }
    // Layer inputs may have no gradient of their own.
    found.extend(x.grad(&grads).map(|grad| ("gradient of layer inputs".to_owned(), numbers(grad))));
    let mut visitor = Parameters { grads: &grads, seen: 0, found };
    encoding.visit(&mut visitor);
    Ok(visitor.found)
}

/// Sum in which every number has a different weight, so that errors do not cancel.
fn weighted(tensor: Tensor<4>) -> Tensor<1> {
    let shape = tensor.dims();
    let weights = (0..shape.iter().product())
        .map(|i: usize| (1.0 + 2.3 * i as f64).sin() as f32)
        .collect::<Vec<_>>();
    let weights = Tensor::<1>::from_data(weights.as_slice(), &tensor.device());
    (tensor * weights.reshape(shape)).sum()
}

struct Parameters<'a> {
    grads: &'a Gradients,
    seen: usize,
    found: EngineResults,
}

impl ModuleVisitor for Parameters<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let name = format!("gradient of parameter {} (counted from 0)", self.seen);
        self.seen += 1;
        self.found.extend(param.val().grad(self.grads).map(|grad| (name, numbers(grad))));
    }
}

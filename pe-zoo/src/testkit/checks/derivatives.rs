//! Checks of gradients: their presence and their values.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

use crate::attention::{LayerInput, Weights, layer};
use crate::encoding::EmbedContext;
use crate::probe::close::{self, DERIVATIVE, DERIVATIVE_STEP, numbers};
use crate::probe::passes::{DIMS, embedded};
use crate::probe::problem::{Problem, ids, tensor3, tensor4};
use crate::reference::{ScalarInput, ScalarReference, Tokens, attention};
use crate::testkit::Outcome;
use crate::testkit::random;
use crate::testkit::stack;
use crate::{Combination, Combined, Hooks, Positions, TokenState};

/// Checks that every parameter gets a finite gradient that is not zero everywhere.
pub(super) fn present(config: &Combination, device: &Device) -> Outcome {
    let device = device.clone().autodiff();
    let encoding = random(config, &device)?;
    if encoding.num_params() == 0 {
        return Ok(());
    }
    // The problem is as long as the longest sequence, so that every row of every table is used.
    let problem = Problem::random(2, DIMS.max_len, &DIMS, 8);
    let at = Positions::contiguous(0, DIMS.max_len);
    let loss = embedded(&encoding, &problem, &at, &device).powf_scalar(2.0).sum()
        + stack::loss(&encoding, &at, &device);
    let grads = loss.backward();
    let mut visitor = Present { grads: &grads, found: Vec::new() };
    encoding.visit(&mut visitor);
    if visitor.found.is_empty() { Ok(()) } else { Err(visitor.found.join("; ")) }
}

struct Present<'a> {
    grads: &'a Gradients,
    found: Vec<String>,
}

impl ModuleVisitor for Present<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = param.val().dims();
        let Some(grad) = param.val().grad(self.grads) else {
            self.found.push(format!("a parameter of shape {shape:?} gets no gradient"));
            return;
        };
        let values = numbers(grad);
        if values.iter().any(|g| !g.is_finite()) {
            self.found
                .push(format!("the gradient of a parameter of shape {shape:?} is not finite"));
        } else if values.iter().all(|g| *g == 0.0) {
            self.found
                .push(format!("the gradient of a parameter of shape {shape:?} is zero everywhere"));
        }
    }
}

/// Number of tokens; small, because scalar loops are slow.
const TOKENS: usize = 7;

/// Number of entries tested in each tensor.
const TRIED: usize = 7;

/// Loss that weights every output by a fixed number, so that errors do not cancel.
pub(in crate::testkit) struct WeightedLoss {
    pub(in crate::testkit) problem: Problem,
    pub(in crate::testkit) at: Positions,
    /// Weights of the output of a layer, `[H T D]`.
    pub(in crate::testkit) output: Vec<f64>,
    /// Weights of the embeddings, `[T C]`.
    pub(in crate::testkit) embedding: Vec<f64>,
}

impl WeightedLoss {
    /// Loss of a random problem of `tokens` tokens.
    pub(in crate::testkit) fn new(tokens: usize, seed: u64) -> Self {
        let weights = |n: usize| (0..n).map(|i| (1.0 + 2.3 * i as f64).sin()).collect();
        Self {
            problem: Problem::random(1, tokens, &DIMS, seed),
            at: Positions::contiguous(0, tokens),
            output: weights(DIMS.heads * tokens * DIMS.head_dim),
            embedding: weights(tokens * DIMS.width),
        }
    }

    /// Loss of the scalar reference.
    pub(in crate::testkit) fn scalar(&self, encoding: &Combined, input: &ScalarInput) -> f64 {
        let mut loss = 0.0;
        let layers = encoding.layers;
        let encoding = reference(encoding);
        for layer in 0..layers {
            let input = ScalarInput { layer, ..input.clone() };
            let mixed = attention::mix(&encoding.scalar_weights(&input), &input.v);
            let values = mixed.iter().flatten().flatten();
            loss += values.zip(&self.output).map(|(a, b)| a * b).sum::<f64>();
        }
        let embedded: Tokens =
            encoding.scalar_embed(&input.x, &self.problem.tokens[0], self.at.cols());
        loss + embedded.iter().flatten().zip(&self.embedding).map(|(a, b)| a * b).sum::<f64>()
    }

    /// Loss of the engine, with gradients of queries, keys, values, layer inputs and parameters.
    pub(in crate::testkit) fn engine(
        &self,
        encoding: &Combined,
        device: &Device,
    ) -> Result<LossGradients, String> {
        let tensor = |heads| tensor4(heads, device).require_grad();
        let [q, k, v] = [&self.problem.q, &self.problem.k, &self.problem.v].map(|h| tensor(h));
        let x = tensor3(&self.problem.x, device).require_grad();
        let weights = |values: &[f64]| {
            let values = values.iter().map(|x| *x as f32).collect::<Vec<_>>();
            Tensor::<1>::from_data(values.as_slice(), device)
        };
        let ids = ids(&self.problem.tokens, device);
        let context = EmbedContext { at: &self.at, tokens: &ids };
        let embedding = encoding.embed(x.clone(), &context);
        let shape = embedding.dims();
        let mut loss = (embedding * weights(&self.embedding).reshape(shape)).sum();
        for index in 0..encoding.layers {
            let carried = TokenState::default();
            let input =
                LayerInput::new(index, &self.at, &x, [q.clone(), k.clone(), v.clone()], &carried);
            let output = layer(encoding, input, None, Weights::Drop).output;
            let shape = output.dims();
            loss = loss + (output * weights(&self.output).reshape(shape)).sum();
        }
        let grads = loss.backward();
        let heads = [("queries", q), ("keys", k), ("values", v)];
        let mut inputs = Vec::new();
        for (name, tensor) in heads {
            let grad = tensor.grad(&grads).ok_or_else(|| format!("{name} get no gradient"))?;
            inputs.push((name, numbers(grad)));
        }
        // Layer inputs may have no gradient of their own.
        let x = x.grad(&grads).map_or_else(|| vec![0.0; self.embedding.len()], numbers);
        inputs.push(("layer inputs", x));
        let mut visitor = Flat { grads: &grads, tensors: Vec::new() };
        encoding.visit(&mut visitor);
        Ok(LossGradients { inputs, parameters: visitor.tensors })
    }
}

pub(in crate::testkit) struct LossGradients {
    pub(in crate::testkit) inputs: Vec<(&'static str, Vec<f64>)>,
    /// Gradients of each parameter, in the order of a visit.
    pub(in crate::testkit) parameters: Vec<Vec<f64>>,
}

/// Checks that gradients equal central differences of the scalar reference; `None` if there is no
/// reference.
pub(super) fn values(config: &Combination, device: &Device) -> Option<Outcome> {
    let device = device.clone().autodiff();
    let encoding = match random(config, &device) {
        Ok(encoding) => encoding,
        Err(found) => return Some(Err(found)),
    };
    encoding.reference()?;
    let differences = Differences::of(encoding, WeightedLoss::new(TOKENS, 20));
    Some(differences.and_then(|differences| differences.agree(&device)))
}

/// The reference of an encoding that has one.
fn reference(encoding: &Combined) -> &dyn ScalarReference {
    encoding.reference().expect("only encodings with a reference are differentiated")
}

/// Central differences of the scalar reference of an encoding.
pub(in crate::testkit) struct Differences {
    /// The encoding, with parameters at which it has derivatives.
    pub(in crate::testkit) encoding: Combined,
    pub(in crate::testkit) loss: WeightedLoss,
}

impl Differences {
    /// Differences of the loss under an encoding that has a reference.
    pub(in crate::testkit) fn of(encoding: Combined, loss: WeightedLoss) -> Result<Self, String> {
        differentiable(encoding).map(|encoding| Self { encoding, loss })
    }

    pub(in crate::testkit) fn reference(&self) -> &dyn ScalarReference {
        reference(&self.encoding)
    }

    /// Derivative of the loss by one entry of the queries, keys, values or layer inputs.
    pub(in crate::testkit) fn input(&self, input: &ScalarInput, name: &str, entry: usize) -> f64 {
        let moved = |by: f64| {
            let mut input = input.clone();
            *entry_of(&mut input, name, entry) += by;
            self.loss.scalar(&self.encoding, &input)
        };
        (moved(DERIVATIVE_STEP) - moved(-DERIVATIVE_STEP)) / (2.0 * DERIVATIVE_STEP)
    }

    /// Derivative of the loss by one entry of a parameter. Parameters are f32, so the difference is divided by the step as
    /// rounded to f32.
    pub(in crate::testkit) fn parameter(
        &self,
        input: &ScalarInput,
        index: usize,
        entry: usize,
    ) -> f64 {
        let moved = |by: f64| {
            let mut mover = Mover { index, entry, by, seen: 0, value: 0.0 };
            let moved = self.encoding.clone().map(&mut mover);
            (self.loss.scalar(&moved, input), mover.value)
        };
        let ((above, high), (below, low)) = (moved(DERIVATIVE_STEP), moved(-DERIVATIVE_STEP));
        (above - below) / (high - low)
    }

    /// Compares the gradients of the engine with the differences, at some entries of each tensor.
    fn agree(&self, device: &Device) -> Outcome {
        let slopes = self.loss.engine(&self.encoding, device)?;
        let input = self.loss.problem.scalar(0, 0, &self.loss.at);
        for (name, gradient) in &slopes.inputs {
            for entry in entries(gradient.len()) {
                let difference = self.input(&input, name, entry);
                close::compare_one(gradient[entry], difference, DERIVATIVE).map_err(|e| {
                    format!("gradient of {name}: element {entry} (counted from 0) is {e}")
                })?;
            }
        }
        for (index, gradient) in slopes.parameters.iter().enumerate() {
            for entry in entries(gradient.len()) {
                let difference = self.parameter(&input, index, entry);
                close::compare_one(gradient[entry], difference, DERIVATIVE).map_err(|e| {
                    format!("gradient of parameter {index}: element {entry} is {e} (both counted from 0)")
                })?;
            }
        }
        Ok(())
    }
}

/// Returns the encoding after changing parameters (halving or negating them) at which the gradient
/// deliberately is not the derivative.
fn differentiable(encoding: Combined) -> Result<Combined, String> {
    let truth = encoding.clone();
    let mut settler = Settler { truth: reference(&truth), parameter: 0, found: None };
    let encoding = encoding.map(&mut settler);
    settler.found.map_or(Ok(encoding), Err)
}

struct Settler<'a> {
    truth: &'a dyn ScalarReference,
    parameter: usize,
    found: Option<String>,
}

impl ModuleMapper for Settler<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let parameter = self.parameter;
        self.parameter += 1;
        let differentiable = |value: f64| self.truth.differentiable_at(parameter, value);
        let mut values = numbers(param.val());
        let wrong = |values: &[f64]| values.iter().find(|x| !differentiable(**x)).copied();
        if wrong(&values).is_none() {
            return param;
        }
        for value in &mut values {
            let elsewhere = [*value, -*value, *value + 0.5, *value - 0.5];
            *value = elsewhere.into_iter().find(|x| differentiable(*x)).unwrap_or(*value);
        }
        if let Some(value) = wrong(&values) {
            self.found = Some(format!(
                "the loss has no derivative at the value {value} of parameter {parameter} (counted from 0), nor near it"
            ));
        }
        param.map(|tensor| {
            let (shape, device) = (tensor.dims(), tensor.device());
            let values = values.into_iter().map(|x| x as f32).collect::<Vec<_>>();
            Tensor::from_data(TensorData::new(values, shape), &device).require_grad()
        })
    }
}

/// Indices of some entries of a tensor, spread evenly over it.
fn entries(len: usize) -> impl Iterator<Item = usize> {
    let tried = len.min(TRIED);
    (0..tried).map(move |n| (n * len + len / 2) / tried.max(1)).map(move |n| n.min(len - 1))
}

fn entry_of<'a>(input: &'a mut ScalarInput, name: &str, entry: usize) -> &'a mut f64 {
    let per_head = input.v[0].len() * DIMS.head_dim;
    let (h, t, d) = (entry / per_head, entry % per_head / DIMS.head_dim, entry % DIMS.head_dim);
    match name {
        "queries" => &mut input.q[h][t][d],
        "keys" => &mut input.k[h][t][d],
        "values" => &mut input.v[h][t][d],
        _ => &mut input.x[entry / DIMS.width][entry % DIMS.width],
    }
}

struct Flat<'a> {
    grads: &'a Gradients,
    tensors: Vec<Vec<f64>>,
}

impl ModuleVisitor for Flat<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let param = param.val();
        let zeros = vec![0.0; param.shape().num_elements()];
        self.tensors.push(param.grad(self.grads).map_or(zeros, numbers));
    }
}

/// Mapper that changes one entry of one parameter and records its new value.
struct Mover {
    index: usize,
    entry: usize,
    by: f64,
    seen: usize,
    value: f64,
}

impl ModuleMapper for Mover {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let here = self.seen == self.index;
        self.seen += 1;
        if !here {
            return param;
        }
        param.map(|tensor| {
            let (shape, device) = (tensor.dims(), tensor.device());
            let mut values = numbers(tensor).into_iter().map(|x| x as f32).collect::<Vec<_>>();
            values[self.entry] = (f64::from(values[self.entry]) + self.by) as f32;
            self.value = f64::from(values[self.entry]);
            Tensor::from_data(TensorData::new(values, shape), &device)
        })
    }
}

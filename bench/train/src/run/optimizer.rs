//! AdamW with clipping by the global norm, its moments, and the parameter group of biases and slopes.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use pe_zoo::ops::{AdamW, AdamWSteps, Moments};

use crate::experiment::OptimizerConfig;
use crate::weights::{AutodiffRole, Extras};

/// AdamW optimizer with the moments of each parameter.
#[derive(Debug, Default)]
pub struct Optimizer {
    moments: BTreeMap<ParamId, Box<dyn Any + Send>>,
    steps: u32,
}

impl Optimizer {
    /// Optimizer after `steps` steps, without moments; [`Extras::put`] sets them.
    pub(crate) fn after(steps: u32) -> Self {
        Self { moments: BTreeMap::new(), steps }
    }

    /// Number of steps taken.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// Updates every parameter that has a gradient, in place if its tensor is not shared. `biases` are the parameters
    /// with `bias_rate` times the learning rate and without weight decay.
    pub fn step<M: Module>(
        &mut self,
        model: M,
        grads: GradientsParams,
        config: &OptimizerConfig,
        learning_rate: f64,
        biases: &BTreeSet<ParamId>,
    ) -> M {
        self.steps += 1;
        let grad_scale = match config.clip_norm {
            Some(limit) => (limit / global_norm(&grads, &model)).min(1.0),
            None => 1.0,
        };
        let step = AdamW {
            learning_rate,
            betas: config.betas,
            epsilon: config.epsilon,
            weight_decay: config.weight_decay,
            grad_scale,
            step: self.steps,
        };
        let on_biases =
            AdamW { learning_rate: config.bias_rate * learning_rate, weight_decay: 0.0, ..step };
        let steps = AdamWSteps::default();
        let mut step = Step { optimizer: self, grads, by: step, biases, on_biases, steps };
        let model = model.map(&mut step);
        step.steps.finish();
        model
    }
}

/// First and second moments of each parameter's gradients, named as in PyTorch's Adam.
impl Extras for Optimizer {
    const NAMES: &'static [&'static str] = &["exp_avg", "exp_avg_sq"];

    fn take<const D: usize>(&self, id: ParamId) -> Option<Vec<Tensor<D>>> {
        let moments = self.moments.get(&id)?.downcast_ref::<Moments<D>>()?;
        Some(moments.tensors.clone()?.to_vec())
    }

    fn put<const D: usize>(&mut self, id: ParamId, tensors: Vec<Tensor<D>>) {
        let tensors = <[Tensor<D>; 2]>::try_from(tensors).ok();
        self.moments.insert(id, Box::new(Moments::<D> { tensors }));
    }
}

struct Step<'a> {
    optimizer: &'a mut Optimizer,
    grads: GradientsParams,
    by: AdamW,
    biases: &'a BTreeSet<ParamId>,
    on_biases: AdamW,
    steps: AdamWSteps,
}

impl ModuleMapper for Step<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(grad) = self.grads.remove::<D>(param.id) else { return param };
        let moments = self
            .optimizer
            .moments
            .entry(param.id)
            .or_insert_with(|| Box::new(Moments::<D>::default()));
        let (id, tensor, mapper) = param.consume();
        let by = if self.biases.contains(&id) { &self.on_biases } else { &self.by };
        let place = AutodiffRole::of(&tensor);
        let tensor = match moments.downcast_mut::<Moments<D>>() {
            Some(moments) => place.take(self.steps.add(tensor.inner(), grad, moments, by)),
            None => tensor,
        };
        Param::from_mapped_value(id, tensor, mapper)
    }
}

/// Global norm of all gradients.
///
/// Burn clips the gradient of each parameter separately; published recipes clip by the global norm.
fn global_norm<M: Module>(grads: &GradientsParams, model: &M) -> f64 {
    let mut norm = SquaredNorm { grads, sum: None };
    model.visit(&mut norm);
    norm.sum.map_or(0.0, |sum| f64::from(sum.into_scalar::<f32>())).sqrt()
}

struct SquaredNorm<'a> {
    grads: &'a GradientsParams,
    sum: Option<Tensor<1>>,
}

impl ModuleVisitor for SquaredNorm<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(grad) = self.grads.get::<D>(param.id) else { return };
        let square = sum_in_order(grad.clone() * grad);
        self.sum = Some(match self.sum.take() {
            Some(sum) => sum + square,
            None => square,
        });
    }
}

/// Sum of all elements, with the same bits on any number of threads.
///
/// Flex adds up the elements of a large tensor in an order that depends on its threads, so such tensors are added up in
/// pieces that it does not divide.
fn sum_in_order<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    /// Number of elements of a piece, below the 4 Mi from which on Flex divides a sum.
    const PIECE: usize = 1 << 21;
    let len = tensor.shape().num_elements();
    if len < 2 * PIECE {
        return tensor.sum();
    }
    let flat = tensor.reshape([len]);
    let pieces = (0..len).step_by(PIECE).map(|from| from..len.min(from + PIECE));
    let zero = Tensor::zeros([1], &flat.device());
    pieces.fold(zero, |sum, piece| sum + flat.clone().slice(piece).sum())
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn large_tensors_are_added_up_with_the_same_bits_on_any_number_of_threads() {
        let (rows, width) = (2051, 2048);
        let noise = |n: usize| ((n * 2_654_435_761) % 1_000_003) as f32 / 1e6;
        let data = (0..rows * width).map(noise).collect::<Vec<_>>();
        let exact = data.iter().map(|x| f64::from(*x)).sum::<f64>();
        let tensor = Tensor::<1>::from_floats(&data[..], &Device::flex()).reshape([rows, width]);
        let sums = [1, 2, 3, 8].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| sum_in_order(tensor.clone()).into_scalar::<f32>())
        });
        assert!(sums.iter().all(|sum| sum.to_bits() == sums[0].to_bits()), "{sums:?}");
        assert!((f64::from(sums[0]) / exact - 1.0).abs() < 1e-5, "{} {exact}", sums[0]);
    }
}

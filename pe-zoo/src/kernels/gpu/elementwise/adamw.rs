//! AdamW in one launch for up to 32 parameters, in place where their memory is not shared.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Cube, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::{UNITS, cubes};
use crate::kernels::input_tensors::InputTensors;

/// Factors of one step.
#[derive(Debug, Clone, Copy, CubeType, CubeLaunch)]
pub(crate) struct AdamWFactors {
    /// Factor of the gradient.
    pub(crate) scale: f32,
    /// Decay rate of the mean of the gradient.
    pub(crate) mean_decay: f32,
    /// Decay rate of the mean of its square.
    pub(crate) square_decay: f32,
    /// Factor of the parameter.
    pub(crate) keep: f32,
    /// Learning rate, divided by the first correction of the bias.
    pub(crate) rate: f32,
    /// Inverse of the second correction.
    pub(crate) root: f32,
    pub(crate) epsilon: f32,
}

/// Parameter, its gradient, and the means of the gradient and of its square.
#[derive(Debug)]
pub(crate) struct AdamWTensors<const D: usize> {
    pub(crate) param: Tensor<D>,
    pub(crate) grad: Tensor<D>,
    pub(crate) mean: Tensor<D>,
    pub(crate) square: Tensor<D>,
}

/// Steps that wait for their launch, with the memory of their tensors.
#[derive(Debug, Default)]
pub(crate) struct AdamWQueue(Vec<Queued>);

/// Step of one parameter; all tensors are contiguous.
#[derive(Debug)]
struct Queued {
    param: CubeTensor,
    grad: CubeTensor,
    mean: CubeTensor,
    square: CubeTensor,
    factors: AdamWFactors,
}

impl AdamWQueue {
    /// Queues the step of a parameter; returns the tensors of the new parameter and moments, which the launch computes.
    pub(crate) fn push<const D: usize>(
        &mut self,
        AdamWTensors { param, grad, mean, square }: AdamWTensors<D>,
        factors: AdamWFactors,
    ) -> [Tensor<D>; 3] {
        let tensors = Vec::from([param, grad, mean, square].map(Tensor::into_dispatch));
        let (param, mean, square) =
            <Dispatch as CubeAdamW>::queue_adamw(InputTensors(tensors), factors, self);
        [param, mean, square].map(Tensor::from_dispatch)
    }

    /// Computes all steps, in as few launches as the device allows.
    pub(crate) fn launch(self) {
        let mut left = self.0;
        while let Some(first) = left.first() {
            let device = first.param.device.clone();
            let (steps, others) = left.into_iter().partition(|step| step.param.device == device);
            left = others;
            launch_steps(steps);
        }
    }
}

#[backend_extension(Cube)]
trait CubeAdamW: Backend {
    /// Queues the step of a parameter, given with its gradient and both moments; returns the new parameter and moments.
    fn queue_adamw(
        #[extension_type] tensors: InputTensors<Self>,
        factors: AdamWFactors,
        queue: &mut AdamWQueue,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

impl CubeAdamW for Cube {
    fn queue_adamw(
        tensors: InputTensors<Self>,
        factors: AdamWFactors,
        queue: &mut AdamWQueue,
    ) -> (CubeTensor, CubeTensor, CubeTensor) {
        let [param, grad, mean, square] = tensors.array();
        let grad = into_contiguous(grad);
        let [param, mean, square] = [param, mean, square].map(writable);
        let stepped = (param.clone(), mean.clone(), square.clone());
        queue.0.push(Queued { param, grad, mean, square, factors });
        stepped
    }
}

/// The tensor in row-major order, in memory of its own.
fn writable(tensor: CubeTensor) -> CubeTensor {
    let tensor = into_contiguous(tensor);
    if tensor.can_mut() { tensor } else { tensor.copy() }
}

/// Buffers of a parameter.
const BUFFERS: usize = 4;
/// Most parameters of a launch. The kernel has code for each of them, and CUDA takes 4 KiB of arguments.
const PARAMETERS: usize = 32;
/// Numbers that a unit computes.
const EACH: usize = 4;
/// Numbers that a cube computes.
const BLOCK: usize = EACH * UNITS as usize;

/// Launches the steps of one device.
fn launch_steps(mut steps: Vec<Queued>) {
    while let Some(first) = steps.first() {
        let client = first.param.client.clone();
        // A binding is left for the sizes and factors.
        let bindings = client.properties().hardware.max_bindings as usize - 1;
        let parameters = (bindings / BUFFERS).clamp(1, PARAMETERS).min(steps.len());
        let mut blocks = 0;
        let arguments = steps.drain(..parameters).map(|step| {
            let Queued { param, grad, mean, square, factors } = step;
            let AdamWFactors { scale, mean_decay, square_decay, keep, rate, root, epsilon } =
                factors;
            let count = param.meta.shape().num_elements();
            let first = blocks;
            blocks += count.div_ceil(BLOCK);
            ParameterLaunch::new(
                param.into_buffer_arg(),
                grad.into_buffer_arg(),
                mean.into_buffer_arg(),
                square.into_buffer_arg(),
                first,
                count,
                AdamWFactorsLaunch::new(scale, mean_decay, square_decay, keep, rate, root, epsilon),
            )
        });
        let arguments = arguments.collect::<SequenceArg<Parameter>>();
        let (count, dim) = cubes(&client, blocks, UNITS as usize);
        adamw_steps::launch(&client, count, dim, arguments);
    }
}

/// One parameter of a launch.
#[derive(CubeType, CubeLaunch)]
struct Parameter {
    param: Box<[f32]>,
    grad: Box<[f32]>,
    mean: Box<[f32]>,
    square: Box<[f32]>,
    /// Cubes of the parameters before it.
    first: usize,
    /// Its numbers.
    count: usize,
    factors: AdamWFactors,
}

/// Each cube computes [`BLOCK`] numbers of one parameter.
#[cube(launch)]
fn adamw_steps(parameters: &mut Sequence<Parameter>) {
    #[unroll]
    for n in 0..parameters.len() {
        adamw_step(parameters.index_mut(n));
    }
}

#[cube]
fn adamw_step(part: &mut Parameter) {
    if CUBE_POS >= part.first {
        let start = (CUBE_POS - part.first) * BLOCK + UNIT_POS as usize;
        #[unroll]
        for n in 0..EACH {
            let at = start + n * comptime![UNITS as usize];
            if at < part.count {
                let grad = part.grad[at] * part.factors.scale;
                let first = part.mean[at] * part.factors.mean_decay
                    + grad * (1.0 - part.factors.mean_decay);
                let second = part.square[at] * part.factors.square_decay
                    + grad * grad * (1.0 - part.factors.square_decay);
                let length = f32::sqrt(second * part.factors.root) + part.factors.epsilon;
                part.mean[at] = first;
                part.square[at] = second;
                part.param[at] =
                    part.param[at] * part.factors.keep - part.factors.rate * first / length;
            }
        }
    }
}

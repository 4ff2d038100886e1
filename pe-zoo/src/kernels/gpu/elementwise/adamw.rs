//! AdamW in one launch for each tensor, in place where their memory is not shared.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Cube, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::{cubes_of_units, together};
use crate::kernels::input_tensors::InputTensors;

/// Factors of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdamWFactors {
    /// Factor of the gradient.
    pub(crate) scale: f32,
    /// Decay rates of the two moments.
    pub(crate) betas: [f32; 2],
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

/// Steps a parameter; returns the new parameter and moments.
pub(crate) fn adamw<const D: usize>(
    AdamWTensors { param, grad, mean, square }: AdamWTensors<D>,
    factors: AdamWFactors,
) -> [Tensor<D>; 3] {
    let tensors = Vec::from([param, grad, mean, square].map(Tensor::into_dispatch));
    let (param, mean, square) = <Dispatch as CubeAdamW>::cube_adamw(InputTensors(tensors), factors);
    [param, mean, square].map(Tensor::from_dispatch)
}

#[backend_extension(Cube)]
trait CubeAdamW: Backend {
    /// Steps a parameter, given with its gradient and both moments; returns the new parameter and moments.
    fn cube_adamw(
        #[extension_type] tensors: InputTensors<Self>,
        factors: AdamWFactors,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

impl CubeAdamW for Cube {
    fn cube_adamw(
        tensors: InputTensors<Self>,
        factors: AdamWFactors,
    ) -> (CubeTensor, CubeTensor, CubeTensor) {
        let [param, grad, mean, square] = tensors.array();
        let grad = into_contiguous(grad);
        let [param, mean, square] = [param, mean, square].map(writable);
        let elements = grad.meta.shape().num_elements();
        let size = together(elements);
        let (count, dim) = cubes_of_units(&grad.client, elements / size);
        let AdamWFactors { scale, betas: [beta1, beta2], keep, rate, root, epsilon } = factors;
        adamw_step::launch(
            &grad.client.clone(),
            count,
            dim,
            size,
            param.clone().into_buffer_arg(),
            grad.into_buffer_arg(),
            mean.clone().into_buffer_arg(),
            square.clone().into_buffer_arg(),
            elements / size,
            scale,
            beta1,
            beta2,
            keep,
            rate,
            root,
            epsilon,
        );
        (param, mean, square)
    }
}

/// The tensor in row-major order, in memory of its own.
fn writable(tensor: CubeTensor) -> CubeTensor {
    let tensor = into_contiguous(tensor);
    if tensor.can_mut() { tensor } else { tensor.copy() }
}

#[cube(launch)]
#[expect(clippy::too_many_arguments, reason = "tensors and factors of a launch")]
fn adamw_step<N: Size>(
    param: &mut [Vector<f32, N>],
    grad: &[Vector<f32, N>],
    mean: &mut [Vector<f32, N>],
    square: &mut [Vector<f32, N>],
    count: usize,
    scale: f32,
    beta1: f32,
    beta2: f32,
    keep: f32,
    rate: f32,
    root: f32,
    epsilon: f32,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let grad = grad[at] * Vector::new(scale);
        let first = mean[at] * Vector::new(beta1) + grad * Vector::new(1.0 - beta1);
        let second = square[at] * Vector::new(beta2) + grad * grad * Vector::new(1.0 - beta2);
        let length = Vector::sqrt(second * Vector::new(root)) + Vector::new(epsilon);
        mean[at] = first;
        square[at] = second;
        param[at] = param[at] * Vector::new(keep) - Vector::new(rate) * first / length;
    }
}

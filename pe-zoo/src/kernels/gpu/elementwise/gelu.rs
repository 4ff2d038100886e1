//! Exact GELU with its own derivative. Burn's differentiates another formula, the one with tanh.

use burn::tensor::{DType, Tensor, bf16};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::{cubes_of_units, empty_of, together};
use crate::kernels::gpu::operation::{CubeOperation, apply};

/// Computes `x Phi(x)` with the distribution function `Phi` of the normal distribution.
pub(crate) fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    apply(CubeGelu, [x.into_dispatch()])
}

#[derive(Debug, Clone)]
struct CubeGelu;

impl CubeOperation<1> for CubeGelu {
    /// Input.
    type Kept = CubeTensor;

    fn forward(&self, [x]: [CubeTensor; 1]) -> (CubeTensor, CubeTensor) {
        (forward(x.clone()), x)
    }

    fn backward(&self, x: CubeTensor, grad: CubeTensor, _: [bool; 1]) -> [Option<CubeTensor>; 1] {
        [Some(backward(x, grad))]
    }
}

/// GELU of numbers of f32 or bf16.
pub(in crate::kernels::gpu) fn forward(x: CubeTensor) -> CubeTensor {
    let output = empty_of(&x, x.meta.shape().clone(), x.dtype);
    let elements = x.meta.shape().num_elements();
    let (size, client) = (together(elements, x.dtype), x.client.clone());
    let (count, dim) = cubes_of_units(&client, elements / size);
    let launch = match x.dtype {
        DType::BF16 => gelu_forward::launch::<bf16>,
        _ => gelu_forward::launch::<f32>,
    };
    let to = output.clone().into_buffer_arg();
    launch(&client, count, dim, size, x.into_buffer_arg(), to, elements / size);
    output
}

/// Gradient of the input, from the input and the gradient of the output, all of one type.
pub(in crate::kernels::gpu) fn backward(x: CubeTensor, grad: CubeTensor) -> CubeTensor {
    let output = empty_of(&x, x.meta.shape().clone(), x.dtype);
    let elements = x.meta.shape().num_elements();
    let (size, client) = (together(elements, x.dtype), x.client.clone());
    let (count, dim) = cubes_of_units(&client, elements / size);
    let launch = match x.dtype {
        DType::BF16 => gelu_backward::launch::<bf16>,
        _ => gelu_backward::launch::<f32>,
    };
    let (x, grad) = (x.into_buffer_arg(), grad.into_buffer_arg());
    let to = output.clone().into_buffer_arg();
    launch(&client, count, dim, size, x, grad, to, elements / size);
    output
}

/// Distribution function of the normal distribution.
#[cube]
fn below<N: Size>(x: Vector<f32, N>) -> Vector<f32, N> {
    let error = Vector::erf(x * Vector::new(core::f32::consts::FRAC_1_SQRT_2));
    Vector::new(0.5) * error + Vector::new(0.5)
}

#[cube(launch)]
fn gelu_forward<F: Float, N: Size>(x: &[Vector<F, N>], output: &mut [Vector<F, N>], count: usize) {
    let at = ABSOLUTE_POS;
    if at < count {
        let x = Vector::<f32, N>::cast_from(x[at]);
        output[at] = Vector::cast_from(x * below::<N>(x));
    }
}

#[cube(launch)]
fn gelu_backward<F: Float, N: Size>(
    x: &[Vector<F, N>],
    grad: &[Vector<F, N>],
    output: &mut [Vector<F, N>],
    count: usize,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let x = Vector::<f32, N>::cast_from(x[at]);
        // 1 / sqrt(2 pi)
        let density = Vector::new(0.398_942_3) * Vector::exp(x * x * Vector::new(-0.5));
        let grad = Vector::<f32, N>::cast_from(grad[at]);
        output[at] = Vector::cast_from(grad * (below::<N>(x) + x * density));
    }
}

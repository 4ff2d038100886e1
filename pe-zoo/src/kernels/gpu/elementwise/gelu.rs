//! Exact GELU with its own derivative. Burn's differentiates another formula, the one with tanh.

use burn::tensor::Tensor;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::{cubes_of_units, empty, together};
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
        let output = empty(&x, x.meta.shape().clone());
        let elements = x.meta.shape().num_elements();
        let (size, client) = (together(elements), x.client.clone());
        let (count, dim) = cubes_of_units(&client, elements / size);
        gelu_forward::launch(
            &client,
            count,
            dim,
            size,
            x.clone().into_buffer_arg(),
            output.clone().into_buffer_arg(),
            elements / size,
        );
        (output, x)
    }

    fn backward(&self, x: CubeTensor, grad: CubeTensor, _: [bool; 1]) -> [Option<CubeTensor>; 1] {
        let output = empty(&x, x.meta.shape().clone());
        let elements = x.meta.shape().num_elements();
        let (size, client) = (together(elements), x.client.clone());
        let (count, dim) = cubes_of_units(&client, elements / size);
        gelu_backward::launch(
            &client,
            count,
            dim,
            size,
            x.into_buffer_arg(),
            grad.into_buffer_arg(),
            output.clone().into_buffer_arg(),
            elements / size,
        );
        [Some(output)]
    }
}

/// Distribution function of the normal distribution.
#[cube]
fn below<N: Size>(x: Vector<f32, N>) -> Vector<f32, N> {
    let error = Vector::erf(x * Vector::new(core::f32::consts::FRAC_1_SQRT_2));
    Vector::new(0.5) * error + Vector::new(0.5)
}

#[cube(launch)]
fn gelu_forward<N: Size>(x: &[Vector<f32, N>], output: &mut [Vector<f32, N>], count: usize) {
    let at = ABSOLUTE_POS;
    if at < count {
        output[at] = x[at] * below::<N>(x[at]);
    }
}

#[cube(launch)]
fn gelu_backward<N: Size>(
    x: &[Vector<f32, N>],
    grad: &[Vector<f32, N>],
    output: &mut [Vector<f32, N>],
    count: usize,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let x = x[at];
        // 1 / sqrt(2 pi)
        let density = Vector::new(0.398_942_3) * Vector::exp(x * x * Vector::new(-0.5));
        output[at] = grad[at] * (below::<N>(x) + x * density);
    }
}

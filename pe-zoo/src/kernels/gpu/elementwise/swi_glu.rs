//! SwiGLU: `silu(gate) * up`.

use burn::tensor::{DType, Tensor, bf16};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::{cubes_of_units, empty_of, last_axis, together};
use crate::kernels::gpu::operation::{CubeOperation, apply};

/// Computes `silu(gate) * up` over the last axis, `[.., 2 F] -> [.., F]`; the first half is the gate.
pub(crate) fn swi_glu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    apply(CubeSwiGlu, [x.into_dispatch()])
}

#[derive(Debug, Clone)]
struct CubeSwiGlu;

impl CubeOperation<1> for CubeSwiGlu {
    /// Input.
    type Kept = CubeTensor;

    fn forward(&self, [x]: [CubeTensor; 1]) -> (CubeTensor, CubeTensor) {
        (forward(x.clone()), x)
    }

    fn backward(&self, x: CubeTensor, grad: CubeTensor, _: [bool; 1]) -> [Option<CubeTensor>; 1] {
        [Some(backward(x, grad))]
    }
}

/// SwiGLU of numbers of f32 or bf16, `[.., 2 F] -> [.., F]`.
pub(in crate::kernels::gpu) fn forward(x: CubeTensor) -> CubeTensor {
    let width = last_axis(&x) / 2;
    let mut shape = x.meta.shape().clone();
    let last = shape.num_dims() - 1;
    shape[last] = width;
    let (elements, size) = (shape.num_elements(), together(width, x.dtype));
    let (client, output) = (x.client.clone(), empty_of(&x, shape, x.dtype));
    let (count, dim) = cubes_of_units(&client, elements / size);
    let launch = match x.dtype {
        DType::BF16 => swi_glu_forward::launch::<bf16>,
        _ => swi_glu_forward::launch::<f32>,
    };
    let (x, to) = (x.into_buffer_arg(), output.clone().into_buffer_arg());
    launch(&client, count, dim, size, x, to, elements / size, width / size);
    output
}

/// Gradient of the input, from the input and the gradient of the output, all of one type.
pub(in crate::kernels::gpu) fn backward(x: CubeTensor, grad: CubeTensor) -> CubeTensor {
    let width = last_axis(&x) / 2;
    let (elements, size) = (x.meta.shape().num_elements() / 2, together(width, x.dtype));
    let (client, output) = (x.client.clone(), empty_of(&x, x.meta.shape().clone(), x.dtype));
    let (count, dim) = cubes_of_units(&client, elements / size);
    let launch = match x.dtype {
        DType::BF16 => swi_glu_backward::launch::<bf16>,
        _ => swi_glu_backward::launch::<f32>,
    };
    let (x, grad) = (x.into_buffer_arg(), grad.into_buffer_arg());
    let to = output.clone().into_buffer_arg();
    launch(&client, count, dim, size, x, grad, to, elements / size, width / size);
    output
}

#[cube]
fn sigmoid<N: Size>(x: Vector<f32, N>) -> Vector<f32, N> {
    Vector::new(1.0) / (Vector::new(1.0) + Vector::exp(-x))
}

/// `width` is the number of vectors of a row of the output, `count` that of all rows.
#[cube(launch)]
fn swi_glu_forward<F: Float, N: Size>(
    x: &[Vector<F, N>],
    output: &mut [Vector<F, N>],
    count: usize,
    width: usize,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let place = at + at / width * width;
        let gate = Vector::<f32, N>::cast_from(x[place]);
        let up = Vector::<f32, N>::cast_from(x[place + width]);
        output[at] = Vector::cast_from(gate * sigmoid::<N>(gate) * up);
    }
}

#[cube(launch)]
fn swi_glu_backward<F: Float, N: Size>(
    x: &[Vector<F, N>],
    grad: &[Vector<F, N>],
    output: &mut [Vector<F, N>],
    count: usize,
    width: usize,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let place = at + at / width * width;
        let gate = Vector::<f32, N>::cast_from(x[place]);
        let up = Vector::<f32, N>::cast_from(x[place + width]);
        let grad = Vector::<f32, N>::cast_from(grad[at]);
        let share = sigmoid::<N>(gate);
        let slope = share * (Vector::new(1.0) + gate * (Vector::new(1.0) - share));
        output[place] = Vector::cast_from(grad * up * slope);
        output[place + width] = Vector::cast_from(grad * gate * share);
    }
}

//! Gated linear units: a function of one half times the other half.

use burn::tensor::{DType, Tensor, bf16};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::{cubes_of_units, empty_of, last_axis, together};
use crate::kernels::activation::{GELU_CUBE, GELU_SLOPE, GateFunction};
use crate::kernels::gpu::operation::{CubeOperation, apply};

/// Computes `gate(first half) * second half` over the last axis, `[.., 2 F] -> [.., F]`.
pub(crate) fn gated<const D: usize>(x: Tensor<D>, gate: GateFunction) -> Tensor<D> {
    apply(CubeGated { gate }, [x.into_dispatch()])
}

#[derive(Debug, Clone)]
struct CubeGated {
    gate: GateFunction,
}

impl CubeOperation<1> for CubeGated {
    /// Input.
    type Kept = CubeTensor;

    fn forward(&self, [x]: [CubeTensor; 1]) -> (CubeTensor, CubeTensor) {
        (forward(x.clone(), self.gate), x)
    }

    fn backward(&self, x: CubeTensor, grad: CubeTensor, _: [bool; 1]) -> [Option<CubeTensor>; 1] {
        [Some(backward(x, grad, self.gate))]
    }
}

/// Gated unit of numbers of f32 or bf16, `[.., 2 F] -> [.., F]`.
pub(in crate::kernels::gpu) fn forward(x: CubeTensor, gate: GateFunction) -> CubeTensor {
    let width = last_axis(&x) / 2;
    let mut shape = x.meta.shape().clone();
    let last = shape.num_dims() - 1;
    shape[last] = width;
    let (elements, size) = (shape.num_elements(), together(width, x.dtype));
    let (client, output) = (x.client.clone(), empty_of(&x, shape, x.dtype));
    let (count, dim) = cubes_of_units(&client, elements / size);
    let launch = match x.dtype {
        DType::BF16 => gated_forward::launch::<bf16>,
        _ => gated_forward::launch::<f32>,
    };
    let (x, to) = (x.into_buffer_arg(), output.clone().into_buffer_arg());
    launch(&client, count, dim, size, x, to, elements / size, width / size, gate);
    output
}

/// Gradient of the input, from the input and the gradient of the output, all of one type.
pub(in crate::kernels::gpu) fn backward(
    x: CubeTensor,
    grad: CubeTensor,
    gate: GateFunction,
) -> CubeTensor {
    let width = last_axis(&x) / 2;
    let (elements, size) = (x.meta.shape().num_elements() / 2, together(width, x.dtype));
    let (client, output) = (x.client.clone(), empty_of(&x, x.meta.shape().clone(), x.dtype));
    let (count, dim) = cubes_of_units(&client, elements / size);
    let launch = match x.dtype {
        DType::BF16 => gated_backward::launch::<bf16>,
        _ => gated_backward::launch::<f32>,
    };
    let (x, grad) = (x.into_buffer_arg(), grad.into_buffer_arg());
    let to = output.clone().into_buffer_arg();
    launch(&client, count, dim, size, x, grad, to, elements / size, width / size, gate);
    output
}

/// Argument of the sigmoid in the function of the gate.
#[cube]
fn argument<N: Size>(x: Vector<f32, N>, #[comptime] gate: GateFunction) -> Vector<f32, N> {
    match comptime![gate] {
        GateFunction::Silu => x,
        GateFunction::Gelu => {
            Vector::new(GELU_SLOPE) * x * (Vector::new(1.0) + Vector::new(GELU_CUBE) * x * x)
        }
    }
}

/// Derivative of [`argument`].
#[cube]
fn argument_slope<N: Size>(x: Vector<f32, N>, #[comptime] gate: GateFunction) -> Vector<f32, N> {
    match comptime![gate] {
        GateFunction::Silu => Vector::new(1.0),
        GateFunction::Gelu => {
            let cube = comptime![3.0 * GELU_CUBE];
            Vector::new(GELU_SLOPE) * (Vector::new(1.0) + Vector::new(cube) * x * x)
        }
    }
}

#[cube]
fn sigmoid<N: Size>(x: Vector<f32, N>) -> Vector<f32, N> {
    Vector::new(1.0) / (Vector::new(1.0) + Vector::exp(-x))
}

/// `width` is the number of vectors of a row of the output, `count` that of all rows.
#[cube(launch)]
fn gated_forward<F: Float, N: Size>(
    x: &[Vector<F, N>],
    output: &mut [Vector<F, N>],
    count: usize,
    width: usize,
    #[comptime] kind: GateFunction,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let place = at + at / width * width;
        let gate = Vector::<f32, N>::cast_from(x[place]);
        let up = Vector::<f32, N>::cast_from(x[place + width]);
        output[at] = Vector::cast_from(gate * sigmoid::<N>(argument::<N>(gate, kind)) * up);
    }
}

#[cube(launch)]
fn gated_backward<F: Float, N: Size>(
    x: &[Vector<F, N>],
    grad: &[Vector<F, N>],
    output: &mut [Vector<F, N>],
    count: usize,
    width: usize,
    #[comptime] kind: GateFunction,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let place = at + at / width * width;
        let gate = Vector::<f32, N>::cast_from(x[place]);
        let up = Vector::<f32, N>::cast_from(x[place + width]);
        let grad = Vector::<f32, N>::cast_from(grad[at]);
        let share = sigmoid::<N>(argument::<N>(gate, kind));
        let closed = argument_slope::<N>(gate, kind) * (Vector::new(1.0) - share);
        let slope = share * (Vector::new(1.0) + gate * closed);
        output[place] = Vector::cast_from(grad * up * slope);
        output[place + width] = Vector::cast_from(grad * gate * share);
    }
}

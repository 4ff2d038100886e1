//! SwiGLU: `silu(gate) * up`.

use burn::tensor::Tensor;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::{cubes_of_units, empty, last_axis, together};
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
        let width = last_axis(&x) / 2;
        let mut shape = x.meta.shape().clone();
        let last = shape.num_dims() - 1;
        shape[last] = width;
        let (elements, size) = (shape.num_elements(), together(width));
        let output = empty(&x, shape);
        let (count, dim) = cubes_of_units(&x.client, elements / size);
        swi_glu_forward::launch(
            &x.client.clone(),
            count,
            dim,
            size,
            x.clone().into_buffer_arg(),
            output.clone().into_buffer_arg(),
            elements / size,
            width / size,
        );
        (output, x)
    }

    fn backward(&self, x: CubeTensor, grad: CubeTensor, _: [bool; 1]) -> [Option<CubeTensor>; 1] {
        let width = last_axis(&x) / 2;
        let (elements, size) = (x.meta.shape().num_elements() / 2, together(width));
        let output = empty(&x, x.meta.shape().clone());
        let (count, dim) = cubes_of_units(&x.client, elements / size);
        swi_glu_backward::launch(
            &x.client.clone(),
            count,
            dim,
            size,
            x.into_buffer_arg(),
            grad.into_buffer_arg(),
            output.clone().into_buffer_arg(),
            elements / size,
            width / size,
        );
        [Some(output)]
    }
}

#[cube]
fn sigmoid<N: Size>(x: Vector<f32, N>) -> Vector<f32, N> {
    Vector::new(1.0) / (Vector::new(1.0) + Vector::exp(-x))
}

/// `width` is the number of vectors of a row of the output, `count` that of all rows.
#[cube(launch)]
fn swi_glu_forward<N: Size>(
    x: &[Vector<f32, N>],
    output: &mut [Vector<f32, N>],
    count: usize,
    width: usize,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let gate = x[at + at / width * width];
        output[at] = gate * sigmoid::<N>(gate) * x[at + at / width * width + width];
    }
}

#[cube(launch)]
fn swi_glu_backward<N: Size>(
    x: &[Vector<f32, N>],
    grad: &[Vector<f32, N>],
    output: &mut [Vector<f32, N>],
    count: usize,
    width: usize,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let place = at + at / width * width;
        let gate = x[place];
        let up = x[place + width];
        let grad = grad[at];
        let share = sigmoid::<N>(gate);
        let slope = share * (Vector::new(1.0) + gate * (Vector::new(1.0) - share));
        output[place] = grad * up * slope;
        output[place + width] = grad * gate * share;
    }
}

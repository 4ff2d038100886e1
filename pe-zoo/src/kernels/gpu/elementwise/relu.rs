//! Rectified linear unit.

use burn::tensor::{DType, bf16};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::{cubes_of_units, empty_of, together};

/// `max(x, 0)` of numbers of f32 or bf16.
pub(in crate::kernels::gpu) fn forward(x: CubeTensor) -> CubeTensor {
    masked(x.clone(), x)
}

/// Gradient of the input, from the input and the gradient of the output, all of one type.
pub(in crate::kernels::gpu) fn backward(x: CubeTensor, grad: CubeTensor) -> CubeTensor {
    masked(x, grad)
}

/// `numbers` where `x` is positive or NaN, and zeros elsewhere.
fn masked(x: CubeTensor, numbers: CubeTensor) -> CubeTensor {
    let output = empty_of(&x, x.meta.shape().clone(), x.dtype);
    let elements = x.meta.shape().num_elements();
    let (size, client) = (together(elements, x.dtype), x.client.clone());
    let (count, dim) = cubes_of_units(&client, elements / size);
    let launch = match x.dtype {
        DType::BF16 => mask_below::launch::<bf16>,
        _ => mask_below::launch::<f32>,
    };
    let (x, numbers) = (x.into_buffer_arg(), numbers.into_buffer_arg());
    let to = output.clone().into_buffer_arg();
    launch(&client, count, dim, size, x, numbers, to, elements / size);
    output
}

#[cube(launch)]
fn mask_below<F: Float, N: Size>(
    x: &[Vector<F, N>],
    numbers: &[Vector<F, N>],
    output: &mut [Vector<F, N>],
    count: usize,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let x = Vector::<f32, N>::cast_from(x[at]);
        let numbers = Vector::<f32, N>::cast_from(numbers[at]);
        let below = x.less_equal(&Vector::new(0.0));
        output[at] = Vector::cast_from(select_many(below, Vector::new(0.0), numbers));
    }
}

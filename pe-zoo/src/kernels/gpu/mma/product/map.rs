//! The three products of a linear map: its output, and the gradients of its input and of its weight.

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;

use super::kernel::SIDE;
use super::{AfterSums, Finish, Matrices, ProductShape, products, slices};
use crate::kernels::activation::NumberActivation;
use crate::kernels::gpu::elementwise::sums::sum_of_rows;
use crate::kernels::gpu::elementwise::{gelu, relu};
use crate::kernels::gpu::mma::choice::has_warpgroups;
use crate::kernels::gpu::mma::tensors::empty;

/// Sizes of a linear map of rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels::gpu) struct MapSizes {
    pub(in crate::kernels::gpu) rows: usize,
    pub(in crate::kernels::gpu) inputs: usize,
    pub(in crate::kernels::gpu) outputs: usize,
}

/// Matrices of `rows` rows in memory.
fn matrices(tensor: CubeTensor, rows: usize) -> Matrices {
    let shape = tensor.meta.shape();
    let row_stride = shape[shape.num_dims() - 1];
    Matrices { tensor, row_stride, rows, transposed: false }
}

/// Maps rows of bf16, `[rows, inputs]`, by a weight of bf16, `[inputs, outputs]`, and adds the bias.
pub(in crate::kernels::gpu) fn output(
    x: CubeTensor,
    weight: CubeTensor,
    bias: Option<CubeTensor>,
    MapSizes { rows, inputs, outputs }: MapSizes,
    results: DType,
) -> CubeTensor {
    let sizes = ProductShape { matrices: 1, rows, columns: outputs, inner: inputs };
    products(&matrices(x, rows), &matrices(weight, inputs), Finish::plain(bias), sizes, results)
}

/// The same in bf16, before and after an activation.
pub(in crate::kernels::gpu) fn activated_output(
    x: CubeTensor,
    weight: CubeTensor,
    bias: Option<CubeTensor>,
    sizes: MapSizes,
    activation: NumberActivation,
) -> [CubeTensor; 2] {
    if !has_warpgroups(&x.client) {
        let before = output(x, weight, bias, sizes, DType::BF16);
        let after = match activation {
            NumberActivation::Relu => relu::forward(before.clone()),
            NumberActivation::Gelu => gelu::forward(before.clone()),
        };
        return [before, after];
    }
    let MapSizes { rows, inputs, outputs } = sizes;
    let after = empty(&x, &[1, rows, outputs], DType::BF16);
    let finish =
        Finish { bias, after: AfterSums::Activated(activation), beside: Some(after.clone()) };
    let shape = ProductShape { matrices: 1, rows, columns: outputs, inner: inputs };
    let [x, weight] = [matrices(x, rows), matrices(weight, inputs)];
    [products(&x, &weight, finish, shape, DType::BF16), after]
}

/// Gradient of the input, `[rows, inputs]`, from that of the output in bf16.
pub(in crate::kernels::gpu) fn input_gradient(
    grad: CubeTensor,
    weight: CubeTensor,
    MapSizes { rows, inputs, outputs }: MapSizes,
    results: DType,
) -> CubeTensor {
    let sizes = ProductShape { matrices: 1, rows, columns: inputs, inner: outputs };
    let weight = matrices(weight, inputs).transposed();
    products(&matrices(grad, rows), &weight, Finish::plain(None), sizes, results)
}

/// Gradient of the numbers before the activation whose results are the input, in bf16 like all tensors.
pub(in crate::kernels::gpu) fn gradient_before(
    activation: NumberActivation,
    before: CubeTensor,
    grad: CubeTensor,
    weight: CubeTensor,
    sizes: MapSizes,
) -> CubeTensor {
    if !has_warpgroups(&grad.client) {
        let grad = input_gradient(grad, weight, sizes, DType::BF16);
        return match activation {
            NumberActivation::Relu => relu::backward(before, grad),
            NumberActivation::Gelu => gelu::backward(before, grad),
        };
    }
    let MapSizes { rows, inputs, outputs } = sizes;
    let finish =
        Finish { bias: None, after: AfterSums::Differentiated(activation), beside: Some(before) };
    let shape = ProductShape { matrices: 1, rows, columns: inputs, inner: outputs };
    let weight = matrices(weight, inputs).transposed();
    products(&matrices(grad, rows), &weight, finish, shape, DType::BF16)
}

/// Gradient of the weight in f32, `[inputs, outputs]`, from the input and the gradient of the output in bf16.
pub(in crate::kernels::gpu) fn weight_gradient(
    x: CubeTensor,
    grad: CubeTensor,
    sizes: MapSizes,
) -> CubeTensor {
    let MapSizes { rows, inputs, outputs } = sizes;
    let slices = slices_of(sizes);
    let inner = rows / slices;
    let shape = ProductShape { matrices: slices, rows: inputs, columns: outputs, inner };
    let left = matrices(x, inner).transposed();
    let finish = Finish::plain(None);
    let partial = products(&left, &matrices(grad, inner), finish, shape, DType::F32);
    let sum = match slices {
        1 => partial,
        _ => sum_of_rows(partial, slices, inputs * outputs),
    };
    Cube::float_reshape(sum, [inputs, outputs].into())
}

/// Number of slices of the inputs that are multiplied side by side for the gradient of the weight.
pub(in crate::kernels::gpu) fn slices_of(MapSizes { rows, inputs, outputs }: MapSizes) -> usize {
    slices(rows, inputs.div_ceil(SIDE) * outputs.div_ceil(SIDE))
}

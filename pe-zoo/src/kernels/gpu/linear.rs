//! Linear maps with rounded factors. Only factors are rounded: products write f32 sums, forward and backward.

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, Tensor};
use burn_cubecl::kernel::cast;
use burn_cubecl::kernel::matmul::{MatmulStrategy, matmul};
use burn_cubecl::tensor::CubeTensor;

use super::elementwise::sums::sum_of_rows;
use super::mma::product::has_products;
use super::mma::product::map::{self, MapSizes};
#[cfg(feature = "lab")]
use super::mma::product::of_matrices;
use super::mma::product::round::{rounded_gradient, rounded_rows};
use super::operation::{CubeOperation, apply};
use super::product::transposed;
use crate::kernels::linear_map::LinearMap;

/// Applies a map over the last axis.
pub(crate) fn linear<const D: usize>(
    factors: DType,
    x: Tensor<D>,
    LinearMap { weight, bias }: LinearMap,
) -> Tensor<D> {
    let operation = RoundedLinear { factors };
    let [x, weight] = [x.into_dispatch(), weight.into_dispatch()];
    match bias {
        Some(bias) => apply(operation, [x, weight, bias.into_dispatch()]),
        None => apply(operation, [x, weight]),
    }
}

/// Map with the inputs `x`, weight and perhaps bias.
#[derive(Debug, Clone)]
struct RoundedLinear {
    factors: DType,
}

/// Rounded factors of the forward pass.
#[derive(Debug, Clone)]
struct Factors {
    /// Input, `[.., I]`.
    x: CubeTensor,
    /// Weight, `[I, O]`; for the products of `mma`, rows are padded.
    weight: CubeTensor,
    outputs: usize,
    /// Whether the products are those of `mma`.
    on_mma: bool,
}

impl CubeOperation<2> for RoundedLinear {
    type Kept = Factors;

    fn forward(&self, [x, weight]: [CubeTensor; 2]) -> (CubeTensor, Factors) {
        self.output(self.rounded(x, weight), None)
    }

    fn backward(
        &self,
        kept: Factors,
        grad: CubeTensor,
        [of_x, of_weight]: [bool; 2],
    ) -> [Option<CubeTensor>; 2] {
        let [of_x, of_weight, _] = self.gradients(kept, grad, [of_x, of_weight, false]);
        [of_x, of_weight]
    }
}

impl CubeOperation<3> for RoundedLinear {
    type Kept = Factors;

    fn forward(&self, [x, weight, bias]: [CubeTensor; 3]) -> (CubeTensor, Factors) {
        self.output(self.rounded(x, weight), Some(bias))
    }

    fn backward(
        &self,
        kept: Factors,
        grad: CubeTensor,
        needed: [bool; 3],
    ) -> [Option<CubeTensor>; 3] {
        self.gradients(kept, grad, needed)
    }
}

impl RoundedLinear {
    fn rounded(&self, x: CubeTensor, weight: CubeTensor) -> Factors {
        let [inputs, outputs] = as_matrix(&weight);
        let on_mma =
            self.factors == DType::BF16 && inputs.is_multiple_of(8) && has_products(&weight.client);
        let weight =
            if on_mma { rounded_rows(weight, inputs, outputs) } else { cast(weight, self.factors) };
        let x = if on_mma {
            let shape = x.meta.shape().clone();
            let [rows, _inputs] = as_matrix(&x);
            Cube::float_reshape(rounded_rows(x, rows, inputs), shape)
        } else {
            cast(x, self.factors)
        };
        Factors { x, weight, outputs, on_mma }
    }

    fn output(&self, factors: Factors, bias: Option<CubeTensor>) -> (CubeTensor, Factors) {
        let Factors { x, weight, outputs, on_mma } = factors.clone();
        let [rows, inputs] = as_matrix(&x);
        let mut shape = x.meta.shape().clone();
        let axes = shape.num_dims();
        shape[axes - 1] = outputs;
        let output = if on_mma {
            map::output(x, weight, bias, MapSizes { rows, inputs, outputs }, DType::F32)
        } else {
            let product = multiply(Cube::float_reshape(x, [rows, inputs].into()), weight);
            match bias {
                Some(bias) => {
                    Cube::float_add(product, Cube::float_reshape(bias, [1, outputs].into()))
                }
                None => product,
            }
        };
        (Cube::float_reshape(output, shape), factors)
    }

    /// Gradients of the input, the weight and the bias, if they are needed.
    fn gradients(
        &self,
        Factors { x, weight, outputs, on_mma }: Factors,
        grad: CubeTensor,
        [of_x, of_weight, of_bias]: [bool; 3],
    ) -> [Option<CubeTensor>; 3] {
        let shape = x.meta.shape().clone();
        let [rows, inputs] = as_matrix(&x);
        let sizes = MapSizes { rows, inputs, outputs };
        let [of_x, of_weight, of_bias] = if on_mma {
            let (grad, of_bias) = rounded_gradient(grad, rows, outputs, of_bias);
            let of_x = of_x.then(|| map::input_gradient(grad.clone(), weight, sizes, DType::F32));
            [of_x, of_weight.then(|| map::weight_gradient(x, grad, sizes)), of_bias]
        } else {
            let of_bias = of_bias.then(|| sum_of_rows(grad.clone(), rows, outputs));
            let grad = Cube::float_reshape(cast(grad, self.factors), [rows, outputs].into());
            let of_x = of_x.then(|| multiply(grad.clone(), transposed(weight)));
            [of_x, of_weight.then(|| of_slices(x, grad, sizes)), of_bias]
        };
        [of_x.map(|of_x| Cube::float_reshape(of_x, shape)), of_weight, of_bias]
    }
}

/// Gradient of a weight, as a sum of products of slices.
fn of_slices(x: CubeTensor, grad: CubeTensor, sizes: MapSizes) -> CubeTensor {
    let MapSizes { rows, inputs, outputs } = sizes;
    let slices = map::slices_of(sizes);
    let sliced = |tensor: CubeTensor, width: usize| {
        Cube::float_reshape(tensor, [slices, rows / slices, width].into())
    };
    let products = multiply(transposed(sliced(x, inputs)), sliced(grad, outputs));
    let sum = sum_of_rows(products, slices, inputs * outputs);
    Cube::float_reshape(sum, [inputs, outputs].into())
}

/// Product of all leading axes, and the last axis.
fn as_matrix(tensor: &CubeTensor) -> [usize; 2] {
    let shape = tensor.meta.shape();
    let width = shape[shape.num_dims() - 1];
    [shape.num_elements() / width, width]
}

/// Multiplies `[.., M, K] x [.., K, N] -> [.., M, N]` with f32 sums and results.
fn multiply(left: CubeTensor, right: CubeTensor) -> CubeTensor {
    matmul(left, right, None, MatmulStrategy::default(), DType::F32)
        .unwrap_or_else(|error| unreachable!("the device cannot compute this product: {error:?}"))
}

/// Multiplies matrices of bf16, each as it is in memory, by the kernel for linear maps: `[1, rows, columns]` in f32.
#[cfg(feature = "lab")]
pub fn multiply_on_mma(factors: [Tensor<2>; 2], transposed: [bool; 2]) -> Tensor<3> {
    apply(MatrixProduct { transposed }, factors.map(Tensor::into_dispatch))
}

/// Product without gradients.
#[cfg(feature = "lab")]
#[derive(Debug, Clone)]
struct MatrixProduct {
    transposed: [bool; 2],
}

#[cfg(feature = "lab")]
impl CubeOperation<2> for MatrixProduct {
    type Kept = ();

    fn forward(&self, [left, right]: [CubeTensor; 2]) -> (CubeTensor, ()) {
        let [left_transposed, right_transposed] = self.transposed;
        (of_matrices(left, right, left_transposed, right_transposed), ())
    }

    fn backward(&self, (): (), _: CubeTensor, _: [bool; 2]) -> [Option<CubeTensor>; 2] {
        [None, None]
    }
}

#[cfg(all(test, any(feature = "wgpu", feature = "cuda"), feature = "flex"))]
mod tests;

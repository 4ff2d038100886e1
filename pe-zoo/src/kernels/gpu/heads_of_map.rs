//! One linear map to queries, keys and values, whose products are those of the whole map: in place of gradients that are
//! added up, the parts write theirs next to each other.

use std::sync::{Arc, Mutex, PoisonError};

use burn::backend::ops::FloatTensorOps;
use burn::backend::{Cube, DispatchDevice};
use burn::tensor::{DType, FloatDType, Slice, Tensor};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::mma::product::has_products;
use super::mma::product::map::{self, MapSizes};
use super::mma::product::round::{RoundedColumns, rounded_rows};
use super::operation::{CubeOperation, apply};
use crate::kernels::linear_map::LinearMap;

/// Whether [`heads_of_map`] supports an input and the width of its heads: on GPUs with tensor instructions for bf16.
pub(crate) fn supports(x: &Tensor<3>, head_dim: usize) -> bool {
    let [_batch, _tokens, width] = x.dims();
    let device = x.device().inner();
    super::elementwise::supports(x)
        && [width, head_dim].iter().all(|width| width.is_multiple_of(8))
        && matches!(device.as_dispatch(), DispatchDevice::Cube(device) if has_products(&device.client()))
}

/// Maps `[B, T, C]` with factors of bf16 to `N` tensors `[B, H, T, D]`, each with its number of heads.
pub(crate) fn heads_of_map<const N: usize>(
    x: Tensor<3>,
    LinearMap { weight, bias }: LinearMap,
    heads: [usize; N],
    head_dim: usize,
) -> [Tensor<4>; N] {
    let gradient = SharedGradient::default();
    let columns = heads.map(|heads| heads * head_dim).to_vec();
    let operation = WholeMap { gradient: gradient.clone(), columns };
    let [x, weight] = [x.into_dispatch(), weight.into_dispatch()];
    let whole: Tensor<3> = match bias {
        Some(bias) => apply(operation, [x, weight, bias.into_dispatch()]),
        None => apply(operation, [x, weight]),
    };
    let mut first = 0;
    heads.map(|heads| {
        let part = PartOfMap { gradient: gradient.clone(), heads, head_dim, first };
        first += heads * head_dim;
        apply(part, [whole.clone().into_dispatch()])
    })
}

/// Gradient of the whole output, of which each part writes its columns; `None` before the first does.
#[derive(Debug, Clone, Default)]
struct SharedGradient(Arc<Mutex<Option<WrittenColumns>>>);

/// Gradient of the whole output, and the first column of each part that has written.
#[derive(Debug)]
struct WrittenColumns {
    rounded: RoundedColumns,
    firsts: Vec<usize>,
}

impl SharedGradient {
    /// Writes columns of the gradient; returns the gradient to the first part that writes.
    fn write(&self, grad: CubeTensor, wide: usize, first: usize) -> Option<CubeTensor> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [batch, tokens, heads, head_dim] = grad.meta.shape().dims();
        let (rows, columns) = (batch * tokens, heads * head_dim);
        let is_first = shared.is_none();
        let written = shared.get_or_insert_with(|| WrittenColumns {
            rounded: RoundedColumns::new(&grad, rows, wide),
            firsts: Vec::new(),
        });
        written.rounded.write(grad, rows, columns, first);
        written.firsts.push(first);
        is_first.then(|| written.rounded.matrix.clone())
    }

    /// Returns the gradient of `rows` rows, whose parts have so many columns; that of a part without a gradient is zero.
    fn take(&self, rows: usize, columns: &[usize]) -> RoundedColumns {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(WrittenColumns { rounded, firsts }) = taken else {
            unreachable!("a gradient of the whole before that of a part");
        };
        let mut first = 0;
        for columns in columns {
            if !firsts.contains(&first) {
                let device = &rounded.matrix.device;
                let zeros = Cube::float_zeros([rows, *columns].into(), device, FloatDType::F32);
                rounded.write(into_contiguous(zeros), rows, *columns, first);
            }
            first += columns;
        }
        rounded
    }
}

/// The map. The gradient of its output is a [`SharedGradient`].
#[derive(Debug, Clone)]
struct WholeMap {
    gradient: SharedGradient,
    /// Columns of each part.
    columns: Vec<usize>,
}

/// Factors of the forward pass in bf16.
#[derive(Debug, Clone)]
struct MapFactors {
    x: CubeTensor,
    weight: CubeTensor,
    tokens: [usize; 2],
    sizes: MapSizes,
}

impl WholeMap {
    fn output(
        &self,
        x: CubeTensor,
        weight: CubeTensor,
        bias: Option<CubeTensor>,
    ) -> (CubeTensor, MapFactors) {
        let [batch, tokens, inputs] = x.meta.shape().dims();
        let [_inputs, outputs] = weight.meta.shape().dims();
        let sizes = MapSizes { rows: batch * tokens, inputs, outputs };
        let x = rounded_rows(x, sizes.rows, inputs);
        let weight = rounded_rows(weight, inputs, outputs);
        let output = map::output(x.clone(), weight.clone(), bias, sizes, DType::F32);
        let output = Cube::float_reshape(output, [batch, tokens, outputs].into());
        (output, MapFactors { x, weight, tokens: [batch, tokens], sizes })
    }

    /// Gradients of the input, the weight and the bias, if they are needed.
    fn gradients(
        &self,
        MapFactors { x, weight, tokens: [batch, tokens], sizes }: MapFactors,
        [of_x, of_weight, of_bias]: [bool; 3],
    ) -> [Option<CubeTensor>; 3] {
        let rounded = self.gradient.take(sizes.rows, &self.columns);
        let grad = rounded.matrix.clone();
        let of_x = of_x.then(|| {
            let of_x = map::input_gradient(grad.clone(), weight, sizes, DType::F32);
            Cube::float_reshape(of_x, [batch, tokens, sizes.inputs].into())
        });
        let of_weight = of_weight.then(|| map::weight_gradient(x, grad, sizes));
        [of_x, of_weight, of_bias.then(|| rounded.sum())]
    }
}

impl CubeOperation<2> for WholeMap {
    type Kept = MapFactors;

    fn forward(&self, [x, weight]: [CubeTensor; 2]) -> (CubeTensor, MapFactors) {
        self.output(x, weight, None)
    }

    fn backward(
        &self,
        factors: MapFactors,
        _shared: CubeTensor,
        [of_x, of_weight]: [bool; 2],
    ) -> [Option<CubeTensor>; 2] {
        let [of_x, of_weight, _] = self.gradients(factors, [of_x, of_weight, false]);
        [of_x, of_weight]
    }
}

impl CubeOperation<3> for WholeMap {
    type Kept = MapFactors;

    fn forward(&self, [x, weight, bias]: [CubeTensor; 3]) -> (CubeTensor, MapFactors) {
        self.output(x, weight, Some(bias))
    }

    fn backward(
        &self,
        factors: MapFactors,
        _shared: CubeTensor,
        needed: [bool; 3],
    ) -> [Option<CubeTensor>; 3] {
        self.gradients(factors, needed)
    }
}

/// Heads from column `first` on: a view, where the device can address it.
#[derive(Debug, Clone)]
struct PartOfMap {
    gradient: SharedGradient,
    heads: usize,
    head_dim: usize,
    first: usize,
}

impl CubeOperation<1> for PartOfMap {
    /// Width of the whole output.
    type Kept = usize;

    const STRIDED: bool = true;

    fn forward(&self, [whole]: [CubeTensor; 1]) -> (CubeTensor, usize) {
        let [batch, tokens, wide] = whole.meta.shape().dims();
        let all = [batch, tokens, wide / self.head_dim, self.head_dim];
        let first = self.first / self.head_dim;
        let heads = Slice::from(first..first + self.heads);
        let part = Cube::float_slice(
            Cube::float_reshape(whole, all.into()),
            &[Slice::from(..), Slice::from(..), heads],
        );
        (Cube::float_swap_dims(part, 1, 2), wide)
    }

    fn backward(&self, wide: usize, grad: CubeTensor, _: [bool; 1]) -> [Option<CubeTensor>; 1] {
        let grad = into_contiguous(Cube::float_swap_dims(grad, 1, 2));
        [self.gradient.write(grad, wide, self.first)]
    }
}

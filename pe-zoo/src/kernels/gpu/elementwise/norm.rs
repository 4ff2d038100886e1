//! Layer and root mean square normalisation of rows.

use burn::tensor::Tensor;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::sums::{sum_of_rows, sum_of_units};
use super::{cubes, empty, last_axis, units_of_row};
use crate::kernels::gpu::operation::{CubeOperation, apply};

/// Layer normalisation over the last axis with `beta`, root mean square normalisation without; `gamma` and `beta` are `[C]`.
pub(crate) fn norm<const D: usize>(
    x: Tensor<D>,
    gamma: Tensor<1>,
    beta: Option<Tensor<1>>,
    epsilon: f64,
) -> Tensor<D> {
    let epsilon = epsilon as f32;
    let (x, gamma) = (x.into_dispatch(), gamma.into_dispatch());
    match beta {
        Some(beta) => apply(LayerNorm { epsilon }, [x, gamma, beta.into_dispatch()]),
        None => apply(RmsNorm { epsilon }, [x, gamma]),
    }
}

#[derive(Debug, Clone)]
struct LayerNorm {
    epsilon: f32,
}

#[derive(Debug, Clone)]
struct RmsNorm {
    epsilon: f32,
}

/// Tensors that the backward pass needs.
#[derive(Debug, Clone)]
struct NormInputs {
    x: CubeTensor,
    gamma: CubeTensor,
    /// Mean of each row, 0 without centring, and the inverse of its spread, `[R, 2]`.
    moments: CubeTensor,
}

impl CubeOperation<3> for LayerNorm {
    type Kept = NormInputs;

    fn forward(&self, [x, gamma, beta]: [CubeTensor; 3]) -> (CubeTensor, NormInputs) {
        forward(x, gamma, Some(beta), self.epsilon)
    }

    fn backward(
        &self,
        kept: NormInputs,
        grad: CubeTensor,
        _: [bool; 3],
    ) -> [Option<CubeTensor>; 3] {
        let (of_x, [of_gamma, of_beta]) = backward(kept, grad, true);
        [Some(of_x), of_gamma, of_beta]
    }
}

impl CubeOperation<2> for RmsNorm {
    type Kept = NormInputs;

    fn forward(&self, [x, gamma]: [CubeTensor; 2]) -> (CubeTensor, NormInputs) {
        forward(x, gamma, None, self.epsilon)
    }

    fn backward(
        &self,
        kept: NormInputs,
        grad: CubeTensor,
        _: [bool; 2],
    ) -> [Option<CubeTensor>; 2] {
        let (of_x, [of_gamma, _]) = backward(kept, grad, false);
        [Some(of_x), of_gamma]
    }
}

/// Sizes that are fixed when the kernels are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct NormConfig {
    /// Whether the mean is subtracted, and `beta` added.
    centred: bool,
    units: usize,
    /// Columns of a unit.
    each: usize,
}

impl NormConfig {
    fn of(width: usize, centred: bool) -> Self {
        let units = units_of_row(width);
        Self { centred, units, each: width.div_ceil(units) }
    }
}

fn forward(
    x: CubeTensor,
    gamma: CubeTensor,
    beta: Option<CubeTensor>,
    epsilon: f32,
) -> (CubeTensor, NormInputs) {
    let width = last_axis(&x);
    let rows = x.meta.shape().num_elements() / width;
    let config = NormConfig::of(width, beta.is_some());
    let output = empty(&x, x.meta.shape().clone());
    let moments = empty(&x, [rows, 2]);
    let (count, dim) = cubes(&x.client, rows, config.units);
    norm_forward::launch(
        &x.client.clone(),
        count,
        dim,
        x.clone().into_buffer_arg(),
        gamma.clone().into_buffer_arg(),
        beta.unwrap_or_else(|| gamma.clone()).into_buffer_arg(),
        output.clone().into_buffer_arg(),
        moments.clone().into_buffer_arg(),
        rows,
        width,
        epsilon,
        config,
    );
    (output, NormInputs { x, gamma, moments })
}

/// Cubes of a backward pass, which fill a GPU several times.
const CUBES: usize = 1024;

/// Rows whose contributions to the gradients of `gamma` and `beta` a cube adds up.
fn rows_each(rows: usize) -> usize {
    rows.div_ceil(CUBES).clamp(8, 64)
}

/// Gradients of the input, and of `gamma` and `beta`.
fn backward(
    NormInputs { x, gamma, moments }: NormInputs,
    grad: CubeTensor,
    centred: bool,
) -> (CubeTensor, [Option<CubeTensor>; 2]) {
    let width = last_axis(&x);
    let rows = x.meta.shape().num_elements() / width;
    let config = NormConfig::of(width, centred);
    let of_x = empty(&x, x.meta.shape().clone());
    let each = rows_each(rows);
    let parts = rows.div_ceil(each);
    let of_gamma = empty(&x, [parts, width]);
    let of_beta = if centred { empty(&x, [parts, width]) } else { of_gamma.clone() };
    let (count, dim) = cubes(&x.client, parts, config.units);
    norm_backward::launch(
        &x.client.clone(),
        count,
        dim,
        x.into_buffer_arg(),
        gamma.into_buffer_arg(),
        moments.into_buffer_arg(),
        grad.into_buffer_arg(),
        of_x.clone().into_buffer_arg(),
        of_gamma.clone().into_buffer_arg(),
        of_beta.clone().into_buffer_arg(),
        rows,
        each,
        width,
        config,
    );
    let of_beta = centred.then(|| sum_of_rows(of_beta, parts, width));
    (of_x, [Some(sum_of_rows(of_gamma, parts, width)), of_beta])
}

/// A cube computes a row.
#[cube(launch)]
#[expect(clippy::too_many_arguments, reason = "tensors and sizes of a launch")]
fn norm_forward(
    x: &[f32],
    gamma: &[f32],
    beta: &[f32],
    output: &mut [f32],
    moments: &mut [f32],
    rows: usize,
    width: usize,
    epsilon: f32,
    #[comptime] config: NormConfig,
) {
    let row = CUBE_POS;
    let unit = UNIT_POS as usize;
    let mut shared = Shared::<[f32]>::new_slice(comptime![config.units]);
    if row < rows {
        let mut values = Array::<f32>::new(comptime![config.each]);
        let mut sum = f32::new(0.0);
        #[unroll]
        for n in 0..comptime![config.each] {
            let column = unit + n * comptime![config.units];
            values[n] = f32::new(0.0);
            if column < width {
                values[n] = x[row * width + column];
                sum += values[n];
            }
        }
        let count = f32::cast_from(width);
        let mut mean = f32::new(0.0);
        if comptime![config.centred] {
            mean = sum_of_units(sum, &mut shared, comptime![config.units]) / count;
        }
        let mut squares = f32::new(0.0);
        #[unroll]
        for n in 0..comptime![config.each] {
            if unit + n * comptime![config.units] < width {
                let apart = values[n] - mean;
                squares += apart * apart;
            }
        }
        let variance = sum_of_units(squares, &mut shared, comptime![config.units]) / count;
        let inverse = 1.0 / f32::sqrt(variance + epsilon);
        #[unroll]
        for n in 0..comptime![config.each] {
            let column = unit + n * comptime![config.units];
            if column < width {
                let mut value = (values[n] - mean) * inverse * gamma[column];
                if comptime![config.centred] {
                    value += beta[column];
                }
                output[row * width + column] = value;
            }
        }
        if unit == 0 {
            moments[row * 2] = mean;
            moments[row * 2 + 1] = inverse;
        }
    }
}

/// A cube computes `each` rows of `of_x`, and their sums for `of_gamma` and `of_beta`.
#[cube(launch)]
#[expect(clippy::too_many_arguments, reason = "tensors and sizes of a launch")]
fn norm_backward(
    x: &[f32],
    gamma: &[f32],
    moments: &[f32],
    grad: &[f32],
    of_x: &mut [f32],
    of_gamma: &mut [f32],
    of_beta: &mut [f32],
    rows: usize,
    each: usize,
    width: usize,
    #[comptime] config: NormConfig,
) {
    let part = CUBE_POS;
    let unit = UNIT_POS as usize;
    let mut shared = Shared::<[f32]>::new_slice(comptime![config.units]);
    let mut gammas = Array::<f32>::new(comptime![config.each]);
    let mut betas = Array::<f32>::new(comptime![config.each]);
    #[unroll]
    for n in 0..comptime![config.each] {
        gammas[n] = f32::new(0.0);
        betas[n] = f32::new(0.0);
    }
    let count = f32::cast_from(width);
    let end = min(rows, (part + 1) * each);
    let mut row = part * each;
    while row < end {
        let mean = moments[row * 2];
        let inverse = moments[row * 2 + 1];
        let mut values = Array::<f32>::new(comptime![config.each]);
        let mut grads = Array::<f32>::new(comptime![config.each]);
        let mut sum = f32::new(0.0);
        let mut product = f32::new(0.0);
        #[unroll]
        for n in 0..comptime![config.each] {
            let column = unit + n * comptime![config.units];
            values[n] = f32::new(0.0);
            grads[n] = f32::new(0.0);
            if column < width {
                values[n] = (x[row * width + column] - mean) * inverse;
                let above = grad[row * width + column];
                gammas[n] = gammas[n] + above * values[n];
                betas[n] = betas[n] + above;
                grads[n] = above * gamma[column];
                sum += grads[n];
                product += grads[n] * values[n];
            }
        }
        let product = sum_of_units(product, &mut shared, comptime![config.units]) / count;
        let mut mean_grad = f32::new(0.0);
        if comptime![config.centred] {
            mean_grad = sum_of_units(sum, &mut shared, comptime![config.units]) / count;
        }
        #[unroll]
        for n in 0..comptime![config.each] {
            let column = unit + n * comptime![config.units];
            if column < width {
                of_x[row * width + column] = (grads[n] - mean_grad - values[n] * product) * inverse;
            }
        }
        row += 1;
    }
    if part * each < rows {
        #[unroll]
        for n in 0..comptime![config.each] {
            let column = unit + n * comptime![config.units];
            if column < width {
                of_gamma[part * width + column] = gammas[n];
                if comptime![config.centred] {
                    of_beta[part * width + column] = betas[n];
                }
            }
        }
    }
}

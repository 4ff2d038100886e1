//! Negative log-likelihood of each row's label.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::tensor::{Int, Tensor};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::sums::{largest_of_units, sum_of_units};
use super::{cubes, empty, integers, last_axis, units_of_row};
use crate::kernels::gpu::operation::{CubeOperation, apply};

/// Negative log-likelihood of each row's label under the softmax of its logits, `[N, V], [N] -> [N]`. NaN if the label is
/// negative or at least `V`.
pub(crate) fn cross_entropy(logits: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
    let labels = into_contiguous(integers(labels.into_dispatch()));
    apply(CubeEntropy { labels }, [logits.into_dispatch()])
}

#[derive(Debug, Clone)]
struct CubeEntropy {
    labels: CubeTensor,
}

/// Logits, and the logarithm of each row's sum of exponentials in two parts, `[N, 2]`: the largest logit, and the
/// logarithm of the sum relative to it. Differences from it keep their digits that way.
#[derive(Debug, Clone)]
struct EntropyInputs {
    logits: CubeTensor,
    log_sums: CubeTensor,
}

impl CubeOperation<1> for CubeEntropy {
    type Kept = EntropyInputs;

    fn forward(&self, [logits]: [CubeTensor; 1]) -> (CubeTensor, EntropyInputs) {
        let width = last_axis(&logits);
        let rows = logits.meta.shape().num_elements() / width;
        let (losses, log_sums) = (empty(&logits, [rows]), empty(&logits, [rows, 2]));
        let units = units_of_row(width);
        let (count, dim) = cubes(&logits.client, rows, units);
        entropy_forward::launch(
            &logits.client.clone(),
            count,
            dim,
            logits.clone().into_buffer_arg(),
            self.labels.clone().into_buffer_arg(),
            losses.clone().into_buffer_arg(),
            log_sums.clone().into_buffer_arg(),
            rows,
            width,
            f32::NAN,
            units,
            dtype_to_storage_type(self.labels.dtype),
        );
        (losses, EntropyInputs { logits, log_sums })
    }

    fn backward(
        &self,
        EntropyInputs { logits, log_sums }: EntropyInputs,
        grad: CubeTensor,
        _: [bool; 1],
    ) -> [Option<CubeTensor>; 1] {
        let width = last_axis(&logits);
        let rows = logits.meta.shape().num_elements() / width;
        let output = empty(&logits, [rows, width]);
        let (count, dim) = cubes(&logits.client, rows, units_of_row(width));
        entropy_backward::launch(
            &logits.client.clone(),
            count,
            dim,
            logits.into_buffer_arg(),
            self.labels.clone().into_buffer_arg(),
            log_sums.into_buffer_arg(),
            grad.into_buffer_arg(),
            output.clone().into_buffer_arg(),
            rows,
            width,
            dtype_to_storage_type(self.labels.dtype),
        );
        [Some(output)]
    }
}

/// A cube computes a row.
#[cube(launch)]
#[expect(clippy::too_many_arguments, reason = "tensors and sizes of a launch")]
fn entropy_forward<I: Numeric>(
    logits: &[f32],
    labels: &[I],
    losses: &mut [f32],
    log_sums: &mut [f32],
    rows: usize,
    width: usize,
    // An argument, because not every shading language can express it.
    nan: f32,
    #[comptime] units: usize,
    #[define(I)] _labels: ElemType,
) {
    let row = CUBE_POS;
    let unit = UNIT_POS as usize;
    let mut shared = Shared::<[f32]>::new_slice(units);
    if row < rows {
        let mut largest = logits[row * width];
        let mut column = unit;
        while column < width {
            largest = max(largest, logits[row * width + column]);
            column += units;
        }
        let largest = largest_of_units(largest, &mut shared, units);
        let mut sum = f32::new(0.0);
        let mut column = unit;
        while column < width {
            sum += f32::exp(logits[row * width + column] - largest);
            column += units;
        }
        let rest = f32::ln(sum_of_units(sum, &mut shared, units));
        if unit == 0 {
            log_sums[row * 2] = largest;
            log_sums[row * 2 + 1] = rest;
            let label = i32::cast_from(labels[row]);
            let mut loss = nan;
            if label >= 0 && label < i32::cast_from(width) {
                loss = rest - (logits[row * width + usize::cast_from(label)] - largest);
            }
            losses[row] = loss;
        }
    }
}

/// A cube computes a row of `grad (softmax(logits) - 1 at the label)`.
#[cube(launch)]
#[expect(clippy::too_many_arguments, reason = "tensors and sizes of a launch")]
fn entropy_backward<I: Numeric>(
    logits: &[f32],
    labels: &[I],
    log_sums: &[f32],
    grad: &[f32],
    output: &mut [f32],
    rows: usize,
    width: usize,
    #[define(I)] _labels: ElemType,
) {
    let row = CUBE_POS;
    if row < rows {
        let largest = log_sums[row * 2];
        let rest = log_sums[row * 2 + 1];
        let above = grad[row];
        let label = i32::cast_from(labels[row]);
        let mut column = UNIT_POS as usize;
        while column < width {
            let mut share = f32::exp((logits[row * width + column] - largest) - rest);
            if i32::cast_from(column) == label {
                share -= 1.0;
            }
            output[row * width + column] = share * above;
            column += CUBE_DIM as usize;
        }
    }
}

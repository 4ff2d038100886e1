//! Running sums along rows in f64, rounded to f32, and what the rounding loses.

use burn::tensor::{DType, Tensor};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::{UNITS, cubes, empty, last_axis};
use crate::kernels::gpu::operation::{CubeOperation, apply};

/// Numbers that a cube adds at once, one for each unit.
const AT_ONCE: usize = UNITS as usize;

/// Sums of `x[.., ..=t]` rounded to f32, with their gradient.
pub(crate) fn running_sums(x: Tensor<3>) -> Tensor<3> {
    apply(RunningSums { part: ScanResult::Rounded }, [x.into_dispatch()])
}

/// Rounding errors of [`running_sums`], without a gradient.
pub(crate) fn lost_of_running_sums(x: Tensor<3>) -> Tensor<3> {
    apply(RunningSums { part: ScanResult::Lost }, [x.detach().into_dispatch()])
}

/// Whether the device of a tensor computes in f64, as [`running_sums`] does.
pub(crate) fn has_running_sums(x: &Tensor<3>) -> bool {
    super::supports(x) && x.device().inner().supports_dtype(DType::F64)
}

/// Number of each sum that a launch writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ScanResult {
    Rounded,
    Lost,
}

/// Order in which a row is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ScanOrder {
    Forward,
    Backward,
}

#[derive(Debug, Clone)]
struct RunningSums {
    part: ScanResult,
}

impl CubeOperation<1> for RunningSums {
    type Kept = ();

    fn forward(&self, [x]: [CubeTensor; 1]) -> (CubeTensor, ()) {
        (scanned(x, self.part, ScanOrder::Forward), ())
    }

    fn backward(&self, (): (), grad: CubeTensor, _: [bool; 1]) -> [Option<CubeTensor>; 1] {
        [(self.part == ScanResult::Rounded)
            .then(|| scanned(grad, ScanResult::Rounded, ScanOrder::Backward))]
    }
}

fn scanned(x: CubeTensor, part: ScanResult, direction: ScanOrder) -> CubeTensor {
    let len = last_axis(&x);
    let rows = x.meta.shape().num_elements() / len;
    let output = empty(&x, x.meta.shape().clone());
    let (count, dim) = cubes(&x.client, rows, AT_ONCE);
    let to = output.clone().into_buffer_arg();
    scan_rows::launch(
        &x.client.clone(),
        count,
        dim,
        x.into_buffer_arg(),
        to,
        rows,
        len,
        part,
        direction,
    );
    output
}

/// A cube adds up a row, [`AT_ONCE`] numbers at once (Hillis and Steele's scan).
#[cube(launch)]
fn scan_rows(
    x: &[f32],
    output: &mut [f32],
    rows: usize,
    len: usize,
    #[comptime] part: ScanResult,
    #[comptime] direction: ScanOrder,
) {
    let row = CUBE_POS;
    let unit = UNIT_POS as usize;
    let mut sums = Shared::<[f64]>::new_slice(comptime![2 * AT_ONCE]);
    if row < rows {
        let mut before = f64::new(0.0);
        for chunk in 0..len.div_ceil(AT_ONCE) {
            let at = chunk * AT_ONCE + unit;
            let mut place = row * len + at;
            if comptime![direction == ScanOrder::Backward] {
                place = row * len + len - 1 - at;
            }
            let mut own = f64::new(0.0);
            if at < len {
                own = f64::cast_from(x[place]);
            }
            if unit == 0 {
                own += before;
            }
            sums[unit] = own;
            sync_cube();
            #[unroll]
            for doubling in 0..comptime![AT_ONCE.ilog2() as usize] {
                let distance = comptime![1 << doubling];
                let from = comptime![doubling % 2 * AT_ONCE];
                let to = comptime![(doubling + 1) % 2 * AT_ONCE];
                if unit >= distance {
                    own += sums[from + unit - distance];
                }
                sums[to + unit] = own;
                sync_cube();
            }
            before = sums[comptime![AT_ONCE.ilog2() as usize % 2 * AT_ONCE + AT_ONCE - 1]];
            if at < len {
                let rounded = f32::cast_from(own);
                if comptime![part == ScanResult::Rounded] {
                    output[place] = rounded;
                } else {
                    output[place] = f32::cast_from(own - f64::cast_from(rounded));
                }
            }
            sync_cube();
        }
    }
}

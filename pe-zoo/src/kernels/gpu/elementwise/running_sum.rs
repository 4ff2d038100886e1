//! Running sums along rows, as pairs of f32 whose unevaluated sum has twice the digits.

use burn::tensor::Tensor;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::{UNITS, cubes, empty, last_axis};
use crate::kernels::gpu::operation::{CubeOperation, apply};

/// Numbers that a cube adds at once, one for each unit.
const AT_ONCE: usize = UNITS as usize;

/// Sums of `x[.., ..=t]` rounded to f32, with their gradient.
pub(crate) fn running_sums(x: Tensor<3>) -> Tensor<3> {
    apply(RunningSums { part: Part::Rounded }, [x.into_dispatch()])
}

/// Rounding errors of [`running_sums`], without a gradient.
pub(crate) fn lost_of_running_sums(x: Tensor<3>) -> Tensor<3> {
    apply(RunningSums { part: Part::Lost }, [x.detach().into_dispatch()])
}

/// Part of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Rounded,
    Lost,
}

/// Order of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Order {
    Forward,
    Backward,
}

#[derive(Debug, Clone)]
struct RunningSums {
    part: Part,
}

impl CubeOperation<1> for RunningSums {
    type Kept = ();

    fn forward(&self, [x]: [CubeTensor; 1]) -> (CubeTensor, ()) {
        (scanned(x, self.part, Order::Forward), ())
    }

    fn backward(&self, (): (), grad: CubeTensor, _: [bool; 1]) -> [Option<CubeTensor>; 1] {
        [(self.part == Part::Rounded).then(|| scanned(grad, Part::Rounded, Order::Backward))]
    }
}

fn scanned(x: CubeTensor, part: Part, order: Order) -> CubeTensor {
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
        order,
    );
    output
}

/// An unevaluated sum.
#[derive(CubeType, Clone, Copy)]
struct Pair {
    high: f32,
    low: f32,
}

/// Adds two pairs: Knuth's two-sum of the high parts, whose error is added to the low parts.
#[cube]
fn add_pairs(a: Pair, b: Pair) -> Pair {
    let sum = a.high + b.high;
    let b_seen = sum - a.high;
    let a_seen = sum - b_seen;
    let error = (a.high - a_seen) + (b.high - b_seen) + a.low + b.low;
    let high = sum + error;
    Pair { high, low: error - (high - sum) }
}

/// A cube adds up a row, [`AT_ONCE`] numbers at once (Hillis and Steele's scan).
#[cube(launch)]
fn scan_rows(
    x: &[f32],
    output: &mut [f32],
    rows: usize,
    len: usize,
    #[comptime] part: Part,
    #[comptime] order: Order,
) {
    let row = CUBE_POS;
    let unit = UNIT_POS as usize;
    let mut high = Shared::<[f32]>::new_slice(comptime![2 * AT_ONCE]);
    let mut low = Shared::<[f32]>::new_slice(comptime![2 * AT_ONCE]);
    if row < rows {
        let mut before = Pair { high: f32::new(0.0), low: f32::new(0.0) };
        for chunk in 0..len.div_ceil(AT_ONCE) {
            let at = chunk * AT_ONCE + unit;
            let mut place = row * len + at;
            if comptime![order == Order::Backward] {
                place = row * len + len - 1 - at;
            }
            let mut own = Pair { high: f32::new(0.0), low: f32::new(0.0) };
            if at < len {
                own.high = x[place];
            }
            if unit == 0 {
                own = add_pairs(own, before);
            }
            high[unit] = own.high;
            low[unit] = own.low;
            sync_cube();
            #[unroll]
            for doubling in 0..comptime![AT_ONCE.ilog2() as usize] {
                let distance = comptime![1 << doubling];
                let from = comptime![doubling % 2 * AT_ONCE];
                let to = comptime![(doubling + 1) % 2 * AT_ONCE];
                if unit >= distance {
                    let earlier = from + unit - distance;
                    own = add_pairs(own, Pair { high: high[earlier], low: low[earlier] });
                }
                high[to + unit] = own.high;
                low[to + unit] = own.low;
                sync_cube();
            }
            let last = comptime![AT_ONCE.ilog2() as usize % 2 * AT_ONCE + AT_ONCE - 1];
            before = Pair { high: high[last], low: low[last] };
            if at < len {
                if comptime![part == Part::Rounded] {
                    output[place] = own.high;
                } else {
                    output[place] = own.low;
                }
            }
            sync_cube();
        }
    }
}

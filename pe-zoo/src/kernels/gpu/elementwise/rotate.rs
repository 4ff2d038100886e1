//! Rotation of channel pairs by constant angles.

use burn::tensor::Tensor;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::{cubes_of_units, together};
use crate::kernels::gpu::heads::{by_token, rows_of};
use crate::kernels::gpu::operation::{CubeOperation, apply};
use crate::kernels::pairs::Pairs;

/// Rotates each pair of channels of `x`, `[B, H, T, D]`; `cos` and `sin` are `[T, D / 2]`.
pub(crate) fn rotate(x: Tensor<4>, cos: Tensor<2>, sin: Tensor<2>, pairs: Pairs) -> Tensor<4> {
    let inputs = [x.into_dispatch(), cos.into_dispatch(), sin.into_dispatch()];
    apply(CubeRotate { pairs }, inputs)
}

#[derive(Debug, Clone)]
struct CubeRotate {
    pairs: Pairs,
}

impl CubeOperation<3> for CubeRotate {
    const STRIDED: bool = true;

    type Kept = Turn;

    fn forward(&self, [x, cos, sin]: [CubeTensor; 3]) -> (CubeTensor, Turn) {
        let turn = Turn { cos: into_contiguous(cos), sin: into_contiguous(sin) };
        (turned(x, turn.clone(), self.pairs, 1.0), turn)
    }

    fn backward(&self, turn: Turn, grad: CubeTensor, _: [bool; 3]) -> [Option<CubeTensor>; 3] {
        [Some(turned(grad, turn, self.pairs, -1.0)), None, None]
    }
}

/// Cosines and sines of the angles, contiguous.
#[derive(Debug, Clone)]
struct Turn {
    cos: CubeTensor,
    sin: CubeTensor,
}

/// `x` rotated by the angles times `direction`, which is 1 or -1.
fn turned(x: CubeTensor, turn: Turn, pairs: Pairs, direction: f32) -> CubeTensor {
    let shape = x.meta.shape().dims::<4>();
    let [batch, heads, tokens, width] = shape;
    let x = if rows_of(&x, 1) { x } else { into_contiguous(x) };
    let most = together(width / 2, x.dtype);
    let size = if rows_of(&x, most) { most } else { 1 };
    let half = width / 2 / size;
    let count = batch * tokens * heads * half;
    let output = by_token(&x, shape);
    let (cubes, dim) = cubes_of_units(&x.client, count);
    rotate_pairs::launch(
        &x.client.clone(),
        cubes,
        dim,
        size,
        x.into_tensor_arg(),
        turn.cos.into_buffer_arg(),
        turn.sin.into_buffer_arg(),
        output.clone().into_buffer_arg(),
        count,
        direction,
        half,
        pairs == Pairs::Interleaved,
    );
    output
}

/// Each unit rotates the channels of two vectors. `output` is `[B, T, H, D]`; half of a row are `half` vectors.
#[cube(launch)]
#[expect(clippy::too_many_arguments, reason = "tensors and sizes of a launch")]
fn rotate_pairs<N: Size>(
    x: &cubecl::prelude::Tensor<Vector<f32, N>>,
    cos: &[Vector<f32, N>],
    sin: &[Vector<f32, N>],
    output: &mut [Vector<f32, N>],
    count: usize,
    direction: f32,
    #[comptime] half: usize,
    #[comptime] interleaved: bool,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let pairs = at % half;
        let row = at / half;
        let head = row % x.shape(1);
        let token = row / x.shape(1) % x.shape(2);
        let batch = row / x.shape(1) / x.shape(2);
        let place = batch * x.stride(0) + head * x.stride(1) + token * x.stride(2);
        let from = place / N::value();
        let to = row * comptime![2 * half];
        let angles = token * half + pairs;
        let cosine = cos[angles];
        let sine = sin[angles] * Vector::new(direction);
        if comptime![interleaved] {
            let left = x[from + 2 * pairs];
            let right = x[from + 2 * pairs + 1];
            let a = every_second::<N>(left, right, 0usize);
            let b = every_second::<N>(left, right, 1usize);
            let c = a * cosine - b * sine;
            let d = a * sine + b * cosine;
            output[to + 2 * pairs] = by_turns::<N>(c, d, 0usize);
            output[to + 2 * pairs + 1] = by_turns::<N>(c, d, N::value().comptime());
        } else {
            let a = x[from + pairs];
            let b = x[from + pairs + half];
            output[to + pairs] = a * cosine - b * sine;
            output[to + pairs + half] = a * sine + b * cosine;
        }
    }
}

/// Every second of the numbers of two vectors, from number `begin` of the first.
#[cube]
fn every_second<N: Size>(
    left: Vector<f32, N>,
    right: Vector<f32, N>,
    #[comptime] begin: usize,
) -> Vector<f32, N> {
    let size = N::value().comptime();
    let mut numbers = Vector::empty();
    #[unroll]
    for at in 0..size {
        let place = comptime![begin + 2 * at];
        if comptime![place < size] {
            numbers.insert(at, left.extract(place));
        } else {
            numbers.insert(at, right.extract(comptime![place - size]));
        }
    }
    numbers
}

/// A vector of the numbers of two vectors by turns, from their number `begin`.
#[cube]
fn by_turns<N: Size>(
    a: Vector<f32, N>,
    b: Vector<f32, N>,
    #[comptime] begin: usize,
) -> Vector<f32, N> {
    let size = N::value().comptime();
    let mut numbers = Vector::empty();
    #[unroll]
    for at in 0..size {
        let place = comptime![begin + at];
        if comptime![place % 2 == 0] {
            numbers.insert(at, a.extract(comptime![place / 2]));
        } else {
            numbers.insert(at, b.extract(comptime![place / 2]));
        }
    }
    numbers
}

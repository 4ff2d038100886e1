//! Rotation of channel pairs by constant angles.

use burn::tensor::Tensor;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::{cubes_of_units, empty, last_axis};
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
    /// Cosines and sines.
    type Kept = [CubeTensor; 2];

    fn forward(&self, [x, cos, sin]: [CubeTensor; 3]) -> (CubeTensor, Self::Kept) {
        let by = [cos, sin];
        (turned(x, by.clone(), self.pairs, 1.0), by)
    }

    fn backward(&self, by: Self::Kept, grad: CubeTensor, _: [bool; 3]) -> [Option<CubeTensor>; 3] {
        [Some(turned(grad, by, self.pairs, -1.0)), None, None]
    }
}

/// `x` rotated by the angles times `direction`, which is 1 or -1.
fn turned(x: CubeTensor, [cos, sin]: [CubeTensor; 2], pairs: Pairs, direction: f32) -> CubeTensor {
    let half = last_axis(&x) / 2;
    let (count, angles) = (x.meta.shape().num_elements() / 2, cos.meta.shape().num_elements());
    let output = empty(&x, x.meta.shape().clone());
    let (cubes, dim) = cubes_of_units(&x.client, count);
    rotate_pairs::launch(
        &x.client.clone(),
        cubes,
        dim,
        x.into_buffer_arg(),
        cos.into_buffer_arg(),
        sin.into_buffer_arg(),
        output.clone().into_buffer_arg(),
        count,
        angles,
        half,
        direction,
        pairs == Pairs::Interleaved,
    );
    output
}

/// Each unit rotates a pair.
#[cube(launch)]
#[expect(clippy::too_many_arguments, reason = "tensors and sizes of a launch")]
fn rotate_pairs(
    x: &[f32],
    cos: &[f32],
    sin: &[f32],
    output: &mut [f32],
    count: usize,
    angles: usize,
    half: usize,
    direction: f32,
    #[comptime] interleaved: bool,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let pair = at % half;
        let row = (at - pair) * 2;
        let mut first = row + pair;
        let mut second = first + half;
        if comptime![interleaved] {
            first = row + 2 * pair;
            second = first + 1;
        }
        let angle = at % angles;
        let cosine = cos[angle];
        let sine = sin[angle] * direction;
        let a = x[first];
        let b = x[second];
        output[first] = a * cosine - b * sine;
        output[second] = a * sine + b * cosine;
    }
}

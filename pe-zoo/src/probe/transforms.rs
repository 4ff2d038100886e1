//! Experiments on the transforms of queries and keys.

use burn::tensor::Tensor;

use super::close::{self, F32_REORDERED, Tolerance, numbers};
use super::device;
use super::passes::TOKENS;
use super::problem::{Problem, tensor3, tensor4};
use crate::Dims;
use crate::attention::in_layer;
use crate::erased::{AnyEncoding, Hooks};

/// Tolerance for outputs of rotations by f32 angles of a few dozen radians.
pub(super) const SHIFTED: Tolerance = Tolerance { absolute: 1e-4, relative: 1e-4 };

/// Whether the transform multiplies each query, of any width, by a factor that depends on its position and head alone, and
/// leaves keys unchanged.
pub(super) fn scales_rows(encoding: &dyn Hooks, dims: &Dims) -> bool {
    let device = device();
    let x = tensor3(&Problem::random(1, TOKENS, dims, 16).x, &device);
    [dims.head_dim, 2 * dims.head_dim].into_iter().all(|head_dim| {
        let problem = Problem::random(1, TOKENS, &Dims { head_dim, ..*dims }, 16);
        let (q, k) = (tensor4(&problem.q, &device), tensor4(&problem.k, &device));
        (0..dims.layers).all(|layer| {
            in_layer(encoding, layer, &x, |ctx| {
                let (factors, _) = encoding.transform_qk(q.ones_like(), k.clone(), ctx);
                let (queries, keys) = encoding.transform_qk(q.clone(), k.clone(), ctx);
                if queries.dims() != q.dims() || numbers(keys) != numbers(k.clone()) {
                    return false;
                }
                let expected = numbers(q.clone() * factors.slice_dim(3, 0..1));
                close::compare(&numbers(queries), &expected, F32_REORDERED).is_ok()
            })
        })
    })
}

/// Whether the transforms of queries and keys of two encodings give the same in either order, in every layer. A transform that
/// changes the width of heads, as PoPE's does, is not applied before another.
pub(super) fn commute(encodings: &[AnyEncoding; 2], dims: &Dims) -> bool {
    let device = device();
    let problem = Problem::random(1, TOKENS, dims, 26);
    let x = tensor3(&problem.x, &device);
    (0..dims.layers).all(|layer| {
        let turned = |[q, k]: [Tensor<4>; 2], by: usize| -> [Tensor<4>; 2] {
            let hooks = encodings[by].hooks();
            in_layer(hooks, layer, &x, |ctx| hooks.transform_qk(q, k, ctx)).into()
        };
        let heads = [&problem.q, &problem.k].map(|heads| tensor4(heads, &device));
        let once = [0, 1].map(|by| turned(heads.clone(), by));
        if once.iter().flatten().any(|turned| turned.dims() != heads[0].dims()) {
            return false;
        }
        let [first, second] = once;
        let [forth, back] =
            [turned(first, 1), turned(second, 0)].map(|[q, k]| [numbers(q), numbers(k)].concat());
        close::compare(&forth, &back, SHIFTED).is_ok()
    })
}

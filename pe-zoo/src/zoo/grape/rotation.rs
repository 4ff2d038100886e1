//! Rotation of planes `(m, m + D/2)` by minus an angle, and the frequencies it starts with.

use burn::tensor::Tensor;

use super::META;
use crate::math::frequencies::inverse_frequencies;
use crate::{Dims, PeError};

/// Each plane of `[B, H, T, D]` turned by minus `angles`, `[1 or B, 1 or H, T, D/2 or 1]`.
pub(super) fn turn_back(u: Tensor<4>, angles: Tensor<4>) -> Tensor<4> {
    let [_batch, _heads, _tokens, head_dim] = u.dims();
    let (cos, sin) = (angles.clone().cos(), angles.sin());
    let a = u.clone().slice_dim(3, 0..head_dim / 2);
    let b = u.slice_dim(3, head_dim / 2..head_dim);
    let first = a.clone() * cos.clone() + b.clone() * sin.clone();
    Tensor::cat(vec![first, b * cos - a * sin], 3)
}

/// Logarithms of RoPE's frequencies, times `storage`.
pub(super) fn stored_frequencies(base: f64, head_dim: usize, storage: f64) -> Vec<f32> {
    inverse_frequencies(base, head_dim).iter().map(|f| (f.ln() * storage) as f32).collect()
}

/// What both rotating variants ask for.
pub(super) fn check(base: f64, dims: &Dims) -> Result<(), PeError> {
    if !dims.head_dim.is_multiple_of(2) {
        let expected = "an even number; channels turn in pairs (head_dim = width / heads)";
        return Err(PeError::invalid(META.id, "model.head_dim", dims.head_dim, expected));
    }
    if !(base.is_finite() && base > 1.0) {
        return Err(PeError::invalid(META.id, "variant.base", base, "a number above 1"));
    }
    Ok(())
}

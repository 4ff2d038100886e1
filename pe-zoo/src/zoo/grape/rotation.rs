//! Initial frequencies of both rotating variants, and checks of their settings.

use super::Grape;
use crate::PositionEncoding;
use crate::math::frequencies::{check_base, inverse_frequencies};
use crate::rotary::check_pairs;
use crate::{Dims, PeError};

/// Computes logarithms of RoPE's frequencies, times `storage`.
pub(super) fn stored_frequencies(base: f64, head_dim: usize, storage: f64) -> Vec<f32> {
    inverse_frequencies(base, head_dim).iter().map(|f| (f.ln() * storage) as f32).collect()
}

/// Refuses sizes that neither rotating variant can use.
pub(super) fn check(base: f64, dims: &Dims) -> Result<(), PeError> {
    check_pairs(Grape::CARD.id, dims.head_dim)?;
    check_base(Grape::CARD.id, "variant.base", base)
}

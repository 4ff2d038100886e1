//! Cache of keys, values and token state for decoding.

use burn::tensor::Tensor;

use crate::TokenState;

/// Keys, values and per-token state of one layer, as they were projected.
///
/// Keys are kept untransformed: an encoding may change old keys when the sequence grows.
#[derive(Debug, Clone, Default)]
pub struct LayerCache {
    kept: Option<(Tensor<4>, Tensor<4>, TokenState)>,
}

impl LayerCache {
    /// Number of tokens in the cache.
    pub fn len(&self) -> usize {
        self.kept.as_ref().map_or(0, |(k, _, _)| {
            let [_batch, _heads, tokens, _head_dim] = k.dims();
            tokens
        })
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.kept.is_none()
    }

    /// Appends new tokens and returns keys, values and state of all tokens.
    pub(super) fn append(
        &mut self,
        k: Tensor<4>,
        v: Tensor<4>,
        state: &TokenState,
    ) -> (Tensor<4>, Tensor<4>, TokenState) {
        let all = match self.kept.take() {
            Some((old_k, old_v, old_state)) => (
                Tensor::cat(vec![old_k, k], TokenState::TOKEN_AXIS),
                Tensor::cat(vec![old_v, v], TokenState::TOKEN_AXIS),
                old_state.followed_by(state),
            ),
            None => (k, v, state.clone()),
        };
        self.kept = Some(all.clone());
        all
    }
}

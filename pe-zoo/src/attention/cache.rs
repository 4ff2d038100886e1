//! Cache of keys, values and token state for decoding.

use burn::tensor::Tensor;

use crate::TokenState;

/// Keys, values and per-token state of one layer, as they were projected.
///
/// An encoding may change old keys when the sequence grows. Keys that it does not change again
/// ([`fixed_keys`](crate::PositionEncoding::fixed_keys)) are kept as changed.
#[derive(Debug, Clone, Default)]
pub struct LayerCache {
    kept: Option<[Growing; 2]>,
    state: Vec<Growing>,
}

impl LayerCache {
    /// Number of tokens in the cache.
    pub fn len(&self) -> usize {
        self.kept.as_ref().map_or(0, |[keys, _values]| keys.tokens)
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
        let new_state = state.tensors.iter().cloned();
        let kept = if let Some([old_k, old_v]) = self.kept.take() {
            let old_state = std::mem::take(&mut self.state).into_iter();
            self.state = old_state.zip(new_state).map(|(old, new)| old.append(new)).collect();
            [old_k.append(k), old_v.append(v)]
        } else {
            self.state = new_state.map(Growing::new).collect();
            [Growing::new(k), Growing::new(v)]
        };
        let [k, v] = self.kept.insert(kept).each_ref().map(Growing::all);
        (k, v, TokenState { tensors: self.state.iter().map(Growing::all).collect() })
    }
}

/// Tensor `[B, H, T, any]` in memory with room for more tokens.
#[derive(Debug, Clone)]
struct Growing {
    memory: Tensor<4>,
    tokens: usize,
}

impl Growing {
    fn new(first: Tensor<4>) -> Self {
        let [_batch, _heads, tokens, _width] = first.dims();
        Self { memory: first, tokens }
    }

    fn all(&self) -> Tensor<4> {
        self.memory.clone().slice_dim(TokenState::TOKEN_AXIS, 0..self.tokens)
    }

    /// Appends tokens, in place if the memory has room for them and is not shared.
    fn append(self, new: Tensor<4>) -> Self {
        let [_batch, _heads, room, _width] = self.memory.dims();
        let [batch, heads, added, width] = new.dims();
        let tokens = self.tokens + added;
        let memory = if tokens <= room {
            let place = [0..batch, 0..heads, self.tokens..tokens, 0..width];
            self.memory.slice_assign(place, new)
        } else {
            let all = Tensor::cat(vec![self.all(), new], TokenState::TOKEN_AXIS);
            let spare = all.zeros_like().slice_dim(TokenState::TOKEN_AXIS, 0..tokens.div_ceil(2));
            Tensor::cat(vec![all, spare], TokenState::TOKEN_AXIS)
        };
        Self { memory, tokens }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::testkit::close::numbers;

    /// Keys, values and state of `tokens` tokens, numbered from `start`.
    fn new(start: usize, tokens: usize) -> [Tensor<4>; 3] {
        [0, 100, 200].map(|of| {
            let first = (of + start) as i64;
            let numbers = Tensor::<1, burn::tensor::Int>::arange(
                first..first + tokens as i64,
                &Device::flex(),
            );
            numbers.float().reshape([1, 1, tokens, 1])
        })
    }

    fn appended(cache: &mut LayerCache, start: usize, tokens: usize) -> [Vec<f64>; 3] {
        let [k, v, state] = new(start, tokens);
        let (k, v, state) = cache.append(k, v, &TokenState { tensors: vec![state] });
        [k, v, state.tensors[0].clone()].map(numbers)
    }

    #[test]
    fn tokens_are_kept_in_order_and_copies_of_a_cache_are_independent() {
        let mut cache = LayerCache::default();
        assert!(cache.is_empty());
        let expected = |tokens: usize| {
            [0, 100, 200].map(|of| (of..of + tokens).map(|n| n as f64).collect::<Vec<_>>())
        };
        let mut copies = Vec::new();
        let mut tokens = 0;
        for added in [3, 1, 1, 4, 1, 1, 1, 9, 2] {
            copies.push((tokens, cache.clone()));
            assert_eq!(appended(&mut cache, tokens, added), expected(tokens + added));
            tokens += added;
            assert_eq!(cache.len(), tokens);
        }
        for (tokens, mut copy) in copies {
            assert_eq!(appended(&mut copy, tokens, 1), expected(tokens + 1));
        }
        assert_eq!(appended(&mut cache, tokens, 1), expected(tokens + 1));
    }
}

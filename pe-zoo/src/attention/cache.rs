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
    /// Number of first tokens that are no longer kept, because no later token can see them.
    dropped: usize,
}

impl LayerCache {
    /// Number of tokens that the cache has received; those outside of the layer's window may no longer be kept.
    pub fn len(&self) -> usize {
        self.dropped + self.kept()
    }

    /// Number of tokens whose keys and values are kept.
    pub fn kept(&self) -> usize {
        self.kept.as_ref().map_or(0, |[keys, _values]| keys.tokens)
    }

    /// Number of first tokens that are no longer kept.
    pub(super) fn dropped(&self) -> usize {
        self.dropped
    }

    /// Drops all tokens before this one, if they are at least half of those that are kept: each token is moved once.
    pub(super) fn drop_before(&mut self, token: usize) {
        let count = token.saturating_sub(self.dropped);
        if count == 0 || 2 * count < self.kept() {
            return;
        }
        for growing in self.kept.iter_mut().flatten().chain(&mut self.state) {
            growing.drop_first(count);
        }
        self.dropped += count;
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
        let cached = if let Some([old_k, old_v]) = self.kept.take() {
            let old_state = std::mem::take(&mut self.state).into_iter();
            self.state = old_state.zip(new_state).map(|(old, new)| old.append(new)).collect();
            [old_k.append(k), old_v.append(v)]
        } else {
            self.state = new_state.map(Growing::new).collect();
            [Growing::new(k), Growing::new(v)]
        };
        let [k, v] = self.kept.insert(cached).each_ref().map(Growing::all);
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

    fn drop_first(&mut self, count: usize) {
        self.memory = self.memory.clone().slice_dim(TokenState::TOKEN_AXIS, count..self.tokens);
        self.tokens -= count;
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
    use std::ops::Range;

    use burn::tensor::{Device, TensorData};
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::attention::{LayerInput, Weights, layer};
    use crate::init::standard_normal;
    use crate::testkit::close::{self, F32_REORDERED, numbers};
    use crate::zoo::rope::{Rope, RopeConfig, Scaling};
    use crate::{Dims, PositionEncoding, Positions};

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

    /// Pseudorandom numbers.
    fn noise(shape: [usize; 4], seed: u64) -> Tensor<4> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let values = (0..shape.iter().product()).map(|_| standard_normal(&mut rng) as f32);
        Tensor::from_data(TensorData::new(values.collect::<Vec<_>>(), shape), &Device::flex())
    }

    #[test]
    fn heads_that_share_keys_decode_as_a_full_pass() {
        let dims = Dims { layers: 1, width: 48, heads: 6, head_dim: 8, train_len: 16, max_len: 16 };
        let tokens = 11;
        let [q, k, v] =
            [(6, 0), (2, 1), (2, 2)].map(|(heads, seed)| noise([2, heads, tokens, 8], seed));
        let x = Tensor::zeros([2, tokens, dims.width], &Device::flex());
        for scaling in [
            Scaling::None,
            Scaling::Dynamic { factor: 2.0, original_max_position_embeddings: Some(5) },
        ] {
            let settings = RopeConfig { scaling, ..RopeConfig::default() };
            let mut rng = ChaCha8Rng::seed_from_u64(0);
            let rope = Rope::build(&settings, &dims, &mut rng, &Device::flex()).unwrap();
            let pass = |range: Range<usize>, cache: Option<&mut LayerCache>| {
                let at = Positions::contiguous(range.start, range.len());
                let of = |u: &Tensor<4>| u.clone().slice_dim(2, range.clone());
                let x = x.clone().slice_dim(1, range.clone());
                let carried = TokenState::default();
                let input = LayerInput::new(0, &at, &x, [of(&q), of(&k), of(&v)], &carried);
                layer(&rope, input, cache, Weights::Drop).output
            };
            let mut cache = LayerCache::default();
            for (from, to) in [(0, 4), (4, 5), (5, 6), (6, 9), (9, 10), (10, 11)] {
                let pieces = pass(from..to, Some(&mut cache));
                let whole = pass(0..to, None).slice_dim(2, from..to);
                close::compare(&numbers(pieces), &numbers(whole), F32_REORDERED).unwrap();
            }
        }
    }

    /// The new key would be rotated as position 0, and kept so.
    #[test]
    #[should_panic(expected = "the number of queries differs from the number of row positions")]
    fn positions_of_more_rows_than_queries_are_refused() {
        let dims = Dims { layers: 1, width: 8, heads: 1, head_dim: 8, train_len: 16, max_len: 16 };
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let rope = Rope::build(&RopeConfig::default(), &dims, &mut rng, &Device::flex()).unwrap();
        let mut cache = LayerCache::default();
        let mut pass = |tokens: usize, at: &Positions| {
            let x = Tensor::zeros([1, tokens, dims.width], &Device::flex());
            let projections = [0, 1, 2].map(|seed| noise([1, 1, tokens, 8], seed));
            let carried = TokenState::default();
            let input = LayerInput::new(0, at, &x, projections, &carried);
            layer(&rope, input, Some(&mut cache), Weights::Drop);
        };
        pass(9, &Positions::contiguous(0, 9));
        pass(1, &Positions::contiguous(0, 10));
    }
}

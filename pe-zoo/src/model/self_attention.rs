//! A layer of causal self-attention for a model of the user's own.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use super::config::ModelConfig;
use super::layers::{Into, apply, linear};
use super::projections::{HeadSizes, project};
use crate::attention::{LayerCache, LayerInput, Weights, layer};
use crate::compose::Combined;
use crate::encoding::PositionRequest;
use crate::erased::positions;
use crate::ops::MatmulPrecision;
use crate::{Combination, Dims, PeError, TokenState};

/// Name of the module in errors.
const NAME: &str = "self-attention";

/// Settings of a [`SelfAttention`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfAttentionConfig {
    /// Expression of the encoding, such as `cope{max_positions=16}+rope`.
    pub encoding: String,
    /// Width of inputs and outputs.
    pub width: usize,
    /// Number of heads; must divide `width`.
    pub heads: usize,
    /// Number of heads of keys and values; must divide `heads`.
    pub kv_heads: usize,
    /// Whether the maps have a bias.
    pub bias: bool,
    /// Length of the training sequences in tokens, which some encodings depend on.
    pub train_len: usize,
    /// Length of the longest sequence in tokens.
    pub max_len: usize,
}

impl SelfAttentionConfig {
    /// Settings with as many heads of keys as of queries, maps with a bias, and sequences of up to `max_len` tokens in
    /// training and after it.
    pub fn new(encoding: &str, width: usize, heads: usize, max_len: usize) -> Self {
        let encoding = encoding.to_owned();
        Self { encoding, width, heads, kv_heads: heads, bias: true, train_len: max_len, max_len }
    }

    /// Builds the layer with random weights, as PyTorch's defaults.
    ///
    /// # Errors
    /// [`PeError`] if the expression or a size is invalid, or if the encoding acts outside of attention, as `sinusoidal`
    /// does; [`Decoder`](super::Decoder) takes every encoding.
    pub fn init(&self, rng: &mut ChaCha8Rng, device: &Device) -> Result<SelfAttention, PeError> {
        let config = ModelConfig {
            layers: 1,
            width: self.width,
            heads: self.heads,
            kv_heads: Some(self.kv_heads),
            bias: self.bias,
            ..ModelConfig::default()
        };
        config
            .check()
            .map_err(|error| PeError::invalid(NAME, error.field, error.value, error.expected))?;
        let dims: Dims = config.dims(self.train_len, self.max_len);
        let encoding = Combination::parse(&self.encoding)?.inside_attention()?;
        let width = self.width;
        let projected = width + 2 * config.kv_width();
        Ok(SelfAttention {
            encoding: encoding.init(&dims, rng, device)?,
            qkv: linear(&config, width, projected, Into::Layer, rng, device),
            out: linear(&config, width, width, Into::Layer, rng, device),
            name: self.encoding.clone(),
            heads: HeadSizes::of(&config),
        })
    }
}

/// Causal self-attention with an encoding: projections, attention under the encoding, and the map of its output.
///
/// Each layer has an encoding of its own. [`Decoder`](super::Decoder) shares one between its layers and takes every encoding.
#[derive(Module, Debug)]
pub struct SelfAttention {
    encoding: Combined,
    qkv: Linear,
    out: Linear,
    #[module(skip)]
    name: String,
    #[module(skip)]
    heads: HeadSizes,
}

impl SelfAttention {
    /// Attention of a whole sequence, `[B, T, C] -> [B, T, C]`.
    ///
    /// # Errors
    /// [`PeError::TooLong`] beyond the encoding's length limit.
    #[expect(clippy::needless_pass_by_value, reason = "modules of Burn take tensors by value")]
    pub fn forward(&self, x: Tensor<3>) -> Result<Tensor<3>, PeError> {
        self.attend(&x, None)
    }

    /// Attention of new tokens, `[B, T, C] -> [B, T, C]`, to themselves and to those in the cache, to which they are added.
    ///
    /// # Errors
    /// [`PeError::TooLong`] beyond the encoding's length limit.
    #[expect(clippy::needless_pass_by_value, reason = "modules of Burn take tensors by value")]
    pub fn forward_cached(
        &self,
        x: Tensor<3>,
        cache: &mut LayerCache,
    ) -> Result<Tensor<3>, PeError> {
        self.attend(&x, Some(cache))
    }

    fn attend(&self, x: &Tensor<3>, cache: Option<&mut LayerCache>) -> Result<Tensor<3>, PeError> {
        let [batch, tokens, width] = x.dims();
        let cached_tokens = cache.as_ref().map_or(0, |cache| cache.len());
        let request = PositionRequest { cached_tokens, new_tokens: tokens, training_rng: None };
        let at = positions(&self.encoding, &self.name, request)?;
        let precision = MatmulPrecision::default();
        let heads = project(&self.qkv, self.heads, None, x, precision);
        let carried = TokenState::default();
        let input = LayerInput::new(0, &at, x, heads, &carried);
        let output = layer(&self.encoding, input, cache, Weights::Drop).output;
        let mixed = output.swap_dims(1, 2).reshape([batch, tokens, width]);
        Ok(apply(&self.out, mixed, precision))
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Distribution;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    fn built(config: &SelfAttentionConfig) -> Result<SelfAttention, PeError> {
        config.init(&mut ChaCha8Rng::seed_from_u64(1), &Device::flex())
    }

    #[test]
    fn decoding_from_the_cache_is_the_whole_sequence() {
        let x = Tensor::<3>::random([2, 9, 32], Distribution::Default, &Device::flex());
        for (encoding, kv_heads) in [("rope", 2), ("cope{max_positions=8}+rope", 4), ("fox", 4)] {
            let config =
                SelfAttentionConfig { kv_heads, ..SelfAttentionConfig::new(encoding, 32, 4, 16) };
            let layer = built(&config).unwrap();
            let whole = layer.forward(x.clone()).unwrap();
            assert_eq!(whole.dims(), [2, 9, 32]);
            let mut cache = LayerCache::default();
            let parts = [0..5, 5..6, 6..9].map(|tokens| {
                layer.forward_cached(x.clone().slice_dim(1, tokens), &mut cache).unwrap()
            });
            let decoded = Tensor::cat(parts.to_vec(), 1);
            let difference = (whole - decoded).abs().max().into_scalar::<f32>();
            assert!(difference < 1e-5, "{encoding}: {difference}");
        }
    }

    #[test]
    fn what_a_layer_cannot_do_is_refused() {
        let refused = |config: SelfAttentionConfig, expected: &str| {
            let error = built(&config).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        let new = |encoding| SelfAttentionConfig::new(encoding, 32, 4, 16);
        refused(new("sinusoidal"), "sinusoidal");
        refused(new("roep"), "did you mean `rope`?");
        refused(SelfAttentionConfig { heads: 5, ..new("rope") }, "heads is 5, expected a divisor");
    }
}

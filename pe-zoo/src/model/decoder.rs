//! The decoder: embedding, blocks and output head.

use crate::attention::{Engine, LayerCache, Support, Trace, Weights};
use crate::compose::Combined;
use crate::encoding::{EmbedContext, PositionRequest};
use crate::erased::positions;
use crate::ops::{self, MatmulPrecision};
use crate::{Combination, Dims, Hooks, PeError, Positions, TokenState};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Int, Tensor};
use rand_chacha::ChaCha8Rng;

use super::block::{DecoderBlock, Through};
use super::config::ModelConfig;
use super::dropout::Dropout;
use super::layers::{AnyNorm, Into, apply, embedding, linear};
use super::lora::LoraConfig;
use super::projections::HeadSizes;
use super::weights::{DecoderWeights, learned};

/// Causal decoder under one position encoding.
#[derive(Module, Debug)]
pub struct Decoder {
    embedding: Param<Tensor<2>>,
    /// Position encoding, one for all layers.
    pub encoding: Combined,
    blocks: Vec<DecoderBlock>,
    last_norm: Option<AnyNorm>,
    head: Option<Linear>,
    /// Factor of the token embeddings; `None`: 1.
    #[module(skip)]
    embedding_scale: Option<f64>,
    /// Bound of the logits, see [`ModelConfig::head_cap`].
    #[module(skip)]
    head_cap: Option<f64>,
    /// Attention engine; the fastest one of the device unless changed.
    #[module(skip)]
    pub engine: Engine,
    /// Precision of matrix products; f32 unless changed.
    #[module(skip)]
    pub precision: MatmulPrecision,
    /// Number of shifted groups that attention is restricted to, in passes without a cache; `None`: full attention. Only for
    /// fine-tuning that `ExtendCell::check` accepts: with soft attention under encodings that act on queries and keys alone, on
    /// numbers of tokens that twice the groups divide.
    #[module(skip)]
    pub groups: Option<usize>,
}

/// Decoding cache: all token ids, and each layer's keys and values.
#[derive(Debug, Clone)]
pub struct Cache {
    tokens: Option<Tensor<2, Int>>,
    layers: Vec<LayerCache>,
}

impl Cache {
    /// Empty cache for a model with `layers` layers.
    pub fn new(layers: usize) -> Self {
        Self { tokens: None, layers: vec![LayerCache::default(); layers] }
    }

    /// Number of cached tokens.
    pub fn len(&self) -> usize {
        self.layers.first().map_or(0, LayerCache::len)
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Result of a forward pass.
#[derive(Debug)]
pub struct DecoderOutput {
    /// Last hidden states, `[B, T, C]`; [`Decoder::logits`] converts them to logits.
    pub hidden: Tensor<3>,
    /// Attention weights per layer, each `[B, H, T, S]`; empty unless requested.
    pub weights: Vec<Tensor<4>>,
    /// Traces of each layer; empty unless [`Weights::Explain`] requests them.
    pub traces: Vec<Vec<Trace>>,
}

impl Decoder {
    /// Builds a model with random weights for encodings of the sizes `dims`. Its own come from `model_rng` and the encoding's from `encoding_rng`, so
    /// that the model is the same under all encodings.
    ///
    /// # Errors
    ///
    /// [`PeError`] if the encoding refuses the sizes.
    pub fn new(
        config: &ModelConfig,
        vocabulary: usize,
        encoding: &Combination,
        dims: &Dims,
        model_rng: &mut ChaCha8Rng,
        encoding_rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let encoding = encoding.init(dims, encoding_rng, device)?;
        let embedding = embedding(config, vocabulary, model_rng, device);
        let blocks =
            (0..config.layers).map(|_| DecoderBlock::new(config, model_rng, device)).collect();
        let last_norm = config.norm_place.is_before_head().then(|| AnyNorm::new(config, device));
        let head = (!config.tied_head)
            .then(|| linear(config, config.width, vocabulary, Into::Layer, model_rng, device));
        Ok(Self {
            embedding,
            encoding,
            blocks,
            last_norm,
            head,
            embedding_scale: config.embedding_scale(),
            head_cap: config.head_cap,
            engine: Engine::best(device),
            precision: MatmulPrecision::default(),
            groups: None,
        })
    }

    /// Builds a model with given weights on their device; only the encoding's own weights come from `encoding_rng`.
    ///
    /// # Errors
    ///
    /// [`PeError`] if the encoding refuses the sizes.
    ///
    /// # Panics
    ///
    /// If `config` is not a Llama-type model (RMSNorm before or after each part, a gated linear unit, no bias except of
    /// queries, keys and values), or has other sizes than the weights.
    pub fn from_weights(
        config: &ModelConfig,
        weights: DecoderWeights,
        encoding: &Combination,
        dims: &Dims,
        encoding_rng: &mut ChaCha8Rng,
    ) -> Result<Self, PeError> {
        weights.assert_fit(config);
        let device = weights.embedding.device();
        let encoding = encoding.init(dims, encoding_rng, &device)?;
        Ok(Self {
            embedding: learned(weights.embedding),
            encoding,
            blocks: weights
                .blocks
                .into_iter()
                .map(|block| DecoderBlock::of(config, block))
                .collect(),
            last_norm: Some(AnyNorm::of(config, weights.last_norm)),
            head: weights.head.map(|weight| Linear { weight: learned(weight), bias: None }),
            embedding_scale: config.embedding_scale(),
            head_cap: config.head_cap,
            engine: Engine::best(&device),
            precision: MatmulPrecision::default(),
            groups: None,
        })
    }

    /// Moves the model out, so that its tensors are not shared and can be changed in place. Until it is put back, `self` has
    /// no layers.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let rest = Self {
            embedding: learned(Tensor::zeros([1, 1], &self.embedding.val().device())),
            encoding: self.encoding.clone(),
            blocks: Vec::new(),
            last_norm: None,
            head: None,
            embedding_scale: self.embedding_scale,
            head_cap: self.head_cap,
            engine: self.engine,
            precision: self.precision,
            groups: self.groups,
        };
        std::mem::replace(self, rest)
    }

    /// Freezes all weights except the encoding's own.
    #[must_use]
    pub fn frozen(self) -> Self {
        Self {
            embedding: self.embedding.set_require_grad(false),
            blocks: self.blocks.no_grad(),
            last_norm: self.last_norm.no_grad(),
            head: self.head.no_grad(),
            ..self
        }
    }

    /// Freezes all weights except the encoding's own and, if the settings say so, the embeddings and the scales of the
    /// normalisations, and adds low-rank adapters to the maps of attention. They are zero at first, so that outputs do not
    /// change.
    #[must_use]
    pub fn adapted(self, config: &LoraConfig, rng: &mut ChaCha8Rng) -> Self {
        let frozen = self.frozen();
        let blocks = frozen.blocks.into_iter().map(|block| block.adapted(config, rng)).collect();
        if !config.embedding_and_norms {
            return Self { blocks, ..frozen };
        }
        Self {
            blocks,
            embedding: frozen.embedding.set_require_grad(true),
            last_norm: frozen.last_norm.map(AnyNorm::learning),
            ..frozen
        }
    }

    /// Merges the adapters, if there are any, into the weights they belong to, and restores full attention.
    #[must_use]
    pub fn merged(self) -> Self {
        Self {
            groups: None,
            blocks: self.blocks.into_iter().map(DecoderBlock::merged).collect(),
            ..self
        }
    }

    /// Runs tokens `[B, T]` at the given positions through all blocks.
    ///
    /// # Panics
    ///
    /// If the rows of `at` are not the tokens, or its other columns not the cached ones, in number.
    pub fn forward(
        &self,
        tokens: Tensor<2, Int>,
        at: &Positions,
        cache: Option<&mut Cache>,
        dropout: Dropout<'_>,
        weights: Weights,
    ) -> DecoderOutput {
        self.run(tokens, at, cache, dropout, weights, None)
    }

    /// Last hidden states of chosen tokens, `[N, C]`; `rows` are their indices in the flattened `[B, T]`, ascending.
    ///
    /// After its attention, the last block computes only these rows. With dropout it computes all of them, because the
    /// masks of later activations depend on how many random numbers were drawn before.
    pub fn hidden_of(
        &self,
        tokens: Tensor<2, Int>,
        rows: &Tensor<1, Int>,
        at: &Positions,
        dropout: Dropout<'_>,
    ) -> Tensor<2> {
        let [batch, new_tokens] = tokens.dims();
        let [_vocabulary, width] = self.embedding.val().dims();
        let [chosen] = rows.dims();
        let every = chosen == batch * new_tokens;
        let early = !every && chosen > 0 && !dropout.is_active();
        let hidden =
            self.run(tokens, at, None, dropout, Weights::Drop, early.then_some(rows)).hidden;
        if every || early {
            return hidden.reshape([chosen, width]);
        }
        ops::select_rows(hidden.reshape([batch * new_tokens, width]), rows.clone())
    }

    /// Runs [`Decoder::forward`]; with `rows`, the hidden states are those of these rows of `[B * T]`, `[1, N, C]`.
    fn run(
        &self,
        tokens: Tensor<2, Int>,
        at: &Positions,
        mut cache: Option<&mut Cache>,
        mut dropout: Dropout<'_>,
        weights: Weights,
        rows: Option<&Tensor<1, Int>>,
    ) -> DecoderOutput {
        let [batch, new_tokens] = tokens.dims();
        let [_vocabulary, width] = self.embedding.val().dims();
        let ids = tokens.clone().reshape([batch * new_tokens]);
        let x = ops::select_rows(self.embedding.val(), ids).reshape([batch, new_tokens, width]);
        let x = match self.embedding_scale {
            Some(scale) => x * scale,
            None => x,
        };
        let seen = match cache.as_mut() {
            Some(cache) => {
                let all = match cache.tokens.take() {
                    Some(old) => Tensor::cat(vec![old, tokens], 1),
                    None => tokens,
                };
                cache.tokens = Some(all.clone());
                all
            }
            None => tokens,
        };
        let x = self.encoding.embed(x, &EmbedContext { at, tokens: &seen });
        let mut x = dropout.apply(x);
        let mut through = Through {
            encoding: &self.encoding,
            at,
            weights,
            engine: self.engine,
            groups: self.groups,
            precision: self.precision,
            rows: None,
        };
        let mut carried = TokenState::default();
        let (mut maps, mut traces) = (Vec::new(), Vec::new());
        for (index, block) in self.blocks.iter().enumerate() {
            let layer_cache = cache.as_mut().map(|cache| &mut cache.layers[index]);
            if index + 1 == self.blocks.len() {
                through.rows = rows;
            }
            let (output, state, seen) =
                block.forward(index, x, &carried, &through, layer_cache, &mut dropout);
            x = output;
            carried = state;
            maps.extend(seen.weights);
            if weights == Weights::Explain {
                traces.push(seen.traces);
            }
        }
        let hidden = match &self.last_norm {
            Some(norm) => norm.forward(x),
            None => x,
        };
        DecoderOutput { hidden, weights: maps, traces }
    }

    /// Number of 32-bit words that dropout draws in a pass of so many tokens, all sequences together: one for each
    /// activation after the embedding and after both parts of each block.
    pub fn dropout_draws(&self, tokens: usize) -> u128 {
        let [_vocabulary, width] = self.embedding.val().dims();
        (tokens * width * (1 + 2 * self.layers())) as u128
    }

    /// Positions of new tokens behind cached ones in evaluation. `id` names the encoding in errors.
    ///
    /// # Errors
    /// [`PeError::TooLong`] beyond the encoding's length limit, and the errors of its hook `positions`.
    pub fn positions(
        &self,
        id: &str,
        cached_tokens: usize,
        new_tokens: usize,
    ) -> Result<Positions, PeError> {
        let request = PositionRequest { cached_tokens, new_tokens, training_rng: None };
        positions(&self.encoding, id, request)
    }

    /// Logits of the token after each of the tokens `[B, T]`, which are behind those in the cache: `[B, T, V]`.
    ///
    /// # Errors
    /// [`PeError::TooLong`] beyond the encoding's length limit.
    pub fn predict(
        &self,
        tokens: Tensor<2, Int>,
        cache: Option<&mut Cache>,
    ) -> Result<Tensor<3>, PeError> {
        let [batch, new_tokens] = tokens.dims();
        let cached_tokens = cache.as_ref().map_or(0, |cache| cache.len());
        let at = self.positions("decoder", cached_tokens, new_tokens)?;
        let hidden = self.forward(tokens, &at, cache, Dropout::off(), Weights::Drop).hidden;
        let [_batch, _tokens, width] = hidden.dims();
        let logits = self.logits(hidden.reshape([batch * new_tokens, width]));
        let [_rows, vocabulary] = logits.dims();
        Ok(logits.reshape([batch, new_tokens, vocabulary]))
    }

    /// Number of transformer blocks.
    pub fn layers(&self) -> usize {
        self.blocks.len()
    }

    /// How attention computes the logits: the support that takes the most memory among all layers.
    pub fn support(&self, device: &Device) -> Support {
        let hard = self.blocks.iter().any(DecoderBlock::is_hard);
        if self.engine == Engine::Reference || hard {
            return Support::Reference;
        }
        let [_vocabulary, width] = self.embedding.val().dims();
        let Some(HeadSizes { queries, channels, .. }) =
            self.blocks.first().map(DecoderBlock::heads)
        else {
            return Support::Reference;
        };
        // No modifier depends on lengths.
        let dims = Dims {
            layers: self.layers(),
            width,
            heads: queries,
            head_dim: channels,
            train_len: 1,
            max_len: 1,
        };
        Support::of(&self.encoding, &dims, device)
    }

    /// Size of the vocabulary in tokens.
    pub fn vocabulary(&self) -> usize {
        let [vocabulary, _width] = self.embedding.val().dims();
        vocabulary
    }

    /// Computes the logits of hidden states, `[N, C] -> [N, V]`.
    pub fn logits(&self, hidden: Tensor<2>) -> Tensor<2> {
        let logits = match &self.head {
            Some(head) => apply(head, hidden, self.precision),
            None => ops::linear_of(self.precision, hidden, self.embedding.val().transpose(), None),
        };
        match self.head_cap {
            Some(cap) => (logits / cap).tanh() * cap,
            None => logits,
        }
    }
}

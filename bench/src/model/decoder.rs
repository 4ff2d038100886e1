//! Embedding, blocks, head.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Int, Tensor};
use pe_zoo::attention::{Engine, LayerCache, Weights};
use pe_zoo::encoding::EmbedContext;
use pe_zoo::{EncodingConfig, PeError, PositionEncoding, Positions, TokenState};
use rand_chacha::ChaCha8Rng;

use super::block::{Block, Through};
use super::config::{ModelConfig, NormPlace};
use super::dropout::Dropout;
use super::layers::{AnyNorm, Into, apply, embedding, linear};

/// A causal decoder under one position encoding.
#[derive(Module, Debug)]
pub struct Decoder<P: Module> {
    embedding: Param<Tensor<2>>,
    /// The position encoding, one for all layers.
    pub encoding: P,
    blocks: Vec<Block>,
    last_norm: Option<AnyNorm>,
    head: Option<Linear>,
    /// The attention engine; the fastest for the device unless changed.
    #[module(skip)]
    pub engine: Engine,
}

/// What decoding keeps: all token ids, and each layer's keys and values.
#[derive(Debug, Clone)]
pub struct Cache {
    tokens: Option<Tensor<2, Int>>,
    layers: Vec<LayerCache>,
}

impl Cache {
    /// Nothing kept yet, for a model of `layers` layers.
    pub fn new(layers: usize) -> Self {
        Self { tokens: None, layers: vec![LayerCache::default(); layers] }
    }

    /// Number of tokens kept.
    pub fn len(&self) -> usize {
        self.layers.first().map_or(0, LayerCache::len)
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What one pass gives.
#[derive(Debug)]
pub struct Pass {
    /// The last hidden states, `[B, T, C]`; [`Decoder::logits`] turns them into logits.
    pub hidden: Tensor<3>,
    /// Attention weights per layer, each `[B, H, T, S]`; empty unless asked for.
    pub weights: Vec<Tensor<4>>,
}

impl<P: PositionEncoding> Decoder<P> {
    /// Builds a model; its own weights come from `model_rng` and the encoding's from
    /// `encoding_rng`, so that all encodings meet the same model.
    ///
    /// # Errors
    /// [`PeError`] if the encoding refuses the sizes.
    pub fn new<C: EncodingConfig<Encoding = P>>(
        config: &ModelConfig,
        vocabulary: usize,
        encoding: &C,
        [train_len, max_len]: [usize; 2],
        [model_rng, encoding_rng]: [&mut ChaCha8Rng; 2],
        device: &Device,
    ) -> Result<Self, PeError> {
        let dims = config.dims(train_len, max_len);
        let encoding = encoding.init(&dims, encoding_rng, device)?;
        let embedding = embedding(config, vocabulary, model_rng, device);
        let blocks = (0..config.layers).map(|_| Block::new(config, model_rng, device)).collect();
        let last_norm = (config.norm_place == NormPlace::Pre).then(|| AnyNorm::new(config, device));
        let head = (!config.tied_head)
            .then(|| linear(config, [config.width, vocabulary], Into::Layer, model_rng, device));
        let engine = Engine::best(device);
        Ok(Self { embedding, encoding, blocks, last_norm, head, engine })
    }

    /// Runs tokens `[B, T]` at the given positions through all blocks.
    pub fn forward(
        &self,
        tokens: Tensor<2, Int>,
        at: &Positions,
        mut cache: Option<&mut Cache>,
        mut dropout: Dropout<'_>,
        weights: Weights,
    ) -> Pass {
        let [batch, new_tokens] = tokens.dims();
        let [_vocabulary, width] = self.embedding.val().dims();
        let x = self
            .embedding
            .val()
            .select(0, tokens.clone().reshape([batch * new_tokens]))
            .reshape([batch, new_tokens, width]);
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
        let through = Through { encoding: &self.encoding, at, weights, engine: self.engine };
        let mut carried = TokenState::default();
        let mut maps = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            let layer_cache = cache.as_mut().map(|cache| &mut cache.layers[index]);
            let (output, state, map) =
                block.forward(index, x, &carried, &through, layer_cache, &mut dropout);
            x = output;
            carried = state;
            maps.extend(map);
        }
        let hidden = match &self.last_norm {
            Some(norm) => norm.forward(x),
            None => x,
        };
        Pass { hidden, weights: maps }
    }

    /// Logits of hidden states, `[N, C] -> [N, V]`.
    pub fn logits(&self, hidden: Tensor<2>) -> Tensor<2> {
        match &self.head {
            Some(head) => apply(head, hidden),
            None => hidden.matmul(self.embedding.val().transpose()),
        }
    }
}

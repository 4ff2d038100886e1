//! Weights of a Llama-type decoder, for models that were trained elsewhere.

use burn::module::Param;
use burn::tensor::{GradientCheckpointingStrategy, Tensor};

use super::config::{GainCounts, ModelConfig, NormKind, NormPlace};

/// All weights of a decoder with RMSNorm, a gated linear unit and no bias except of queries, keys and values. `C` width, `Q` width of
/// all queries, `K` width of all keys, `F` hidden width, `V` vocabulary. Tensors are handles: a clone shares them.
#[derive(Debug, Clone)]
pub struct DecoderWeights {
    /// Token embeddings, `[V, C]`.
    pub embedding: Tensor<2>,
    /// Weights of the blocks, one set per layer.
    pub blocks: Vec<BlockWeights>,
    /// Scale of the last normalisation, `[C]`.
    pub last_norm: Tensor<1>,
    /// Output head, `[C, V]`; `None`: the transposed embedding.
    pub head: Option<Tensor<2>>,
}

/// Gains of the queries `[D]` or `[Q]` and of the keys `[D]` or `[K]`, in a model that was trained elsewhere.
#[derive(Debug, Clone)]
pub struct QkGains {
    /// Gains of the queries.
    pub queries: Tensor<1>,
    /// Gains of the keys.
    pub keys: Tensor<1>,
}

/// Weights of one transformer block.
#[derive(Debug, Clone)]
pub struct BlockWeights {
    /// Scale of the normalisation before attention, or after it in a model with [`NormPlace::Output`], `[C]`.
    pub attention_norm: Tensor<1>,
    /// Projections to queries, keys and values, concatenated, `[C, Q + 2 K]`.
    pub qkv: Tensor<2>,
    /// Biases of queries, keys and values, concatenated, `[Q + 2 K]`; `None`: no bias.
    pub qkv_bias: Option<Tensor<1>>,
    /// Gains of the normalisation of queries and keys; `None`: they are not normalised.
    pub qk_gains: Option<QkGains>,
    /// Output projection of attention, `[Q, C]`.
    pub out: Tensor<2>,
    /// Scale of the normalisation before the feed-forward block, or after it, `[C]`.
    pub feed_forward_norm: Tensor<1>,
    /// Gate and up matrices, concatenated, `[C, 2 F]`.
    pub up: Tensor<2>,
    /// Second matrix of the feed-forward block, `[F, C]`.
    pub down: Tensor<2>,
    /// Scales of the normalisations after attention and feed-forward network, where these stand beside those before.
    pub output_norms: Option<OutputGains>,
}

/// Scales of the normalisations after both parts of a block, `[C]` each.
#[derive(Debug, Clone)]
pub struct OutputGains {
    /// Scale of the normalisation after attention.
    pub attention: Tensor<1>,
    /// Scale of the normalisation after the feed-forward network.
    pub feed_forward: Tensor<1>,
}

/// Wraps a weight as a trainable parameter.
pub(super) fn learned<const D: usize>(weight: Tensor<D>) -> Param<Tensor<D>> {
    Param::from_tensor(weight)
}

impl DecoderWeights {
    /// Returns the same weights on an autodiff device, for training.
    #[must_use]
    pub fn autodiff(self, strategy: GradientCheckpointingStrategy) -> Self {
        fn take<const D: usize>(
            weight: Tensor<D>,
            strategy: GradientCheckpointingStrategy,
        ) -> Tensor<D> {
            Tensor::from_inner(weight).with_gradient_checkpointing_strategy(strategy)
        }
        let block = |block: BlockWeights| BlockWeights {
            attention_norm: take(block.attention_norm, strategy),
            qkv: take(block.qkv, strategy),
            qkv_bias: block.qkv_bias.map(|bias| take(bias, strategy)),
            qk_gains: block.qk_gains.map(|gains| QkGains {
                queries: take(gains.queries, strategy),
                keys: take(gains.keys, strategy),
            }),
            out: take(block.out, strategy),
            feed_forward_norm: take(block.feed_forward_norm, strategy),
            up: take(block.up, strategy),
            down: take(block.down, strategy),
            output_norms: block.output_norms.map(|norms| OutputGains {
                attention: take(norms.attention, strategy),
                feed_forward: take(norms.feed_forward, strategy),
            }),
        };
        Self {
            embedding: take(self.embedding, strategy),
            blocks: self.blocks.into_iter().map(block).collect(),
            last_norm: take(self.last_norm, strategy),
            head: self.head.map(|head| take(head, strategy)),
        }
    }

    pub(super) fn assert_fit(&self, config: &ModelConfig) {
        let kind = (config.norm, config.activation.is_gated(), config.bias);
        let llama = (NormKind::RmsNorm, true, false);
        assert_eq!(kind, llama, "a Llama-type model has RMSNorm, a gated unit and no biases");
        assert!(!config.output_gate, "a Llama-type model has no output gate");
        assert!(
            config.norm_place.is_before_head(),
            "a Llama-type model normalises before its head"
        );
        let (width, hidden) = (config.width, config.hidden());
        let channels = config.heads_width();
        let [_vocabulary, embedded] = self.embedding.dims();
        assert_eq!((embedded, self.blocks.len()), (width, config.layers), "width, layers");
        assert_eq!(self.head.is_none(), config.tied_head, "tied head");
        for block in &self.blocks {
            assert_eq!(block.qkv.dims(), [width, channels + 2 * config.kv_width()], "qkv");
            let biases = block.qkv_bias.as_ref().map(Tensor::dims);
            let expected = config.qkv_bias.then(|| [channels + 2 * config.kv_width()]);
            assert_eq!(biases, expected, "biases of queries, keys and values");
            let gains = block.qk_gains.as_ref().map(|gains| GainCounts {
                queries: gains.queries.dims()[0],
                keys: gains.keys.dims()[0],
            });
            assert_eq!(gains, config.qk_gains(), "gains of queries and keys");
            assert_eq!(block.out.dims(), [channels, width], "out");
            assert_eq!(block.up.dims(), [width, 2 * hidden], "up");
            assert_eq!(block.down.dims(), [hidden, width], "down");
            let both = config.norm_place == NormPlace::Both;
            assert_eq!(block.output_norms.is_some(), both, "normalisations after both parts");
        }
    }
}

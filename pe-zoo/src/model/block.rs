//! Transformer block: attention under the encoding, followed by the feed-forward network.

mod testing;

pub(crate) use testing::equals_formulas;

use crate::attention::{AttentionKind, Engine, LayerCache, LayerInput, Trace, Weights, layer};
use crate::compose::Combined;
use crate::encoding::Update;
use crate::ops::{self, MatmulPrecision};
use crate::{Hooks, Positions, TokenState};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Int, Tensor};
use rand_chacha::ChaCha8Rng;

use super::config::{ModelConfig, NormPlace};
use super::dropout::Dropout;
use super::layers::{AnyNorm, FeedForward, Into, apply, linear};
use super::lora::{Adapters, LoraConfig, LowRank};
use super::projections::{HeadSizes, QueryKeyNorm, project};
use super::shifted;
use super::weights::{BlockWeights, learned};

#[derive(Module, Debug)]
pub(super) struct DecoderBlock {
    attention_norm: AnyNorm,
    qkv: Linear,
    qk_norm: Option<QueryKeyNorm>,
    /// Map to the logits of the gate that multiplies the output of attention.
    gate: Option<Linear>,
    out: Linear,
    feed_forward_norm: AnyNorm,
    feed_forward: FeedForward,
    /// Normalisations after attention and feed-forward network, beside those before.
    output_norms: Option<OutputNorms>,
    adapters: Option<Adapters>,
    #[module(skip)]
    heads: HeadSizes,
    #[module(skip)]
    norm_place: NormPlace,
    #[module(skip)]
    attention_kind: AttentionKind,
}

/// Normalisations of what attention and feed-forward network add to the residual stream.
#[derive(Module, Debug)]
struct OutputNorms {
    attention: AnyNorm,
    feed_forward: AnyNorm,
}

/// Attention weights and traces of one layer, if requested.
pub(super) struct Seen {
    pub(super) weights: Option<Tensor<4>>,
    pub(super) traces: Vec<Trace>,
}

/// Arguments that are the same for all blocks of a pass, except for `rows`.
#[derive(Clone, Copy)]
pub(super) struct Through<'a> {
    pub(super) encoding: &'a Combined,
    pub(super) at: &'a Positions,
    pub(super) weights: Weights,
    pub(super) engine: Engine,
    pub(super) groups: Option<usize>,
    pub(super) precision: MatmulPrecision,
    /// Rows of `[B * T]`, ascending, that are computed after the attention; `None`: all. Only for the last block, because
    /// nothing reads its state.
    pub(super) rows: Option<&'a Tensor<1, Int>>,
}

impl Through<'_> {
    /// Selects the rows, `[B, T, C] -> [1, N, C]`; changes nothing if all are computed.
    fn only_rows(&self, x: Tensor<3>) -> Tensor<3> {
        let Some(rows) = self.rows else { return x };
        let [batch, tokens, width] = x.dims();
        ops::select_rows(x.reshape([batch * tokens, width]), rows.clone()).unsqueeze()
    }
}

impl DecoderBlock {
    /// Heads of the attention.
    pub(super) fn heads(&self) -> HeadSizes {
        self.heads
    }

    /// Whether each query attends to one token only.
    pub(super) fn is_hard(&self) -> bool {
        self.attention_kind == AttentionKind::Hard
    }

    pub(super) fn new(config: &ModelConfig, rng: &mut ChaCha8Rng, device: &Device) -> Self {
        let (width, channels) = (config.width, config.heads_width());
        let norm = || AnyNorm::new(config, device);
        Self {
            attention_norm: norm(),
            qkv: linear(
                &ModelConfig { bias: config.bias || config.qkv_bias, ..config.clone() },
                width,
                channels + 2 * config.kv_width(),
                Into::Layer,
                rng,
                device,
            ),
            qk_norm: QueryKeyNorm::new(config, device),
            out: linear(config, channels, width, Into::Residual, rng, device),
            feed_forward_norm: norm(),
            feed_forward: FeedForward::new(config, rng, device),
            // Drawn last: the other weights are those of a model without it.
            gate: config
                .output_gate
                .then(|| linear(config, width, channels, Into::Layer, rng, device)),
            output_norms: (config.norm_place == NormPlace::Both)
                .then(|| OutputNorms { attention: norm(), feed_forward: norm() }),
            adapters: None,
            heads: HeadSizes::of(config),
            norm_place: config.norm_place,
            attention_kind: config.attention,
        }
    }

    pub(super) fn of(config: &ModelConfig, weights: BlockWeights) -> Self {
        let map = |weight| Linear { weight: learned(weight), bias: None };
        Self {
            attention_norm: AnyNorm::of(config, weights.attention_norm),
            qkv: Linear { bias: weights.qkv_bias.map(learned), ..map(weights.qkv) },
            qk_norm: weights.qk_gains.map(|gains| QueryKeyNorm::of(config, gains)),
            gate: None,
            out: map(weights.out),
            feed_forward_norm: AnyNorm::of(config, weights.feed_forward_norm),
            feed_forward: FeedForward::of(config, map(weights.up), map(weights.down)),
            output_norms: weights.output_norms.map(|gains| OutputNorms {
                attention: AnyNorm::of(config, gains.attention),
                feed_forward: AnyNorm::of(config, gains.feed_forward),
            }),
            adapters: None,
            heads: HeadSizes::of(config),
            norm_place: config.norm_place,
            attention_kind: config.attention,
        }
    }

    /// Adds new adapters to the frozen weights; outputs do not change until they are trained.
    pub(super) fn adapted(self, config: &LoraConfig, rng: &mut ChaCha8Rng) -> Self {
        let device = self.qkv.weight.val().device();
        let [width, _all] = self.qkv.weight.val().dims();
        let HeadSizes { queries, keys, channels } = self.heads;
        let (heads_width, kv_width) = (queries * channels, keys * channels);
        let mut new = |inputs, outputs| LowRank::new(config, inputs, outputs, rng, &device);
        let adapters = Adapters {
            q: new(width, heads_width),
            k: new(width, kv_width),
            v: new(width, kv_width),
            out: new(heads_width, width),
        };
        let frozen = Self { adapters: Some(adapters), ..self.no_grad() };
        if !config.embedding_and_norms {
            return frozen;
        }
        Self {
            attention_norm: frozen.attention_norm.learning(),
            qk_norm: frozen.qk_norm.map(QueryKeyNorm::learning),
            feed_forward_norm: frozen.feed_forward_norm.learning(),
            output_norms: frozen.output_norms.map(|norms| OutputNorms {
                attention: norms.attention.learning(),
                feed_forward: norms.feed_forward.learning(),
            }),
            ..frozen
        }
    }

    /// Merges the adapters into the weights they belong to.
    pub(super) fn merged(mut self) -> Self {
        if let Some(Adapters { q, k, v, out }) = self.adapters.take() {
            let change = Tensor::cat(vec![q.product(), k.product(), v.product()], 1);
            self.qkv.weight = self.qkv.weight.map(|weight| weight + change);
            self.out.weight = self.out.weight.map(|weight| weight + out.product());
        }
        self
    }

    /// Normalises what attention adds to the residual stream, if a norm stands there.
    fn attention_output(&self, output: Tensor<3>) -> Tensor<3> {
        match (&self.output_norms, self.norm_place) {
            (Some(norms), _) => norms.attention.forward(output),
            (None, NormPlace::Output) => self.attention_norm.forward(output),
            (None, _) => output,
        }
    }

    /// Normalises what the feed-forward network adds to the residual stream, if a norm stands there.
    fn feed_forward_output(&self, output: Tensor<3>) -> Tensor<3> {
        match (&self.output_norms, self.norm_place) {
            (Some(norms), _) => norms.feed_forward.forward(output),
            (None, NormPlace::Output) => self.feed_forward_norm.forward(output),
            (None, _) => output,
        }
    }

    /// Runs the block, `[B, T, C] -> [B, T, C]`; also returns the state of the tokens, and the attention weights and
    /// traces if requested.
    ///
    /// With [`Through::rows`] the output is `[1, N, C]`, and the state is that before the feed-forward network.
    pub(super) fn forward(
        &self,
        index: usize,
        x: Tensor<3>,
        carried: &TokenState,
        through: &Through<'_>,
        cache: Option<&mut LayerCache>,
        dropout: &mut Dropout<'_>,
    ) -> (Tensor<3>, TokenState, Seen) {
        let input = match self.norm_place {
            NormPlace::Pre | NormPlace::Both => self.attention_norm.forward(x.clone()),
            NormPlace::Post | NormPlace::Output => x.clone(),
        };
        let adapters = self.adapters.as_ref();
        let [q, k, v] = project(&self.qkv, self.heads, adapters, &input, through.precision);
        let (q, k) = match &self.qk_norm {
            Some(norm) => norm.forward(q, k),
            None => (q, k),
        };
        let attention = LayerInput {
            layer: index,
            at: through.at,
            x: &input,
            q,
            k,
            v,
            carried,
            engine: through.engine,
            attention_kind: self.attention_kind,
            precision: through.precision,
        };
        let attended = match through.groups {
            Some(groups) if cache.is_none() => {
                assert_eq!(through.weights, Weights::Drop, "groups return no attention weights");
                shifted::layer(through.encoding, attention, groups)
            }
            _ => layer(through.encoding, attention, cache, through.weights),
        };
        let [batch, heads, tokens, head_dim] = attended.output.dims();
        let mixed = attended.output.swap_dims(1, 2).reshape([batch, tokens, heads * head_dim]);
        let (x, mixed) = (through.only_rows(x), through.only_rows(mixed));
        let mixed = match &self.gate {
            Some(gate) => mixed * sigmoid(apply(gate, through.only_rows(input), through.precision)),
            None => mixed,
        };
        let adapter = self.adapters.as_ref().map(|adapters| &adapters.out);
        let output =
            LowRank::beside(adapter, &mixed, apply(&self.out, mixed.clone(), through.precision));
        let output = self.attention_output(output);
        let x = ops::add(x, dropout.apply(output));
        let (x, input) = match self.norm_place {
            NormPlace::Pre | NormPlace::Both => (x.clone(), self.feed_forward_norm.forward(x)),
            NormPlace::Post => {
                let x = self.attention_norm.forward(x);
                (x.clone(), x)
            }
            NormPlace::Output => (x.clone(), x),
        };
        let output = self.feed_forward.forward(input, through.precision);
        let output = self.feed_forward_output(output);
        let carried = match through.rows {
            None => through.encoding.update(attended.carried, index, Update::FeedForward(&output)),
            Some(_) => attended.carried,
        };
        let x = ops::add(x, dropout.apply(output));
        let x = match self.norm_place {
            NormPlace::Pre | NormPlace::Output | NormPlace::Both => x,
            NormPlace::Post => self.feed_forward_norm.forward(x),
        };
        (x, carried, Seen { weights: attended.weights, traces: attended.traces })
    }
}

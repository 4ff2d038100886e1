//! Causal multi-head attention that applies any encoding, with a cache for decoding.

mod blocks;
#[cfg(any(feature = "flex", feature = "cube"))]
mod by_rows;
mod cache;
mod engine;
#[cfg(any(feature = "flex", feature = "cube"))]
mod fused;
mod reference;
mod support;
mod trace;

use blocks::RowBlock;
pub use cache::LayerCache;
pub use engine::Engine;
pub use reference::{Attended, attend};
pub use support::Support;
pub use trace::{Trace, TraceKind};

use std::ops::Range;

use burn::tensor::Tensor;

use crate::encoding::{LayerContext, ScoreContext, StateContext, Update};
use crate::erased::Hooks;
use crate::ops::{MatmulPrecision, repeat_heads};
use crate::{Positions, ScoreMod, TokenState};

/// Whether attention weights are returned besides the output. Only the reference engine can return
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// Attention weights are not returned.
    Drop,
    /// Returned, `[B, H, T, S]`.
    Return,
    /// Returned together with quantities inside the attention ([`Trace`]).
    Explain,
}

/// Normalisation that turns logits into attention weights.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum AttentionKind {
    /// Weights as the encoding defines them: a softmax unless the encoding replaces it.
    #[default]
    Soft,
    /// All weight on the largest logit ([`ScoreMod::Hard`]), whatever the encoding.
    Hard,
}

/// Input of one layer's attention: the layer's input and the projections of the new tokens.
#[derive(Debug)]
pub struct LayerInput<'a> {
    /// Index of the layer, from 0.
    pub layer: usize,
    /// Positions of rows and columns.
    pub at: &'a Positions,
    /// The layer's normalised input, `[B, T, C]`.
    pub x: &'a Tensor<3>,
    /// Queries, `[B, H, T, D]`.
    pub q: Tensor<4>,
    /// Keys, `[B, K, T, D]`; `K` is `H`, or divides it where groups of heads share keys and values.
    pub k: Tensor<4>,
    /// Values, `[B, K, T, D]`.
    pub v: Tensor<4>,
    /// State of these tokens from the layer before.
    pub carried: &'a TokenState,
    /// Engine that computes the attention.
    pub engine: Engine,
    /// Kind of attention weights: soft or hard.
    pub attention_kind: AttentionKind,
    /// Precision of the factors of matrix products, for engines that support several.
    pub precision: MatmulPrecision,
}

impl<'a> LayerInput<'a> {
    /// Input of soft attention on the fastest engine of the device, with f32 products. `projections` are queries
    /// `[B, H, T, D]`, keys and values `[B, K, T, D]`.
    pub fn new(
        layer: usize,
        at: &'a Positions,
        x: &'a Tensor<3>,
        projections: [Tensor<4>; 3],
        carried: &'a TokenState,
    ) -> Self {
        let [q, k, v] = projections;
        let engine = Engine::best(&q.device());
        let (attention_kind, precision) = (AttentionKind::Soft, MatmulPrecision::F32);
        Self { layer, at, x, q, k, v, carried, engine, attention_kind, precision }
    }
}

/// Result of one layer's attention.
#[derive(Debug)]
pub struct LayerOutput {
    /// Attention output, `[B, H, T, D]`: values averaged by the weights.
    pub output: Tensor<4>,
    /// State of the rows after the attention. After the feed-forward layer, give it to
    /// [`update`](crate::PositionEncoding::update) with [`Update::FeedForward`]; the result is
    /// `carried` of the next layer.
    pub carried: TokenState,
    /// Attention weights, `[B, H, T, S]`, if asked for.
    pub weights: Option<Tensor<4>>,
    /// Quantities inside the attention; empty unless [`Weights::Explain`] requests them.
    pub traces: Vec<Trace>,
}

/// Runs one layer's attention under an encoding.
///
/// `cache` holds the earlier tokens and receives the new ones; without a cache, the new tokens
/// attend only to each other. Keys and values that groups of heads share are stored once and
/// repeated before the encoding sees them; keys that it [fixes](crate::PositionEncoding::fixed_keys)
/// are changed first and repeated where the engine needs that.
///
/// The cache drops columns outside of the layer's [horizon](crate::PositionEncoding::horizon). Long
/// passes are computed in blocks of rows over the columns that they need, unless weights are returned.
///
/// # Panics
///
/// If shapes or positions do not fit each other.
pub fn layer(
    encoding: &dyn Hooks,
    input: LayerInput<'_>,
    cache: Option<&mut LayerCache>,
    weights: Weights,
) -> LayerOutput {
    let LayerInput { layer, at, x, q, k, v, carried, engine, attention_kind, precision } = input;
    let [_batch, heads, new_tokens, head_dim] = q.dims();
    assert_eq!(
        new_tokens,
        at.rows().len(),
        "the number of queries differs from the number of row positions"
    );
    let rows = encoding.state(&StateContext { layer, at, x, carried });
    let fixed = encoding.fixed_keys();
    let (q, k) = if fixed {
        let at = at.without_cached(&q.device());
        let ctx = LayerContext { layer, at: &at, rows: &rows, cols: &rows };
        encoding.transform_qk(q, k, &ctx)
    } else {
        (q, k)
    };
    let horizon = encoding.horizon(layer);
    let (k, v, cols, kept) = match cache {
        Some(cache) => {
            let dropped = cache.dropped();
            let columns = dropped..at.cols().len();
            let kept = (dropped > 0).then(|| at.block(0..new_tokens, columns, &q.device()));
            let (k, v, cols) = cache.append(k, v, &rows);
            if let (Some(horizon), Some(last)) = (horizon, at.rows().last()) {
                cache.drop_before(blocks::first_needed(at, last + 1, horizon));
            }
            (k, v, cols, kept)
        }
        None => (k, v, rows.clone(), None),
    };
    let at = kept.as_ref().unwrap_or(at);
    let [_batch, _groups, columns, _width] = k.dims();
    assert_eq!(
        columns,
        at.cols().len(),
        "the number of keys differs from the number of column positions"
    );

    let ctx = LayerContext { layer, at, rows: &rows, cols: &cols };
    let (q, k) = if fixed { (q, k) } else { encoding.transform_qk(q, repeated(k, heads), &ctx) };
    let call =
        AttentionCall { encoding, head_dim, engine, attention_kind, precision, weights, fixed };
    let cut = if weights == Weights::Drop { blocks::blocks(at, horizon) } else { Vec::new() };
    let (Attended { output, weights }, traces) =
        if cut.len() > 1 || cut.iter().any(|block| block.columns.start > 0) {
            let output = cut.into_iter().map(|block| call.attend_block(&ctx, &q, &k, &v, block));
            let output = Tensor::cat(output.collect(), 2);
            (Attended { output, weights: None }, Vec::new())
        } else {
            call.attend(&ctx, &q, k, v)
        };
    let [_batch, _heads, _rows, mixed_dim] = output.dims();
    let (output, mixed) = if mixed_dim > head_dim {
        let mixed = output.clone().slice_dim(3, head_dim..mixed_dim);
        (output.slice_dim(3, 0..head_dim), Some(mixed))
    } else {
        (output, None)
    };
    let carried = encoding.update(rows, layer, Update::Attention(mixed.as_ref()));
    LayerOutput { output, carried, weights, traces }
}

/// How the attention of a layer is computed, whatever the rows.
struct AttentionCall<'a> {
    encoding: &'a dyn Hooks,
    /// Width of a head before queries and keys are transformed.
    head_dim: usize,
    engine: Engine,
    attention_kind: AttentionKind,
    precision: MatmulPrecision,
    weights: Weights,
    /// Whether keys are kept as changed and not repeated.
    fixed: bool,
}

impl AttentionCall<'_> {
    /// Computes the attention of transformed queries `[B, H, T, D]` and keys `[B, H, S, D]`, or `[B, K, S, D]` if they are fixed,
    /// and values `[B, K, S, D]`; with the traces that are asked for.
    fn attend(
        &self,
        ctx: &LayerContext<'_>,
        q: &Tensor<4>,
        k: Tensor<4>,
        v: Tensor<4>,
    ) -> (Attended, Vec<Trace>) {
        let Self { encoding, head_dim, engine, attention_kind, precision, weights, fixed } = *self;
        let [batch, heads, rows, _width] = q.dims();
        let modifier = encoding.score(&ScoreContext { layer: ctx, q, k: &k });
        let modifier = match attention_kind {
            AttentionKind::Soft => modifier,
            AttentionKind::Hard => ScoreMod::Sum(vec![modifier, ScoreMod::Hard]),
        };
        let extra = encoding.mixed_values(ctx);
        let shared = fixed && extra.is_none() && engine.takes_shared_heads(q, &modifier, weights);
        let (k, v) = if shared { (k, v) } else { (repeated(k, heads), repeated(v, heads)) };
        let values = match extra {
            Some(extra) => Tensor::cat(vec![v.clone(), extra], 3),
            None => v.clone(),
        };
        let scale = 1.0 / (head_dim as f64).sqrt();
        let mut traces = Vec::new();
        if weights == Weights::Explain {
            let inputs = reference::LogitInputs::new(q, &k, &v, ctx.at, scale);
            traces = trace::of_modifier(&modifier, &inputs);
            let columns = ctx.at.cols().len();
            let dims = [batch, heads, rows, head_dim];
            traces.extend(trace::of_transform(encoding, dims, columns, ctx, &q.device()));
        }
        let attended =
            engine.attend_of(precision, q, &k, &v, values, &modifier, ctx.at, scale, weights);
        (attended, traces)
    }

    /// Output of some rows, `[B, H, rows, E]`, from the tensors of all rows and columns.
    fn attend_block(
        &self,
        ctx: &LayerContext<'_>,
        q: &Tensor<4>,
        k: &Tensor<4>,
        v: &Tensor<4>,
        RowBlock { rows, columns }: RowBlock,
    ) -> Tensor<4> {
        let at = ctx.at.block(rows.clone(), columns.clone(), &q.device());
        let own = |u: &Tensor<4>, tokens: &Range<usize>| u.clone().slice_dim(2, tokens.clone());
        let (q, k, v) = (own(q, &rows), own(k, &columns), own(v, &columns));
        let (rows, cols) = (ctx.rows.of_tokens(rows), ctx.cols.of_tokens(columns));
        let ctx = LayerContext { layer: ctx.layer, at: &at, rows: &rows, cols: &cols };
        self.attend(&ctx, &q, k, v).0.output
    }
}

/// Calls `body` with the context of a layer over contiguous tokens, to which no layer has passed state; `x` is the input of the
/// layer, `[B, T, C]`.
pub(crate) fn in_layer<T>(
    encoding: &dyn Hooks,
    layer: usize,
    x: &Tensor<3>,
    body: impl FnOnce(&LayerContext<'_>) -> T,
) -> T {
    let [_batch, tokens, _width] = x.dims();
    let at = Positions::contiguous(0, tokens);
    let carried = TokenState::default();
    let rows = encoding.state(&StateContext { layer, at: &at, x, carried: &carried });
    body(&LayerContext { layer, at: &at, rows: &rows, cols: &rows })
}

/// Computes logits of transformed queries `[B, H, T, D]` and keys `[B, H, S, D]` with the reference
/// engine, before the mask, `[B, H, T, S]`; `v` are the values.
pub(crate) fn logits(
    encoding: &dyn Hooks,
    ctx: &LayerContext<'_>,
    q: &Tensor<4>,
    k: &Tensor<4>,
    v: &Tensor<4>,
) -> Tensor<4> {
    let [_batch, _heads, _columns, head_dim] = v.dims();
    let modifier = encoding.score(&ScoreContext { layer: ctx, q, k });
    let scale = 1.0 / (head_dim as f64).sqrt();
    reference::LogitInputs::new(q, k, v, ctx.at, scale).logits(&reference::Plan::of(&modifier))
}

/// Computes the sum of the base biases that networks across heads adapt ([`ScoreMod::HeadMlp`]), `[1, H, T, S]`, from
/// the tensors of [`logits`]; `None` if there is none.
pub(crate) fn base_biases(
    encoding: &dyn Hooks,
    ctx: &LayerContext<'_>,
    q: &Tensor<4>,
    k: &Tensor<4>,
    v: &Tensor<4>,
) -> Option<Tensor<4>> {
    let modifier = encoding.score(&ScoreContext { layer: ctx, q, k });
    let inputs = reference::LogitInputs::new(q, k, v, ctx.at, 1.0);
    let plan = reference::Plan::of(&modifier);
    let bases = plan.parts.iter().filter_map(|part| match part {
        ScoreMod::HeadMlp(mlp) => inputs.bias(mlp.base.as_deref()?),
        _ => None,
    });
    bases.reduce(|sum, base| sum + base)
}

/// Repeats each head of keys or values `H / K` times in a row, `[B, K, S, D] -> [B, H, S, D]`.
///
/// # Panics
///
/// If `K` does not divide `heads`.
pub fn repeated(u: Tensor<4>, heads: usize) -> Tensor<4> {
    let [_batch, groups, _columns, _head_dim] = u.dims();
    assert!(
        heads.is_multiple_of(groups),
        "{heads} query heads, expected a multiple of {groups}, the number of key heads"
    );
    repeat_heads(u, heads / groups)
}

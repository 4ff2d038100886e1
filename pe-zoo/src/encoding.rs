//! The contract: what a position encoding is, and how one is configured.
//!
//! Shapes: `B` batch, `T` new tokens (rows), `S` all tokens (columns, cached ones included), `H`
//! heads, `D` head dimension, `C = H * D` width.

use std::fmt::Debug;

use burn::module::{Module, ModuleDisplay};
use burn::tensor::{Device, Int, Tensor};
use rand_chacha::ChaCha8Rng;

use crate::meta::{Brackets, Conduct, PeMeta};
use crate::{Cost, PeError, Positions, ScoreMod, TokenState};

/// The sizes that an encoding is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dims {
    /// Number of attention layers.
    pub layers: usize,
    /// Heads per layer.
    pub heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// Longest training sequence in tokens.
    pub train_len: usize,
    /// Longest sequence in tokens that will ever be asked for, evaluation included.
    pub max_len: usize,
}

impl Dims {
    /// Width of the model, `heads * head_dim`.
    pub fn width(&self) -> usize {
        self.heads * self.head_dim
    }
}

/// Asks for the positions of a pass.
#[derive(Debug)]
pub struct PositionRequest<'a> {
    /// Tokens that came before and are cached.
    pub cached_tokens: usize,
    /// Tokens of this pass.
    pub new_tokens: usize,
    /// The generator for random positions: present in training, absent in evaluation.
    pub training_rng: Option<&'a mut ChaCha8Rng>,
}

/// What `embed` may look at.
#[derive(Debug)]
pub struct EmbedContext<'a> {
    /// Positions; `embed` sees the rows.
    pub at: &'a Positions,
    /// Ids of all tokens so far, `[B, S]`; the last `T` are those being embedded.
    pub tokens: &'a Tensor<2, Int>,
}

/// What `state` may look at.
#[derive(Debug)]
pub struct StateContext<'a> {
    /// Index of the layer, from 0.
    pub layer: usize,
    /// Positions.
    pub at: &'a Positions,
    /// The layer's normalised input, `[B, T, C]`.
    pub x: &'a Tensor<3>,
    /// What the layer before left; empty in layer 0.
    pub carried: &'a TokenState,
}

/// What the hooks inside a layer may look at.
#[derive(Debug)]
pub struct LayerContext<'a> {
    /// Index of the layer, from 0.
    pub layer: usize,
    /// Positions.
    pub at: &'a Positions,
    /// State of the rows.
    pub rows: &'a TokenState,
    /// State of the columns, cached ones included.
    pub cols: &'a TokenState,
}

/// What `score` may look at, besides the layer.
#[derive(Debug)]
pub struct ScoreContext<'a> {
    /// The layer.
    pub layer: &'a LayerContext<'a>,
    /// Queries after `transform_qk`, `[B, H, T, D]`.
    pub q: &'a Tensor<4>,
    /// Keys after `transform_qk`, `[B, H, S, D]`.
    pub k: &'a Tensor<4>,
}

/// When `update` is called, and with what.
#[derive(Debug)]
pub enum Update<'a> {
    /// After the attention, with what the attention weights made of `mixed_values`,
    /// `[B, H, T, E]`; `None` if the encoding gave none.
    Attention(Option<&'a Tensor<4>>),
    /// After the feed-forward part, with its output before the residual sum, `[B, T, C]`.
    FeedForward(&'a Tensor<3>),
}

/// A position encoding. Every hook defaults to "does nothing": implement what yours is.
///
/// One instance serves all layers of a model; hooks inside a layer are told its index.
pub trait PositionEncoding: Module + ModuleDisplay + Sync {
    /// Which position each token has.
    ///
    /// # Errors
    /// [`PeError`] if the encoding has no such positions. The length limit of
    /// [`max_len`](Self::max_len) is checked by the caller for every encoding alike.
    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
        Ok(Positions::contiguous(request.cached_tokens, request.new_tokens))
    }

    /// Adds to the token embeddings, `[B, T, C] -> [B, T, C]`.
    fn embed(&self, x: Tensor<3>, _ctx: &EmbedContext<'_>) -> Tensor<3> {
        x
    }

    /// What each new token carries in this layer besides query, key and value. Columns get it
    /// from the cache.
    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        ctx.carried.clone()
    }

    /// Changes queries `[B, H, T, D]` and keys `[B, H, S, D]` before the dot product. Keys come
    /// from the cache as they were projected, so every column is handed over in every pass.
    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        _ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        (q, k)
    }

    /// What is done to the logits.
    fn score(&self, _ctx: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::None
    }

    /// Further columns that the attention weights are to mix along with the values,
    /// `[B, H, S, E]`.
    fn mixed_values(&self, _ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
        None
    }

    /// What the rows carry on, after the attention and after the feed-forward part of a layer.
    fn update(&self, rows: TokenState, _layer: usize, _update: Update<'_>) -> TokenState {
        rows
    }

    /// Number of positions the encoding has, if there is a limit: positions `0..max_len`.
    fn max_len(&self) -> Option<usize> {
        None
    }
}

/// The settings of an encoding, from which it is built.
///
/// Implement this and [`PositionEncoding`] in your own crate, hand the settings to the runner,
/// and your encoding gets the same checks, tasks, speed rows and report as those of the zoo.
pub trait EncodingConfig: Clone + Debug + Send + Sync + serde::Serialize {
    /// What is built.
    type Encoding: PositionEncoding;

    /// The facts about this kind; of a combination, about all its parts at once.
    fn meta(&self) -> &'static PeMeta;

    /// How it behaves beside other encodings, where [`PeMeta::sites`] does not tell.
    fn conduct(&self) -> Vec<Conduct> {
        Vec::new()
    }

    /// What an expression in brackets after its id means.
    fn brackets(&self) -> Brackets {
        Brackets::Refused
    }

    /// What tells this configuration from every other: a cell's key is made of it.
    fn identity(&self) -> serde_json::Value {
        serde_json::json!({ "id": self.meta().id, "settings": self })
    }

    /// The sizes for which encodings beside this one are built: one that chooses positions
    /// raises the lengths to what it may choose.
    fn dims_beside(&self, dims: &Dims) -> Dims {
        *dims
    }

    /// Refuses sizes and settings that cannot work, before anything is built.
    ///
    /// # Errors
    /// [`PeError::InvalidSetting`], the field named.
    fn check(&self, _dims: &Dims) -> Result<(), PeError> {
        Ok(())
    }

    /// Builds the encoding; every random number comes from `rng`.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    fn init(
        &self,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self::Encoding, PeError>;

    /// Learned numbers in the whole model.
    fn param_count(&self, _dims: &Dims) -> usize {
        0
    }

    /// What the encoding adds to one forward pass over one sequence of `len` tokens, all layers,
    /// every pair of tokens counted; beyond what a model without any encoding does.
    fn cost(&self, _dims: &Dims, _len: usize) -> Cost {
        Cost::none()
    }
}

/// The positions of a pass, held against the encoding's length limit.
///
/// # Errors
/// [`PeError::TooLong`] past the limit; whatever [`PositionEncoding::positions`] refuses.
pub fn positions<P: PositionEncoding>(
    encoding: &P,
    id: &str,
    request: PositionRequest<'_>,
) -> Result<Positions, PeError> {
    let at = encoding.positions(request)?;
    check_limit(encoding, id, &at)?;
    Ok(at)
}

/// Refuses positions past the encoding's length limit.
///
/// # Errors
/// [`PeError::TooLong`].
pub fn check_limit<P: PositionEncoding>(
    encoding: &P,
    id: &str,
    at: &Positions,
) -> Result<(), PeError> {
    let last = at.cols().last().copied().unwrap_or(0);
    match encoding.max_len() {
        Some(limit) if last >= limit => Err(PeError::TooLong {
            pe: id.to_owned(),
            position: last,
            max_position: limit.saturating_sub(1),
        }),
        _ => Ok(()),
    }
}

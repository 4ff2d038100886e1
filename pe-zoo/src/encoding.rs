//! The contract between an encoding and its users: [`PositionEncoding`].
//!
//! Shapes: `B` batch, `T` new tokens (rows), `S` all tokens (columns, cached ones included), `H`
//! heads, `D` head dimension, `C = H * D` width.

use std::fmt::Debug;

use burn::module::{Module, ModuleDisplay};
use burn::tensor::{Device, Int, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::card::{Card, Composition};
use crate::reference::ScalarReference;
use crate::{Cost, PeError, Positions, ScoreMod, TokenState};

/// Sizes of the model that an encoding is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dims {
    /// Number of attention layers.
    pub layers: usize,
    /// Width of the residual stream, `C`: channels of embeddings and of the inputs of layers.
    pub width: usize,
    /// Number of heads per layer.
    pub heads: usize,
    /// Number of channels of one head.
    pub head_dim: usize,
    /// Longest training sequence in tokens.
    pub train_len: usize,
    /// Longest sequence in tokens, evaluation included.
    pub max_len: usize,
}

impl Dims {
    /// Total number of channels of the heads, `H D`; in most models, but not in all, it is the width.
    pub fn heads_width(&self) -> usize {
        self.heads * self.head_dim
    }
}

/// A tensor of an encoding that is drawn when the encoding is built and never trained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Constant {
    /// Path of the tensor in the module, as that of a parameter.
    pub name: String,
    /// Dimensions of the tensor.
    pub shape: Vec<usize>,
    /// Values in row-major order.
    pub values: Vec<f32>,
}

impl Constant {
    /// The constant of a module that is the field or entry `name` of another one.
    #[must_use]
    pub fn within(self, name: &str) -> Self {
        Self { name: format!("{name}.{}", self.name), ..self }
    }
}

/// Request for the positions of a pass.
#[derive(Debug)]
pub struct PositionRequest<'a> {
    /// Number of tokens that came before and are cached.
    pub cached_tokens: usize,
    /// Number of tokens in this pass, at least 1.
    pub new_tokens: usize,
    /// Generator for random positions; `Some` in training, `None` in evaluation.
    pub training_rng: Option<&'a mut ChaCha8Rng>,
}

impl PositionRequest<'_> {
    /// Positions 0, 1, 2 and so on.
    ///
    /// # Errors
    /// [`PeError::Positions`] if there are no new tokens.
    pub fn contiguous(&self) -> Result<Positions, PeError> {
        let tokens = self.cached_tokens.saturating_add(self.new_tokens);
        Positions::new((0..tokens).collect(), self.cached_tokens)
    }
}

/// Input of the hook [`PositionEncoding::embed`].
#[derive(Debug)]
pub struct EmbedContext<'a> {
    /// Positions of the tokens; the embeddings are those of the rows.
    pub at: &'a Positions,
    /// Ids of all tokens so far, `[B, S]`; the last `T` are those being embedded.
    pub tokens: &'a Tensor<2, Int>,
}

/// Input of the hook [`PositionEncoding::state`].
#[derive(Debug)]
pub struct StateContext<'a> {
    /// Index of the layer, from 0.
    pub layer: usize,
    /// Positions of rows and columns.
    pub at: &'a Positions,
    /// The layer's normalised input, `[B, T, C]`.
    pub x: &'a Tensor<3>,
    /// State after the previous layer; empty in layer 0.
    pub carried: &'a TokenState,
}

/// Input of the hooks inside a layer.
#[derive(Debug)]
pub struct LayerContext<'a> {
    /// Index of the layer, from 0.
    pub layer: usize,
    /// Positions of rows and columns.
    pub at: &'a Positions,
    /// State of the rows.
    pub rows: &'a TokenState,
    /// State of the columns, cached ones included.
    pub cols: &'a TokenState,
}

/// Input of the hook [`PositionEncoding::score`].
#[derive(Debug)]
pub struct ScoreContext<'a> {
    /// Layer, positions and state.
    pub layer: &'a LayerContext<'a>,
    /// Queries after `transform_qk`, `[B, H, T, D]`.
    pub q: &'a Tensor<4>,
    /// Keys after `transform_qk`, `[B, H, S, D]`; `[B, K, S, D]` if they are
    /// [fixed](PositionEncoding::fixed_keys).
    pub k: &'a Tensor<4>,
}

/// Event after which [`PositionEncoding::update`] is called.
#[derive(Debug)]
pub enum Update<'a> {
    /// The attention has run; holds `mixed_values` multiplied by the attention weights,
    /// `[B, H, T, E]`, or `None` if the encoding gave no `mixed_values`.
    Attention(Option<&'a Tensor<4>>),
    /// The feed-forward block has run; holds its output before the residual sum, `[B, T, C]`.
    FeedForward(&'a Tensor<3>),
}

/// Settings of an encoding: implemented for every plain serde struct with defaults.
///
/// [`settings!`](macro@crate::settings) defines such a struct. Settings that are left out keep their defaults, and misspelled
/// ones are refused.
pub trait EncodingSettings:
    Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<T> EncodingSettings for T where
    T: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// A position encoding.
///
/// [`Settings`](Self::Settings), [`CARD`](Self::CARD) and [`build`](Self::build) are required; every
/// hook defaults to no effect. One instance serves all layers of a model; hooks inside a layer get
/// the layer's index. Add the type to a [`Registry`](crate::Registry) and it has everything that the
/// encodings of this crate have.
pub trait PositionEncoding: Module + ModuleDisplay + Sync + 'static {
    /// Settings, as suites and the command line write them; [`NoSettings`](crate::settings::NoSettings) if there are none.
    type Settings: EncodingSettings;

    /// Description at the default settings.
    const CARD: Card;

    /// Builds the encoding for settings and sizes that [`check`](Self::check) accepts. Every random
    /// number comes from `rng`.
    ///
    /// # Errors
    /// [`PeError`] if the encoding cannot be built.
    fn build(
        settings: &Self::Settings,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError>;

    /// Refuses settings and sizes that cannot work, before anything is built.
    ///
    /// # Errors
    /// [`PeError::InvalidSetting`] with the field.
    fn check(_settings: &Self::Settings, _dims: &Dims) -> Result<(), PeError> {
        Ok(())
    }

    /// Meaning of an expression in brackets after the encoding's id.
    fn composition(_settings: &Self::Settings) -> Composition {
        Composition::Plain
    }

    /// Sizes for which the encodings that act together with this one are built. An encoding that
    /// chooses positions raises the lengths to the range it chooses from.
    fn dims_beside(_settings: &Self::Settings, dims: &Dims) -> Dims {
        *dims
    }

    /// Description for these settings, where it differs from [`CARD`](Self::CARD); the id is the same.
    fn card(_settings: &Self::Settings) -> Card {
        Self::CARD
    }

    /// Number of learned parameters in the whole model. `None`: counted by building the encoding.
    /// The default is 0 if the card says `0`.
    fn param_count(settings: &Self::Settings, _dims: &Dims) -> Option<usize> {
        (Self::card(settings).parameters == "0").then_some(0)
    }

    /// Operations that the encoding adds to one forward pass over one sequence of `len` tokens
    /// through all layers, every pair of tokens counted. `None`: unknown.
    fn cost(_settings: &Self::Settings, _dims: &Dims, _len: usize) -> Option<Cost> {
        None
    }

    /// Number of positions that a row of a layer sees, its own included, in a model of `layers` layers. `None`: all.
    ///
    /// An encoding that states a number hides every column farther away by its [`score`](Self::score). Attention then skips most
    /// hidden columns, and the cache drops them: the other hooks of the layer get only the columns that are left.
    fn horizon(_settings: &Self::Settings, _layers: usize, _layer: usize) -> Option<usize> {
        None
    }

    /// Scalar f64 implementation that the tensor code is tested against, if there is one.
    fn reference(&self) -> Option<&dyn ScalarReference> {
        None
    }

    /// Positions of the tokens of a pass. The default is `0, 1, 2, ...`.
    ///
    /// # Errors
    /// [`PeError`] if there are no such positions. The limit of [`max_len`](Self::max_len) is checked
    /// by the caller.
    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
        request.contiguous()
    }

    /// Adds to the token embeddings, `[B, T, C] -> [B, T, C]`.
    fn embed(&self, x: Tensor<3>, _ctx: &EmbedContext<'_>) -> Tensor<3> {
        x
    }

    /// Computes the state of each new token in this layer besides query, key and value. The state
    /// of the columns comes from the cache.
    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        ctx.carried.clone()
    }

    /// Transforms queries `[B, H, T, D]` and keys `[B, H, S, D]` before the dot product. Cached keys
    /// are kept as they were projected, so every pass gets all columns, unless keys are
    /// [fixed](Self::fixed_keys).
    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        _ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        (q, k)
    }

    /// Whether `transform_qk` changes a key by its own position alone, in the same way in every head.
    ///
    /// If so, keys are kept as changed, and `transform_qk` gets only those of the new tokens, `[B, K,
    /// T, D]`, with the rows as columns; each of the `K` heads serves `H / K` heads of queries.
    fn fixed_keys(&self) -> bool {
        false
    }

    /// Describes the change of the logits.
    fn score(&self, _ctx: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::None
    }

    /// Returns further columns that the attention weights average along with the values, `[B, H, S,
    /// E]`.
    fn mixed_values(&self, _ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
        None
    }

    /// Updates the state of the rows after the attention and after the feed-forward block of a
    /// layer.
    fn update(&self, rows: TokenState, _layer: usize, _update: Update<'_>) -> TokenState {
        rows
    }

    /// Number of supported positions, `0..max_len`; `None` if unlimited.
    fn max_len(&self) -> Option<usize> {
        None
    }

    /// Returns the numbers that were drawn when the encoding was built and are never trained. They are neither settings nor
    /// parameters, so another implementation of a trained model needs them as well.
    fn constants(&self) -> Vec<Constant> {
        Vec::new()
    }
}

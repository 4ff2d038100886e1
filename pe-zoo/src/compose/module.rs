//! The module of a combination: the hooks of its parts, applied in order.

use burn::module::{Module, ParamId};
use burn::tensor::{Device, Tensor};

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::card::{ActsOn, Properties};
use crate::encoding::{
    Constant, EmbedContext, LayerContext, PositionRequest, ScoreContext, StateContext, Update,
};
use crate::erased::{AnyEncoding, Hooks};
use crate::reference::ScalarReference;
use crate::{Dims, PeError, Positions, ScoreMod, TokenState, probe};

/// One or more encodings that act together.
#[derive(Module, Debug)]
pub struct Combined {
    pub(super) parts: Vec<AnyEncoding>,
    /// Number of tensors that each part keeps per token, by layer.
    #[module(skip)]
    state_tensors: Vec<Vec<usize>>,
    /// Number of layers that it is built for.
    #[module(skip)]
    pub(crate) layers: usize,
    #[module(skip)]
    pub(super) places: Places,
    /// Number of positions that a row sees in each layer; `None`: all.
    #[module(skip)]
    horizons: Vec<Option<usize>>,
    /// Names of the biases and slopes of each part.
    #[module(skip)]
    biases: Vec<Arc<BTreeSet<String>>>,
    /// Maximum number of tokens of a sequence, whatever their positions, if the model around the encoding limits it.
    #[module(skip)]
    pub max_tokens: Option<usize>,
}

/// Indices of the parts that implement certain hooks. At most one part chooses positions, mixes values or replaces the
/// softmax.
#[derive(Debug, Clone)]
pub(super) struct Places {
    chooses_positions: Option<usize>,
    mixes_values: Option<usize>,
    /// All parts in the order in which they transform queries and keys: factors of rows after others, and last parts whose
    /// products for some pairs are those of queries and keys that the others have changed. The transforms of the others give
    /// the same in any order.
    order: Vec<usize>,
    /// The parts that have a transform, in the same order.
    pub(super) transforms: Vec<usize>,
    pub(super) replaces_softmax: Option<usize>,
}

impl Combined {
    /// `properties` are those of the parts; empty for a single part. `biases` are the names of each part's biases and
    /// slopes.
    pub(super) fn new(
        properties: &[Arc<Properties>],
        biases: Vec<Arc<BTreeSet<String>>>,
        horizons: Vec<Option<usize>>,
        parts: Vec<AnyEncoding>,
        dims: &Dims,
        device: &Device,
    ) -> Self {
        let part_that = |has: fn(&Properties) -> bool| properties.iter().position(|part| has(part));
        let places = if parts.len() == 1 {
            Places {
                chooses_positions: None,
                mixes_values: Some(0),
                order: vec![0],
                transforms: vec![0],
                replaces_softmax: None,
            }
        } else {
            let mut order = (0..properties.len()).collect::<Vec<_>>();
            order.sort_by_key(|part| {
                let Properties { replaces_products, scales_rows, .. } = *properties[*part];
                (replaces_products, scales_rows)
            });
            let transforms = |part: &usize| properties[*part].acts_on(ActsOn::QueryKey);
            Places {
                chooses_positions: part_that(|part| part.acts_on(ActsOn::Positions)),
                mixes_values: part_that(|part| part.mixes_values),
                transforms: order.iter().copied().filter(transforms).collect(),
                order,
                replaces_softmax: part_that(|part| part.replaces_softmax),
            }
        };
        let state_tensors =
            if parts.len() == 1 { Vec::new() } else { tensors(&parts, dims, device) };
        Self {
            parts,
            state_tensors,
            layers: dims.layers,
            places,
            horizons,
            biases,
            max_tokens: None,
        }
    }

    /// Ids of the biases and slopes: parameters that change the logits by amounts that depend on positions alone.
    pub fn bias_ids(&self) -> BTreeSet<ParamId> {
        let parts = self.parts.iter().zip(&self.biases);
        parts.flat_map(|(part, names)| probe::bias_ids(part, names)).collect()
    }

    /// Selects the state of one part from the state of all parts in a layer.
    fn own(&self, all: &TokenState, layer: usize, part: usize) -> TokenState {
        if self.parts.len() == 1 {
            return all.clone();
        }
        let tensors = &self.state_tensors[layer];
        let start = tensors[..part].iter().sum::<usize>();
        TokenState { tensors: all.tensors[start..start + tensors[part]].to_vec() }
    }

    /// Collects the state of all parts in a layer.
    fn all(
        &self,
        layer: usize,
        mut ask: impl FnMut(usize, &dyn Hooks) -> TokenState,
    ) -> TokenState {
        let mut tensors = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            let own = ask(at, part.hooks()).tensors;
            if let Some(expected) = self.state_tensors.get(layer) {
                let expected = expected[at];
                assert_eq!(own.len(), expected, "part {at} changed the number of its tensors");
            }
            tensors.extend(own);
        }
        TokenState { tensors }
    }

    fn in_layer<T>(
        &self,
        ctx: &LayerContext<'_>,
        part: usize,
        hook: impl FnOnce(&dyn Hooks, &LayerContext<'_>) -> T,
    ) -> T {
        let own = |all| self.own(all, ctx.layer, part);
        let (rows, cols) = (own(ctx.rows), own(ctx.cols));
        hook(self.parts[part].hooks(), &LayerContext { rows: &rows, cols: &cols, ..*ctx })
    }
}

/// Number of tensors that each part keeps per token in each layer, found by asking it for the state
/// of one token.
fn tensors(parts: &[AnyEncoding], dims: &Dims, device: &Device) -> Vec<Vec<usize>> {
    let at = Positions::contiguous(0, 1);
    let x = Tensor::zeros([1, 1, dims.width], device);
    let mut carried = vec![TokenState::default(); parts.len()];
    (0..dims.layers)
        .map(|layer| {
            for (part, carried) in parts.iter().zip(&mut carried) {
                *carried = part.hooks().state(&StateContext { layer, at: &at, x: &x, carried });
            }
            carried.iter().map(|state| state.tensors.len()).collect()
        })
        .collect()
}

impl Combined {
    /// Iterates over the hooks of the parts, in order.
    pub(super) fn hooks(&self) -> impl Iterator<Item = &dyn Hooks> {
        self.parts.iter().map(AnyEncoding::hooks)
    }
}

impl Hooks for Combined {
    fn reference(&self) -> Option<&dyn ScalarReference> {
        self.hooks().all(|part| part.reference().is_some()).then_some(self)
    }

    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
        let tokens = request.cached_tokens.saturating_add(request.new_tokens);
        if let Some(max_tokens) = self.max_tokens.filter(|most| tokens > *most) {
            return Err(PeError::TooManyTokens { tokens, max_tokens });
        }
        self.parts[self.places.chooses_positions.unwrap_or(0)].hooks().positions(request)
    }

    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
        self.hooks().fold(x, |x, part| part.embed(x, ctx))
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        self.all(ctx.layer, |at, part| {
            // Layer 0 has no carried state.
            let carried = match ctx.layer.checked_sub(1) {
                Some(before) if !ctx.carried.tensors.is_empty() => {
                    self.own(ctx.carried, before, at)
                }
                _ => TokenState::default(),
            };
            part.state(&StateContext { carried: &carried, ..*ctx })
        })
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        self.places.order.iter().fold((q, k), |(q, k), part| {
            self.in_layer(ctx, *part, |part, ctx| part.transform_qk(q, k, ctx))
        })
    }

    fn fixed_keys(&self) -> bool {
        self.hooks().all(Hooks::fixed_keys)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let score = |part| {
            self.in_layer(ctx.layer, part, |part, layer| {
                part.score(&ScoreContext { layer, q: ctx.q, k: ctx.k })
            })
        };
        let scores = (0..self.parts.len()).map(score);
        let mut scores =
            scores.filter(|score| !matches!(score, ScoreMod::None)).collect::<Vec<_>>();
        match (scores.pop(), scores.is_empty()) {
            (None, _) => ScoreMod::None,
            (Some(only), true) => only,
            (Some(last), false) => {
                scores.push(last);
                ScoreMod::Sum(scores)
            }
        }
    }

    fn mixed_values(&self, ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
        self.in_layer(ctx, self.places.mixes_values?, |part, ctx| part.mixed_values(ctx))
    }

    fn update(&self, rows: TokenState, layer: usize, update: Update<'_>) -> TokenState {
        self.all(layer, |at, part| {
            let own = self.own(&rows, layer, at);
            let update = match update {
                Update::Attention(_) if self.places.mixes_values != Some(at) => {
                    Update::Attention(None)
                }
                Update::Attention(mixed) => Update::Attention(mixed),
                Update::FeedForward(output) => Update::FeedForward(output),
            };
            part.update(own, layer, update)
        })
    }

    fn max_len(&self) -> Option<usize> {
        self.hooks().filter_map(Hooks::max_len).min()
    }

    fn constants(&self) -> Vec<Constant> {
        let of_part = |(at, part): (usize, &dyn Hooks)| {
            let name = format!("parts.{at}");
            part.constants().into_iter().map(move |constant| constant.within(&name))
        };
        self.hooks().enumerate().flat_map(of_part).collect()
    }

    fn horizon(&self, layer: usize) -> Option<usize> {
        self.horizons[layer]
    }
}

//! What a combination does: the hooks of its parts, folded.

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::{Combination, acts_on, conducts};
use crate::encoding::{
    EmbedContext, LayerContext, PositionRequest, ScoreContext, StateContext, Update,
};
use crate::meta::{Conduct, Site};
use crate::zoo::Pe;
use crate::{Dims, PeError, PositionEncoding, Positions, ScoreMod, TokenState};

/// One or more encodings that act together.
#[derive(Module, Debug)]
pub struct Combined {
    pub(super) parts: Vec<Pe>,
    /// Tensors that each part keeps per token, by layer.
    #[module(skip)]
    state_tensors: Vec<Vec<usize>>,
    #[module(skip)]
    pub(super) places: Places,
}

/// Which part has the places that have room for one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    chooses_positions: Option<usize>,
    mixes_values: Option<usize>,
    pub(super) transforms: Option<usize>,
    pub(super) replaces_softmax: Option<usize>,
}

impl Combined {
    pub(super) fn new(config: &Combination, parts: Vec<Pe>, dims: &Dims, device: &Device) -> Self {
        let places = Places {
            chooses_positions: config.place_of(|part| acts_on(part, Site::Positions)),
            mixes_values: config.place_of(|part| conducts(part, Conduct::MixesValues)),
            transforms: config.place_of(|part| acts_on(part, Site::QueryKey)),
            replaces_softmax: config.place_of(|part| conducts(part, Conduct::ReplacesSoftmax)),
        };
        let state_tensors =
            if parts.len() == 1 { Vec::new() } else { tensors(&parts, dims, device) };
        Self { parts, state_tensors, places }
    }

    /// What one part keeps, out of what all keep in a layer.
    fn own(&self, all: &TokenState, layer: usize, part: usize) -> TokenState {
        if self.parts.len() == 1 {
            return all.clone();
        }
        let tensors = &self.state_tensors[layer];
        let start = tensors[..part].iter().sum::<usize>();
        TokenState { tensors: all.tensors[start..start + tensors[part]].to_vec() }
    }

    /// What all parts keep in a layer, each asked in turn.
    fn all(&self, layer: usize, mut ask: impl FnMut(usize, &Pe) -> TokenState) -> TokenState {
        let mut tensors = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            let own = ask(at, part).tensors;
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
        hook: impl FnOnce(&Pe, &LayerContext<'_>) -> T,
    ) -> T {
        let own = |all| self.own(all, ctx.layer, part);
        let (rows, cols) = (own(ctx.rows), own(ctx.cols));
        hook(&self.parts[part], &LayerContext { rows: &rows, cols: &cols, ..*ctx })
    }
}

/// How many tensors each part keeps per token in each layer: it is asked for one token.
fn tensors(parts: &[Pe], dims: &Dims, device: &Device) -> Vec<Vec<usize>> {
    let at = Positions::contiguous(0, 1);
    let x = Tensor::zeros([1, 1, dims.width()], device);
    let mut carried = vec![TokenState::default(); parts.len()];
    (0..dims.layers)
        .map(|layer| {
            for (part, carried) in parts.iter().zip(&mut carried) {
                *carried = part.state(&StateContext { layer, at: &at, x: &x, carried });
            }
            carried.iter().map(|state| state.tensors.len()).collect()
        })
        .collect()
}

impl PositionEncoding for Combined {
    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
        self.parts[self.places.chooses_positions.unwrap_or(0)].positions(request)
    }

    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
        self.parts.iter().fold(x, |x, part| part.embed(x, ctx))
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        self.all(ctx.layer, |at, part| {
            // Nothing is carried into the first layer.
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
        (0..self.parts.len()).fold((q, k), |(q, k), part| {
            self.in_layer(ctx, part, |part, ctx| part.transform_qk(q, k, ctx))
        })
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
        let part = self.places.mixes_values.or((self.parts.len() == 1).then_some(0))?;
        self.in_layer(ctx, part, PositionEncoding::mixed_values)
    }

    fn update(&self, rows: TokenState, layer: usize, update: Update<'_>) -> TokenState {
        self.all(layer, |at, part| {
            let own = self.own(&rows, layer, at);
            let update = match update {
                Update::Attention(_)
                    if self.parts.len() > 1 && self.places.mixes_values != Some(at) =>
                {
                    Update::Attention(None)
                }
                Update::Attention(mixed) => Update::Attention(mixed),
                Update::FeedForward(output) => Update::FeedForward(output),
            };
            part.update(own, layer, update)
        })
    }

    fn max_len(&self) -> Option<usize> {
        self.parts.iter().filter_map(PositionEncoding::max_len).min()
    }
}

//! Encodings with deliberately broken state, each with the check that must reject it. A single
//! layer cannot distinguish them from the correct one.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use super::{BROKEN, Choice, combination};
use crate::card::Card;
use crate::encoding::{LayerContext, ScoreContext, StateContext, Update};
use crate::reference::attention::{mix, softmax};
use crate::reference::{Heads, ScalarInput, ScalarLayer, ScalarReference, decay};
use crate::testkit::{Check, conforms};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, TokenState};

/// Faults of an encoding in which each token carries a number that starts at 0. After each layer,
/// half of its attention-weighted average and a tenth of the feed-forward block's first channel are
/// added. The running sum of the numbers is added to the logits.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) enum Fault {
    #[default]
    None,
    UpdateSeesTheFuture,
    UpdateSeesOtherSequences,
    UpdateCountsWithinTheChunk,
    FeedForwardForgotten,
    AttentionForgotten,
    StateDroppedBetweenLayers,
    UpdateSeesThePositions,
}

pub(super) const FAULTS: &[(Fault, Check)] = &[
    (Fault::UpdateSeesTheFuture, Check::Causal),
    (Fault::UpdateSeesOtherSequences, Check::BatchIndependent),
    (Fault::UpdateCountsWithinTheChunk, Check::DecodesAsFullPass),
    (Fault::FeedForwardForgotten, Check::EqualsReference),
    (Fault::AttentionForgotten, Check::EqualsReference),
    (Fault::StateDroppedBetweenLayers, Check::EqualsReference),
    (Fault::UpdateSeesThePositions, Check::EqualsReference),
];

#[derive(Module, Debug)]
struct Saboteur {
    #[module(skip)]
    fault: Fault,
    #[module(skip)]
    heads: usize,
}

impl PositionEncoding for Saboteur {
    type Settings = Choice<Fault>;

    const CARD: Card = BROKEN;

    fn build(
        settings: &Choice<Fault>,
        dims: &Dims,
        _: &mut ChaCha8Rng,
        _: &Device,
    ) -> Result<Self, PeError> {
        Ok(Saboteur { fault: settings.fault, heads: dims.heads })
    }

    fn cost(_settings: &Choice<Fault>, dims: &Dims, len: usize) -> Option<Cost> {
        Some(Cost::none().pair_product("numbers mixed", dims.layers * len * len * dims.heads))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let [batch, tokens, _width] = ctx.x.dims();
        let device = ctx.x.device();
        match ctx.carried.tensors.first() {
            Some(_) if self.fault == Fault::UpdateSeesThePositions => {
                let at = ctx.at.rows().iter().map(|n| 0.1 * *n as f32).collect::<Vec<_>>();
                let at = Tensor::<1>::from_data(at.as_slice(), &device).reshape([1, 1, tokens, 1]);
                let with_positions = ctx.carried.tensors[0].clone() + at;
                TokenState { tensors: vec![with_positions] }
            }
            Some(_) if self.fault != Fault::StateDroppedBetweenLayers => ctx.carried.clone(),
            _ => {
                TokenState { tensors: vec![Tensor::zeros([batch, self.heads, tokens, 1], &device)] }
            }
        }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let own = ctx.layer.cols.tensors[0].clone();
        ScoreMod::Decay { cumulative: own.squeeze_dim::<3>(3).cumsum(2) }
    }

    fn mixed_values(&self, ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
        Some(ctx.cols.tensors[0].clone())
    }

    fn update(&self, rows: TokenState, _layer: usize, update: Update<'_>) -> TokenState {
        let own = rows.tensors[0].clone();
        let [_batch, _heads, tokens, _one] = own.dims();
        let own = match (update, self.fault) {
            (Update::Attention(Some(mixed)), fault) if fault != Fault::AttentionForgotten => {
                own + mixed.clone() * 0.5
            }
            (Update::FeedForward(x), fault) if fault != Fault::FeedForwardForgotten => {
                let first = x.clone().slice_dim(2, 0..1).unsqueeze_dim::<4>(1) * 0.1;
                let first = match fault {
                    Fault::UpdateSeesTheFuture => first.clone() + first.mean_dim(2),
                    Fault::UpdateSeesOtherSequences => first.clone() + first.mean_dim(0),
                    Fault::UpdateCountsWithinTheChunk => {
                        let count =
                            Tensor::<1, burn::tensor::Int>::arange(0..tokens as i64, &x.device());
                        first + count.float().reshape([1, 1, tokens, 1]) * 0.1
                    }
                    _ => first,
                };
                own + first
            }
            _ => own,
        };
        TokenState { tensors: vec![own] }
    }
}

impl ScalarReference for Saboteur {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        decay::forgetting(input, &vec![vec![0.0; input.positions.len()]; input.q.len()])
    }

    fn scalar_stack(&self, layers: &[ScalarLayer]) -> Vec<Heads> {
        let tokens = layers[0].input.positions.len();
        let mut own = vec![vec![0.0; tokens]; self.heads];
        let mut all = Vec::new();
        for layer in layers {
            let weights = softmax(&decay::forgetting(&layer.input, &own));
            let columns = own.iter().map(|head| head.iter().map(|n| vec![*n]).collect()).collect();
            let mixed = mix(&weights, &columns);
            for (h, head) in own.iter_mut().enumerate() {
                for (t, number) in head.iter_mut().enumerate() {
                    *number += 0.5 * mixed[h][t][0] + 0.1 * layer.feed_forward[t][0];
                }
            }
            all.push(weights);
        }
        all
    }
}

#[test]
fn the_honest_one_passes() {
    let failures = conforms(&combination::<Saboteur, _>(Fault::None));
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn every_saboteur_is_rejected_by_the_check_over_a_stack_that_it_was_made_for() {
    for (fault, check) in FAULTS {
        let failures = conforms(&combination::<Saboteur, _>(*fault));
        let rejected = failures.iter().any(|f| f.check == *check && f.found.contains("stack"));
        assert!(rejected, "{fault:?}: {failures:?}");
    }
}

//! Broken token state and gates: each token subtracts an amount from the logits of all pairs that
//! span it, and gates of query and key count positions.

use burn::module::Module;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use super::super::{BROKEN, Choice};
use crate::card::Card;
use crate::encoding::{ScoreContext, StateContext};
use crate::reference::cope::{self, GateSide};
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::score::{Contextual, ContextualFunction, GateSource, LogitScaling};
use crate::testkit::Check;
use crate::{Dims, PeError, PositionEncoding, ScoreMod, TokenState};

#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) enum Fault {
    #[default]
    None,
    /// The amount of each token depends on all tokens of the pass.
    AcausalUpdate,
    /// The running sum restarts with each pass, which is right in training but wrong with a cache.
    SumStartsAnewInDecode,
    /// Channels are split into heads before tokens and channels are transposed.
    HeadsMixedUp,
    /// Gates depend on the key alone.
    GateForgetsTheQuery,
    /// The sum includes the column's own amount.
    SumIncludesTheColumn,
}

pub(super) const FAULTS: &[(Fault, Check)] = &[
    (Fault::AcausalUpdate, Check::Causal),
    (Fault::SumStartsAnewInDecode, Check::DecodesAsFullPass),
    (Fault::HeadsMixedUp, Check::EqualsReference),
    (Fault::GateForgetsTheQuery, Check::EqualsReference),
    (Fault::SumIncludesTheColumn, Check::EqualsReference),
];

const SLOPE: f64 = -0.3;
const LARGEST: f64 = 4.0;

#[derive(Module, Debug)]
pub(super) struct Counting {
    #[module(skip)]
    fault: Fault,
    #[module(skip)]
    heads: usize,
}

impl PositionEncoding for Counting {
    type Settings = Choice<Fault>;

    const CARD: Card = BROKEN;

    fn build(
        settings: &Choice<Fault>,
        dims: &Dims,
        _: &mut ChaCha8Rng,
        _: &Device,
    ) -> Result<Self, PeError> {
        Ok(Counting { fault: settings.fault, heads: dims.heads })
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    /// Returns minus the mean square of the head's channels, `[B, H, T, 1]`.
    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let [batch, tokens, width] = ctx.x.dims();
        let head_dim = width / self.heads;
        let channels = match self.fault {
            Fault::HeadsMixedUp => ctx.x.clone().reshape([batch, self.heads, tokens, head_dim]),
            _ => ctx.x.clone().reshape([batch, tokens, self.heads, head_dim]).swap_dims(1, 2),
        };
        let amounts = channels.powi_scalar(2).mean_dim(3).neg();
        let amounts = match self.fault {
            Fault::AcausalUpdate => amounts.clone() + amounts.mean_dim(2),
            Fault::SumStartsAnewInDecode => amounts.cumsum(2),
            _ => amounts,
        };
        TokenState { tensors: vec![amounts] }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let amounts = ctx.layer.cols.tensors[0].clone().squeeze_dim::<3>(3);
        let decay = match self.fault {
            Fault::SumStartsAnewInDecode => ScoreMod::Decay { cumulative: amounts },
            Fault::SumIncludesTheColumn => ScoreMod::Sum(vec![
                ScoreMod::Decay { cumulative: amounts.clone().cumsum(2) },
                ScoreMod::Dense(amounts.unsqueeze_dim(2)),
            ]),
            _ => ScoreMod::Decay { cumulative: amounts.cumsum(2) },
        };
        let gated = if self.fault == Fault::GateForgetsTheQuery {
            let visible = ctx.layer.at.visible(&ctx.q.device()).unsqueeze::<4>();
            let gates = sigmoid(ctx.k.clone().sum_dim(3)).swap_dims(2, 3) * visible;
            let positions = gates.flip([3]).cumsum(3).flip([3]).clamp_max(LARGEST);
            ScoreMod::Dense(positions * SLOPE)
        } else {
            let slopes = Tensor::full([self.heads], SLOPE, &ctx.q.device());
            ScoreMod::Contextual(Contextual {
                gates: GateSource::QueryKey,
                max_position: LARGEST,
                function: ContextualFunction::Slope(slopes),
                convention: LogitScaling::Listing,
            })
        };
        ScoreMod::Sum(vec![decay, gated])
    }
}

impl ScalarReference for Counting {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let head_dim = input.head_dim();
        let scale = 1.0 / (head_dim as f64).sqrt();
        let positions = cope::positions(input, LARGEST, LogitScaling::Listing, GateSide::Keys);
        input.map(|h, row, i, j| {
            let amount = |t: usize| {
                let own = &input.x[t][h * head_dim..(h + 1) * head_dim];
                own.iter().map(|x| x * x).sum::<f64>() / head_dim as f64
            };
            let between = (j + 1..=i).map(amount).sum::<f64>();
            input.content(h, row, j) * scale - between + SLOPE * positions[h][row][j]
        })
    }
}

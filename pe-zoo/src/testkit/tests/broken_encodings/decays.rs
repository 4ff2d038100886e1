//! Broken decays: products of queries and keys shrink by a learned factor per token between them.

use burn::module::{Module, Param};
use burn::tensor::activation::softplus;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use super::super::{BROKEN, Choice};
use crate::card::Card;
use crate::encoding::{LayerContext, ScoreContext, StateContext};
use crate::reference::{Heads, ScalarInput, ScalarReference, dot, table_f64, values_f64};
use crate::score::{Number, Pair, PairTerm, Term};
use crate::testkit::Check;
use crate::{Dims, PeError, PositionEncoding, ScoreMod, TokenState, init, ops};

#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) enum Fault {
    #[default]
    None,
    /// Queries are multiplied by `e^p`, keys by `e^-p`, with `p` the sum of all decays up to the token. The products are
    /// right, but a factor overflows once gates forget more than a little.
    FactorsOfQueriesAndKeys,
}

pub(super) const FAULTS: &[(Fault, Check)] =
    &[(Fault::FactorsOfQueriesAndKeys, Check::FiniteAfterTraining)];

/// Bias of the gates, which start almost open.
const OPEN: f64 = 8.0;

#[derive(Module, Debug)]
pub(super) struct Decays {
    /// Weights of the gates, `[C, H]`.
    weight: Param<Tensor<2>>,
    /// Differences of their biases from [`OPEN`], `[H]`.
    bias: Param<Tensor<1>>,
    #[module(skip)]
    fault: Fault,
}

impl PositionEncoding for Decays {
    type Settings = Choice<Fault>;

    const CARD: Card = Card { parameters: "C H + H", ..BROKEN };

    fn build(
        settings: &Choice<Fault>,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        Ok(Decays {
            weight: init::normal(0.02, [dims.width, dims.heads], rng, device),
            bias: init::constant(0.0, [dims.heads], device),
            fault: settings.fault,
        })
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    /// Returns the logarithm of each token's gate, `[B, H, T, 1]`.
    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let bias = self.bias.val() + OPEN;
        let gates = ops::linear(ctx.x.clone(), self.weight.val(), Some(bias));
        let logs = softplus(gates.neg(), 1.0).neg();
        TokenState { tensors: vec![logs.swap_dims(1, 2).unsqueeze_dim::<4>(3)] }
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        if self.fault == Fault::None {
            return (q, k);
        }
        let sums = ctx.cols.tensors[0].clone().cumsum(TokenState::TOKEN_AXIS);
        let [_batch, _heads, columns, _one] = sums.dims();
        let rows = sums.clone().slice_dim(2, ctx.at.first_row()..columns);
        (q * rows.exp(), k * sums.neg().exp())
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        if self.fault != Fault::None {
            return ScoreMod::None;
        }
        let sums = ctx.layer.cols.tensors[0].clone().cumsum(TokenState::TOKEN_AXIS);
        ScoreMod::Term(Term::new(Decay).token_state(sums))
    }
}

#[derive(Debug, Clone)]
struct Decay;

impl PairTerm<0, 1> for Decay {
    fn value<N: Number>(&self, pair: Pair<N, 0, 1>) -> N {
        // A later column, which the row does not see, would grow.
        let sum = (pair.row[0] - pair.column[0]).min(N::constant(0.0));
        pair.content * sum.exp()
    }
}

impl Decays {
    /// Sum of the logarithms of the gates up to each token.
    fn sums(&self, input: &ScalarInput, h: usize) -> Vec<f64> {
        let weight = table_f64(&self.weight);
        let bias = values_f64(&self.bias)[h] + OPEN;
        let column = weight.iter().map(|row| row[h]).collect::<Vec<_>>();
        let logs = input.x.iter().map(|x| -(-(dot(x, &column) + bias)).exp().ln_1p());
        logs.scan(0.0, |sum, log| {
            *sum += log;
            Some(*sum)
        })
        .collect()
    }
}

impl ScalarReference for Decays {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        if self.fault == Fault::None {
            return input.clone();
        }
        let sums = (0..input.q.len()).map(|h| self.sums(input, h)).collect::<Vec<_>>();
        let by = |u: &[f64], factor: f64| u.iter().map(|x| x * factor).collect();
        input.changed(|h, u, i| by(u, sums[h][i].exp()), |h, u, j| by(u, (-sums[h][j]).exp()))
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let scale = 1.0 / (input.head_dim() as f64).sqrt();
        let sums = (0..input.q.len()).map(|h| self.sums(input, h)).collect::<Vec<_>>();
        input.map(|h, row, i, j| input.content(h, row, j) * scale * (sums[h][i] - sums[h][j]).exp())
    }
}

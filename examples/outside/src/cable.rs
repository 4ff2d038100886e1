//! CABLE (Veisi et al. 2025, arXiv:2503.08067): slopes computed from each token and summed along the sequence.
//!
//! `logit[h, i, j] = q_i . k_j / sqrt(D) + b[h, i] - b[h, j]`, with `b` the running sum of
//! `-softplus(w_h . x)` over the tokens.

use burn::module::{Module, Param};
use burn::tensor::activation::softplus;
use burn::tensor::{Device, Tensor};
use pe_zoo::card::Card;
use pe_zoo::encoding::{ScoreContext, StateContext};
use pe_zoo::parts::running_sum;
use pe_zoo::reference::{Heads, ScalarInput, ScalarReference, dot, table_f64};
use pe_zoo::score::{Number, Pair, PairTerm, Term};
use pe_zoo::settings::NoSettings;
use pe_zoo::{Cost, Dims, PeError, PositionEncoding, ScoreMod, TokenState, init, ops};
use rand_chacha::ChaCha8Rng;

/// Linear maps from a layer's input to the slopes of a token.
#[derive(Module, Debug)]
pub(crate) struct Cable {
    /// Weights of each layer, `[C, H]`.
    weights: Vec<Param<Tensor<2>>>,
}

impl PositionEncoding for Cable {
    type Settings = NoSettings;

    const CARD: Card = Card {
        id: "cable",
        label: "CABLE",
        summary: "Subtracts from the logits the slopes of all tokens between key and query.",
        parameters: "L C H",
        paper: "Veisi et al. 2025",
        url: "https://arxiv.org/abs/2503.08067",
    };

    fn build(
        _: &NoSettings,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let (width, heads) = (dims.width, dims.heads);
        let bound = (width as f64).powf(-0.5);
        let mut layer = || init::uniform(bound, [width, heads], rng, device);
        Ok(Self { weights: (0..dims.layers).map(|_| layer()).collect() })
    }

    fn param_count(_: &NoSettings, dims: &Dims) -> Option<usize> {
        Some(dims.layers * dims.width * dims.heads)
    }

    fn cost(_: &NoSettings, dims: &Dims, len: usize) -> Option<Cost> {
        let tokens = dims.layers * len;
        let cost = Cost::none().product("slopes", tokens * dims.width * dims.heads);
        let pairs = tokens * len * dims.heads;
        Some(cost.pair_elementwise("difference of sums, sum of logits", 2 * pairs))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    /// Returns the slope of each token, `[B, H, T, 1]`; `score` sums them over all columns.
    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let slopes = ops::linear(ctx.x.clone(), self.weights[ctx.layer].val(), None);
        let slopes = softplus(slopes, 1.0).neg().swap_dims(1, 2);
        TokenState { tensors: vec![slopes.unsqueeze_dim::<4>(3)] }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let slopes = ctx.layer.cols.tensors[0].clone().squeeze_dim::<3>(3);
        // Differences of plain f32 sums would lose small slopes in long sequences.
        let sums = running_sum(slopes);
        let lost = sums.lost.unwrap_or_else(|| sums.rounded.zeros_like());
        let state = Tensor::stack::<4>(vec![sums.rounded, lost], 3);
        ScoreMod::Term(Term::new(Difference).token_state(state))
    }
}

#[derive(Debug, Clone)]
struct Difference;

impl PairTerm<0, 2> for Difference {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 0, 2>) -> N {
        pair.content + (pair.row[0] - pair.column[0]) + (pair.row[1] - pair.column[1])
    }
}

impl ScalarReference for Cable {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let weights = table_f64(&self.weights[input.layer]);
        let root = (input.head_dim() as f64).sqrt();
        let slope = |h: usize, t: usize| {
            let column = weights.iter().map(|row| row[h]).collect::<Vec<_>>();
            -dot(&input.x[t], &column).exp().ln_1p()
        };
        input.map(|h, row, i, j| {
            let between = (j + 1..=i).map(|t| slope(h, t)).sum::<f64>();
            input.content(h, row, j) / root + between
        })
    }
}

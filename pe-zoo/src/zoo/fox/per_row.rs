//! Forget gates of pairs of tokens, from projections of the row and of each key before it.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use crate::encoding::{ScoreContext, StateContext};
use crate::ops::linear;
use crate::parts::by_head;
use crate::reference::{Heads, ScalarInput, decay, table_f64};
use crate::score::StepPrices;
use crate::{Dims, ScoreMod, init};

/// Projections of rows and keys, from whose products the gates are computed.
#[derive(Module, Debug)]
pub struct PerRow {
    /// Projections of rows, `[C, H dim]` per layer.
    pub rows: Vec<Param<Tensor<2>>>,
    /// Projections of keys, `[C, H dim]` per layer.
    pub keys: Vec<Param<Tensor<2>>>,
    #[module(skip)]
    heads: usize,
}

impl PerRow {
    /// Draws the projections as PyTorch's linear layers do, uniformly in `+-1 / sqrt(C)`.
    pub(super) fn init(dims: &Dims, dim: usize, rng: &mut ChaCha8Rng, device: &Device) -> Self {
        let (bound, shape) = ((dims.width as f64).powf(-0.5), [dims.width, dims.heads * dim]);
        let mut draw = || {
            (0..dims.layers).map(|_| init::uniform(bound, shape, rng, device)).collect::<Vec<_>>()
        };
        Self { rows: draw(), keys: draw(), heads: dims.heads }
    }

    /// Computes both projections of each token, `[B, H, T, dim]` each.
    pub(super) fn state(&self, ctx: &StateContext<'_>) -> Vec<Tensor<4>> {
        let project = |sets: &[Param<Tensor<2>>]| {
            by_head(linear(ctx.x.clone(), sets[ctx.layer].val(), None), self.heads)
        };
        vec![project(&self.rows), project(&self.keys)]
    }

    /// Returns the modifier that adds the logarithms of the gates between two tokens.
    pub(super) fn score(ctx: &ScoreContext<'_>) -> ScoreMod {
        let rows = ctx.layer.rows.tensors[0].clone();
        let keys = ctx.layer.cols.tensors[1].clone();
        let [_batch, heads, columns, dim] = keys.dims();
        // A step's price is that of the token before it: the key counts, the row does not. The first step has none
        // before it and is never added.
        let first = keys.clone().slice_dim(2, 0..1);
        let before = if columns == 1 {
            first
        } else {
            Tensor::cat(vec![first, keys.slice_dim(2, 0..columns - 1)], 2)
        };
        // Step prices are divided by `dim`, gates by its root.
        ScoreMod::StepPrices(StepPrices {
            queries: rows * (dim as f64).sqrt(),
            keys: before,
            slopes: Tensor::ones([heads], &ctx.q.device()),
        })
    }

    /// Computes the sum of the logarithms of the gates of every pair in scalar f64.
    pub(super) fn scalar_bias(&self, input: &ScalarInput) -> Heads {
        let table = |sets: &[Param<Tensor<2>>]| table_f64(&sets[input.layer]);
        decay::per_row_bias(input, &table(&self.rows), &table(&self.keys), self.heads)
    }
}

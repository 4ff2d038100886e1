//! # Window: attention to the nearest positions only
//!
//! ## What it does
//! Hides all tokens from a row except those at the nearest positions. Alone, `window` gives a model without a position
//! encoding whose layers see a window; together with other encodings it limits the tokens that rows see.
//!
//! ## Formula
//! `logit[i, j] = -1e9 + ...` where `i - j >= size`; the weight of such a column is 0.
//!
//! ## Shapes
//! `score: Distance([H, size + 1])`, for passes longer than the window.
//!
//! ## Settings
//! `size` (default 512): number of positions that a row sees, its own included. In `window{size=512}+rope/nope` every other
//! layer has RoPE within a window, and the layers between see all tokens without a position encoding.
//!
//! ## Deviations
//! The window is counted in positions, so a window over positions with gaps contains fewer tokens. A long pass computes blocks of
//! rows over the columns that they see, and the cache drops keys outside of the window. Combined with an encoding that chooses
//! positions, all columns are computed and kept.
//!
//! ## References
//! Beltagy et al. 2020, "Longformer: The Long-Document Transformer", arXiv 2004.05150; windows that count the row's own token as
//! in `transformers` and flash-linear-attention.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::score::Beyond;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod};

crate::settings! {
    /// Settings of the window.
    pub struct WindowConfig {
        /// Number of positions that a row sees, its own included.
        pub size: usize = 512,
    }
}

/// Window of positions that a row sees.
#[derive(Module, Debug)]
pub struct AttentionWindow {
    #[module(skip)]
    size: usize,
}

/// Logit of keys outside of the window; its exponential is 0 beside any other logit.
const HIDDEN: f64 = -1e9;

impl PositionEncoding for AttentionWindow {
    type Settings = WindowConfig;

    const CARD: Card = Card {
        id: "window",
        label: "Window",
        summary: "Lets each query attend only to the tokens at the nearest positions.",
        parameters: "0",
        paper: "Beltagy et al. 2020",
        url: "https://arxiv.org/abs/2004.05150",
    };

    fn check(settings: &WindowConfig, _: &Dims) -> Result<(), PeError> {
        let size = settings.size;
        PeError::require(
            size > 0,
            Self::CARD.id,
            "size",
            size,
            "at least 1, because each token attends to itself",
        )
    }

    fn build(
        settings: &WindowConfig,
        _: &Dims,
        _: &mut ChaCha8Rng,
        _: &Device,
    ) -> Result<Self, PeError> {
        Ok(Self { size: settings.size })
    }

    fn cost(_: &WindowConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let pairs = dims.layers * dims.heads * len * len;
        Some(Cost::none().pair_elementwise("sum of logits", pairs))
    }

    fn horizon(settings: &WindowConfig, _: usize, _: usize) -> Option<usize> {
        Some(settings.size)
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        // Shorter passes have no key outside of the window.
        if self.size > ctx.layer.at.longest_distance() {
            return ScoreMod::None;
        }
        let device = ctx.q.device();
        let [_batch, heads, _rows, _width] = ctx.q.dims();
        let seen = Tensor::zeros([heads, self.size], &device);
        let hidden = Tensor::full([heads, 1], HIDDEN, &device);
        ScoreMod::Distance { table: Tensor::cat(vec![seen, hidden], 1), beyond: Beyond::Last }
    }
}

impl ScalarReference for AttentionWindow {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        windowed(input, &input.plain(), self.size)
    }
}

/// Logits with those outside of the window hidden.
pub(crate) fn windowed(input: &ScalarInput, logits: &Heads, size: usize) -> Heads {
    input.map(|h, row, i, j| {
        logits[h][row][j] + if input.distance(i, j) >= size { HIDDEN } else { 0.0 }
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Combination;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples { facts: "acts on logits; shift invariant", texts: &["window", "window{size=5}"] },
        // A row sees itself alone.
        Examples {
            facts: "acts on logits; ignores positions, shift invariant",
            texts: &["window{size=1}"],
        },
    ];

    #[test]
    fn an_empty_window_is_refused_by_name() {
        let dims = Dims { layers: 1, width: 2, heads: 1, head_dim: 2, train_len: 4, max_len: 4 };
        let refused = Combination::parse("window{size=0}").unwrap().check(&dims).unwrap_err();
        assert!(refused.to_string().contains("size is 0"), "{refused}");
    }
}

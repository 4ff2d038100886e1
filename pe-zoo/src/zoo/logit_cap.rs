//! # Logit cap: products of queries and keys within a bound
//!
//! ## What it does
//! Squeezes the product of each query and key smoothly into a range, so that no single token takes all of the weight because of
//! the size of vectors.
//!
//! ## Formula
//! `logit[i, j] = cap tanh(q_i . k_j / (sqrt(D) cap))`
//!
//! ## Shapes
//! `score: Term`, without parameters.
//!
//! ## Settings
//! `cap` (default 50, as in Gemma 2): bound of the products.
//!
//! ## Deviations
//! Biases of other encodings, such as `alibi`, are added to the capped products and are not capped.
//!
//! ## References
//! Gemma Team 2024, "Gemma 2: Improving Open Language Models at a Practical Size", arXiv 2408.00118;
//! `attn_logit_softcapping` in `transformers`.

use burn::module::Module;
use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::score::{Number, Pair, PairTerm, Term};
use crate::settings::check_above_zero;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod};

crate::settings! {
    /// Settings of the cap.
    pub struct LogitCapConfig {
        /// Bound of the products of queries and keys.
        pub cap: f64 = 50.0,
    }
}

/// Bound of the products of queries and keys.
#[derive(Module, Debug)]
pub struct LogitCap {
    #[module(skip)]
    cap: f64,
}

/// The content logit within a bound.
#[derive(Debug, Clone)]
struct Capped {
    cap: f64,
}

/// Largest argument of [`tanh`] that a fraction of polynomials computes.
const SMALL: f64 = 0.5;

/// Hyperbolic tangent with a small relative error for small arguments, as those of a large cap are: `2 sigmoid(2 x) - 1` cancels there.
///
/// `x` is a part within [`SMALL`], whose tangent is a continued fraction (Lambert's) of six terms, and the rest, and
/// `tanh(a + b) = (tanh a + tanh b) / (1 + tanh a tanh b)`.
#[inline(always)]
fn tanh<N: Number>(x: N) -> N {
    let [one, two] = [1.0, 2.0].map(N::constant);
    let small = x.max(N::constant(-SMALL)).min(N::constant(SMALL));
    let square = small * small;
    let above = N::constant(10395.0) + square * (N::constant(1260.0) + square * N::constant(21.0));
    let below = N::constant(10395.0)
        + square * (N::constant(4725.0) + square * (N::constant(210.0) + square));
    let of_small = small * above / below;
    let of_rest = ((x - small) * two).sigmoid() * two - one;
    (of_small + of_rest) / (one + of_small * of_rest)
}

impl PairTerm<0> for Capped {
    /// `cap tanh(x / cap)`.
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 0>) -> N {
        tanh(pair.content * N::constant(1.0 / self.cap)) * N::constant(self.cap)
    }
}

impl PositionEncoding for LogitCap {
    type Settings = LogitCapConfig;

    const CARD: Card = Card {
        id: "logit-cap",
        label: "Logit cap",
        summary: "Squeezes the products of queries and keys into a range.",
        parameters: "0",
        paper: "Gemma Team 2024",
        url: "https://arxiv.org/abs/2408.00118",
    };

    fn check(settings: &LogitCapConfig, _: &Dims) -> Result<(), PeError> {
        check_above_zero(Self::CARD.id, "cap", settings.cap)
    }

    fn build(
        settings: &LogitCapConfig,
        _: &Dims,
        _: &mut ChaCha8Rng,
        _: &Device,
    ) -> Result<Self, PeError> {
        Ok(Self { cap: settings.cap })
    }

    fn cost(_: &LogitCapConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let pairs = dims.layers * dims.heads * len * len;
        // A clamp, two polynomials, a sigmoid, three quotients, and the products and sums between them.
        Some(Cost::none().pair_elementwise("cap of the logits", 28 * pairs))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, _: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::Term(Term::new(Capped { cap: self.cap }))
    }
}

impl ScalarReference for LogitCap {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let root = (input.head_dim() as f64).sqrt();
        input.map(|h, row, _, j| self.cap * (input.content(h, row, j) / (root * self.cap)).tanh())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits; content dependent, has terms, ignores positions, scales content, shift invariant; dense on GPUs in f32",
        texts: &["logit-cap", "logit-cap{cap=0.5}"],
    }];
}

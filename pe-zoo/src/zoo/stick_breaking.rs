//! # Stick-breaking: each token takes a share of what the nearer ones have left
//!
//! ## What it does
//! Replaces the softmax: each row starts with a stick of length 1. From the nearest token to the
//! farthest, each token breaks off the share given by the sigmoid of its logit, so that near tokens
//! come first without any explicit position.
//!
//! ## Formula
//! `z[i, j] = q_i . k_j / sqrt(D)`,
//! `w[i, j] = sigma(z[i, j]) * product over j < m < i of (1 - sigma(z[i, m]))` for `j < i`;
//! remainder `r[i] = product over m < i of (1 - sigma(z[i, m]))`
//!
//! ## Shapes
//! `score: StickBreaking`.
//!
//! ## Settings
//! `current`: `excluded` (default; strictly earlier tokens, so that the first row attends to
//! nothing) or `included` (the row's own token takes its share first; all products above include `m
//! = i`).
//! `remainder`: `dropped` (default; weights sum to `1 - r[i]`) or `own-token` (the row's own value
//! gets the weight `r[i]`, and weights sum to 1).
//!
//! Other encodings change the logits `z` before they become shares: the bias of `alibi` lowers the shares of far tokens, and
//! tokens outside of `window` take nothing. `sinks` belong to the softmax and are refused.
//!
//! ## Deviations
//! None. The authors' kernel returns the remainder as a second output and leaves its use to the caller; `own-token`
//! adds the remainder times the row's value.
//!
//! ## References
//! Tan et al. 2024, "Stick-breaking Attention", arXiv 2410.17980; authors' kernel
//! `shawntan/stickbreaking-attention` at 3147a3841b (`attend_current` is `current = "included"`).

use burn::module::Module;
use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarReference, decay};
use crate::score::{Current, Remainder, StickBreakingRule};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod};

/// Settings of stick-breaking attention.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StickBreakingConfig {
    /// Whether a row's own token takes part.
    pub current: Current,
    /// Use of the remainder of the stick.
    pub remainder: Remainder,
}

/// Attention weights by stick-breaking in place of the softmax.
#[derive(Module, Debug)]
pub struct StickBreaking {
    #[module(skip)]
    rule: StickBreakingRule,
}

impl PositionEncoding for StickBreaking {
    type Settings = StickBreakingConfig;

    const CARD: Card = Card {
        id: "stick-breaking",
        label: "Stick-breaking",
        summary: "Replaces the softmax: tokens take shares of the attention, the nearest first.",
        parameters: "0",
        paper: "Tan et al. 2024",
        url: "https://arxiv.org/abs/2410.17980",
    };

    fn build(
        settings: &StickBreakingConfig,
        _: &Dims,
        _: &mut ChaCha8Rng,
        _: &Device,
    ) -> Result<Self, PeError> {
        let StickBreakingConfig { current, remainder } = *settings;
        Ok(StickBreaking { rule: StickBreakingRule { current, remainder } })
    }

    fn cost(_settings: &StickBreakingConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let pairs = dims.layers * len * len * dims.heads;
        Some(Cost::none().pair_elementwise("logarithms, running sum, exponential", 8 * pairs))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, _ctx: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::StickBreaking(self.rule)
    }
}

impl ScalarReference for StickBreaking {
    fn scalar_weights_of(&self, _layer: usize, logits: &Heads) -> Heads {
        decay::stick_breaking(logits, self.rule.current, self.rule.remainder)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on weights; content dependent, ignores positions, replaces softmax, shift invariant",
        texts: &[
            "stick-breaking",
            "stick-breaking{current=included}",
            "stick-breaking{remainder=own-token}",
            "stick-breaking{current=included,remainder=own-token}",
        ],
    }];
}

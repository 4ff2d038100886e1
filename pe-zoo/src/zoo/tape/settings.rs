//! Settings of TAPE and their checks.

use serde::{Deserialize, Serialize};

use super::{Mixing, Tape};
use crate::PositionEncoding;
use crate::math::frequencies::check_base;
use crate::rotary::{Scaling, check_pairs};
use crate::settings::check_size;
use crate::{Dims, PeError};

/// Update of the state by the attention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttentionUpdate {
    /// Adds the attended state, scaled by the row sums of `W_A`, as the authors' code computes it.
    #[default]
    Code,
    /// Adds the attended state, multiplied by `W_A`.
    FullMix,
    /// No update (the authors' `adamlp.py`).
    None,
}

/// Update of the state by the feed-forward block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeedForwardUpdate {
    /// Adds the state, gated by the output of the feed-forward block and mixed.
    On {
        /// Inner width `I`; `None`: four times the number of heads.
        #[serde(default)]
        position_size: Option<usize>,
    },
    /// No update (the authors' `adattention.py`).
    Off {},
}

/// First position of a sequence in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TrainingShift {
    /// Drawn for each pass from `0..=max`; passes longer than in training start at 0.
    Random {
        /// Largest first position in tokens; `None`: twice the training length.
        #[serde(default)]
        max: Option<usize>,
    },
    /// Every sequence starts at 0.
    None {},
}

impl TrainingShift {
    /// Largest first position in tokens.
    pub(super) fn longest(self, train_len: usize) -> usize {
        match self {
            Self::Random { max } => max.unwrap_or(2 * train_len),
            Self::None {} => 0,
        }
    }
}

crate::settings! {
    /// Settings of the TAPE encoding.
    pub struct TapeConfig {
        /// Base of the frequencies: the slowest pair completes a turn in about `2 pi base` positions.
        pub base: f64 = 10_000.0,
        /// Update of the state by the attention.
        pub attention_update: AttentionUpdate = AttentionUpdate::Code,
        /// Update of the state by the feed-forward block.
        pub feed_forward_update: FeedForwardUpdate = FeedForwardUpdate::On { position_size: None },
        /// Components that the updates mix.
        pub form: Mixing = Mixing::Tensor,
        /// Scaling of the initial angles for sequences longer than in training.
        pub scaling: Scaling = Scaling::None,
        /// First position of a sequence in training.
        pub training_shift: TrainingShift = TrainingShift::Random { max: None },
    }
}

impl TapeConfig {
    /// Inner width of the feed-forward update; `None` without one.
    pub(super) fn position_size(&self, dims: &Dims) -> Option<usize> {
        match self.feed_forward_update {
            FeedForwardUpdate::On { position_size } => {
                Some(position_size.unwrap_or(4 * dims.heads))
            }
            FeedForwardUpdate::Off {} => None,
        }
    }

    pub(super) fn refuse_what_cannot_work(&self, dims: &Dims) -> Result<(), PeError> {
        let pe = Tape::CARD.id;
        check_pairs(pe, dims.head_dim)?;
        check_base(pe, "base", self.base)?;
        let size = self.position_size(dims);
        check_size(pe, "feed_forward_update.position_size", size.unwrap_or(1))?;
        let updated = size.is_some() || self.attention_update != AttentionUpdate::None;
        let expected = "at least one update; without any, this is `rope`";
        PeError::require(updated, pe, "attention_update", "none", expected)?;
        let (constant, kind) = (!self.scaling.depends_on_length(), self.scaling.id());
        let expected =
            "a scaling that is the same at every length, because tokens keep their state";
        PeError::require(constant, pe, "scaling.rope_type", kind, expected)?;
        self.scaling.check(pe, dims.head_dim, dims.train_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PositionEncoding;

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        let dims = Dims { layers: 1, width: 8, heads: 1, head_dim: 8, train_len: 8, max_len: 8 };
        let plain = TapeConfig::default();
        for (config, dims, said) in [
            (plain.clone(), Dims { width: 15, head_dim: 15, ..dims }, "model.head_dim is 15"),
            (TapeConfig { base: 1.0, ..plain.clone() }, dims, "base is 1"),
            (
                TapeConfig { scaling: Scaling::Linear { factor: 0.5 }, ..plain.clone() },
                dims,
                "scaling.factor is 0.5",
            ),
            (
                TapeConfig {
                    scaling: Scaling::Dynamic {
                        factor: 2.0,
                        original_max_position_embeddings: None,
                    },
                    ..plain.clone()
                },
                dims,
                "scaling.rope_type is dynamic",
            ),
            (
                TapeConfig {
                    feed_forward_update: FeedForwardUpdate::On { position_size: Some(0) },
                    ..plain.clone()
                },
                dims,
                "feed_forward_update.position_size is 0",
            ),
            (
                TapeConfig {
                    attention_update: AttentionUpdate::None,
                    feed_forward_update: FeedForwardUpdate::Off {},
                    ..plain
                },
                dims,
                "this is `rope`",
            ),
        ] {
            let error = Tape::check(&config, &dims).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}

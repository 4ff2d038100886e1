//! TAPE's settings and what is refused of them.

use serde::{Deserialize, Serialize};

use super::{Form, Tape};
use crate::PositionEncoding;
use crate::math::frequencies::check_base;
use crate::rotary::{Scaling, check_pairs};
use crate::{Dims, PeError};

/// What the attention does to the state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttentionUpdate {
    /// What was attended to is added, scaled by the row sums of `W_A`: what the authors' code
    /// computes.
    #[default]
    Code,
    /// What was attended to is mixed by `W_A` and added.
    FullMix,
    /// Nothing (the authors' `adamlp.py`).
    None,
}

/// What the feed-forward part does to the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeedForwardUpdate {
    /// It is gated by the feed-forward part's output, mixed and added.
    On {
        /// Inner width `I`; `None`: four times the heads.
        #[serde(default)]
        position_size: Option<usize>,
    },
    /// Nothing (the authors' `adattention.py`).
    Off {},
}

/// Where positions start in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TrainingShift {
    /// At a number drawn for each pass from 0 to `max`; passes longer than in training start at 0.
    Random {
        /// In tokens; `None`: twice the training length.
        #[serde(default)]
        max: Option<usize>,
    },
    /// At 0.
    None {},
}

impl TrainingShift {
    /// The longest shift in tokens.
    pub(super) fn longest(self, train_len: usize) -> usize {
        match self {
            Self::Random { max } => max.unwrap_or(2 * train_len),
            Self::None {} => 0,
        }
    }
}

/// Settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The slowest pair turns about once in `2 pi base` positions.
    pub base: f64,
    /// What the attention does to the state.
    pub attention_update: AttentionUpdate,
    /// What the feed-forward part does to the state.
    pub feed_forward_update: FeedForwardUpdate,
    /// What the updates mix.
    pub form: Form,
    /// How the initial angles are changed for longer sequences.
    pub scaling: Scaling,
    /// Where positions start in training.
    pub training_shift: TrainingShift,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            base: 10_000.0,
            attention_update: AttentionUpdate::Code,
            feed_forward_update: FeedForwardUpdate::On { position_size: None },
            form: Form::Tensor,
            scaling: Scaling::None,
            training_shift: TrainingShift::Random { max: None },
        }
    }
}

impl Config {
    /// Inner width of the feed-forward update, if there is one.
    pub(super) fn position_size(&self, dims: &Dims) -> Option<usize> {
        match self.feed_forward_update {
            FeedForwardUpdate::On { position_size } => {
                Some(position_size.unwrap_or(4 * dims.heads))
            }
            FeedForwardUpdate::Off {} => None,
        }
    }

    /// Whether the updates commute with the rotation by which a shift of all positions turns each
    /// channel. They do not where they mix or scale channels, which takes the two halves of a pair
    /// apart, or treat cosine and sine differently.
    pub(super) fn equivariant(&self) -> bool {
        self.form == Form::Tensor
    }

    pub(super) fn refuse_what_cannot_work(&self, dims: &Dims) -> Result<(), PeError> {
        let refuse = |field: &str, value: String, expected: &str| {
            Err(PeError::invalid(Tape::CARD.id, field, value, expected))
        };
        check_pairs(Tape::CARD.id, dims.head_dim)?;
        check_base(Tape::CARD.id, "base", self.base)?;
        let size = self.position_size(dims);
        if size == Some(0) {
            let field = "feed_forward_update.position_size";
            return refuse(field, "0".to_owned(), "at least 1");
        }
        if size.is_none() && self.attention_update == AttentionUpdate::None {
            let expected = "an update somewhere; without any, this is `rope`";
            return refuse("attention_update", "none".to_owned(), expected);
        }
        if self.scaling.depends_on_length() {
            let expected = "a scaling that is the same at every length; tokens keep their state";
            return refuse("scaling.rope_type", self.scaling.id().to_owned(), expected);
        }
        self.scaling.check(Tape::CARD.id, dims.head_dim, dims.train_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PositionEncoding;

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        let dims = Dims { layers: 1, heads: 1, head_dim: 8, train_len: 8, max_len: 8 };
        let plain = Config::default();
        for (config, dims, said) in [
            (plain.clone(), Dims { head_dim: 15, ..dims }, "model.head_dim is 15"),
            (Config { base: 1.0, ..plain.clone() }, dims, "base is 1"),
            (
                Config { scaling: Scaling::Linear { factor: 0.5 }, ..plain.clone() },
                dims,
                "scaling.factor is 0.5",
            ),
            (
                Config {
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
                Config {
                    feed_forward_update: FeedForwardUpdate::On { position_size: Some(0) },
                    ..plain.clone()
                },
                dims,
                "feed_forward_update.position_size is 0",
            ),
            (
                Config {
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

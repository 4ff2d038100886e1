//! The contract of a task, and the facts it states about itself.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::error::nearest;
use crate::{Sample, TaskError};

/// The number by which encodings are ranked on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Headline {
    /// Share of samples with every scored token right; more is better.
    ExactMatch,
    /// Exponential of the mean loss per scored token; less is better.
    Perplexity,
}

impl Headline {
    /// Its name in configurations and records.
    pub fn id(self) -> &'static str {
        match self {
            Headline::ExactMatch => "exact-match",
            Headline::Perplexity => "perplexity",
        }
    }
}

/// What is true of a task whatever its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskMeta {
    /// Kebab-case name, equal to the stem of its file.
    pub id: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// Goes up when the same settings and seed give other samples, so that old results are not mixed with new ones.
    pub version: u32,
    /// The number by which encodings are ranked.
    pub headline: Headline,
    /// What a length counts: `tokens` or `symbols`.
    pub len_unit: &'static str,
    /// One sentence for lists.
    pub summary: &'static str,
    /// Where the task comes from.
    pub source: &'static str,
    /// Whether it learns a text, so that its setting `path` may name any text; see [`crate::data`].
    pub takes_path: bool,
}

/// A distribution of evaluation samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Split {
    /// Kebab-case name.
    pub name: &'static str,
    /// Whether training samples of the same length follow the same rules.
    pub in_distribution: bool,
    /// One sentence for reports.
    pub about: &'static str,
}

/// What scored tokens can be grouped by: a name, the same for all samples of a task, and one value for each scored
/// token, in their order.
pub type TokenSlice = (&'static str, Vec<u32>);

/// Something to learn: training samples without end, and fixed evaluation sets.
pub trait Task: Send + Sync + Debug {
    /// What is true of it whatever its settings.
    fn meta(&self) -> &'static TaskMeta;

    /// Number of token ids; all tokens are below it.
    fn vocab_size(&self) -> usize;

    /// The text of a token, for people. An id outside the vocabulary gives `?`.
    fn token_text(&self, token: u32) -> String;

    /// What it can be evaluated on; the first is the one it is trained on.
    fn splits(&self) -> &'static [Split];

    /// Longest sequence, in tokens, that samples of this length have (the model's input is one shorter).
    fn max_tokens(&self, len: usize) -> usize;

    /// Like [`Task::max_tokens`], of training samples alone.
    fn max_train_tokens(&self, len: usize) -> usize {
        self.max_tokens(len)
    }

    /// Says whether there are samples of this length, counted in the task's `len_unit`.
    ///
    /// # Errors
    /// [`TaskError::InvalidLen`], or [`TaskError::TextTooShort`] for text.
    fn check_len(&self, len: usize) -> Result<(), TaskError>;

    /// Draws one training sample.
    ///
    /// # Panics
    /// May panic for a length that [`Task::check_len`] refuses.
    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample;

    /// `count` evaluation samples, the same for the same arguments, never from the training stream. A text that is
    /// evaluated as a whole gives fewer if this split has no more.
    ///
    /// # Errors
    /// An unknown split, a length that [`Task::check_len`] refuses, or more than [`Task::max_eval_samples`].
    fn eval_set(
        &self,
        split: &str,
        len: usize,
        count: usize,
        seed: u64,
    ) -> Result<Vec<Sample>, TaskError>;

    /// Largest `count` that [`Task::eval_set`] can give; `None`: no limit (generated data).
    fn max_eval_samples(&self, _len: usize) -> Option<usize> {
        None
    }

    /// Hash of the data that the settings only name (a text's content); `None`: the settings say everything.
    fn data_sha256(&self) -> Option<&str> {
        None
    }

    /// Bytes of text per scored token, for bits per byte; `None` for tasks that are not text.
    fn bytes_per_token(&self) -> Option<f64> {
        None
    }

    /// Bytes of text that the scored tokens of a sample stand for, exactly; `None` where only the mean of
    /// [`Task::bytes_per_token`] is known.
    fn scored_bytes(&self, _sample: &Sample) -> Option<u64> {
        None
    }

    /// What the user should be told about how the data were had, such as that a damaged cache was made again.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// What the scored tokens of a sample of this task can be grouped by, beside the sample's own slices.
    ///
    /// Worked out from the sample, so that training does not pay for it.
    fn token_slices(&self, _sample: &Sample) -> Vec<TokenSlice> {
        Vec::new()
    }

    /// Which tokens of a sample its answers are counted from, one entry per token: what the gates of contextual
    /// positions should open for. `None` for tasks that count nothing.
    fn counted(&self, _sample: &Sample) -> Option<Vec<bool>> {
        None
    }

    /// Exact-match rate of the best constant or random guess on the first split; `None` where it depends on the
    /// length or is not known.
    fn chance(&self) -> Option<f64>;

    /// Exact-match rate of the best answer that is given without looking at the question, on the first split at
    /// this length; `None` for a length that [`Task::check_len`] refuses, and where it means nothing (text).
    fn chance_at(&self, len: usize) -> Option<f64> {
        self.check_len(len).ok().and_then(|()| self.chance())
    }
}

/// Longest length of any task, in its unit: beyond it positions are no longer exact in single precision.
pub const MAX_LEN: usize = 1 << 24;

/// Refuses a length below `min` or above [`MAX_LEN`]; `why` says where the minimum comes from.
pub(crate) fn check_range(
    meta: &TaskMeta,
    len: usize,
    min: usize,
    why: &str,
) -> Result<(), TaskError> {
    if (min..=MAX_LEN).contains(&len) {
        return Ok(());
    }
    Err(TaskError::InvalidLen {
        task: meta.id,
        len,
        expected: format!("between {min} and {MAX_LEN} {} ({why})", meta.len_unit),
    })
}

/// Refuses a setting outside `range` (so also NaN).
pub(crate) fn check_setting<T: PartialOrd + Debug + Copy>(
    meta: &TaskMeta,
    field: &'static str,
    value: T,
    range: &RangeInclusive<T>,
) -> Result<(), TaskError> {
    if range.contains(&value) {
        return Ok(());
    }
    let expected = format!("between {:?} and {:?}", range.start(), range.end());
    Err(invalid(meta, field, &value, expected))
}

/// A refused setting.
pub(crate) fn invalid(
    meta: &TaskMeta,
    field: &'static str,
    value: &impl Debug,
    expected: String,
) -> TaskError {
    TaskError::InvalidSetting { task: meta.id, field, value: format!("{value:?}"), expected }
}

/// Finds a split by name.
pub(crate) fn find_split(task: &dyn Task, name: &str) -> Result<&'static Split, TaskError> {
    let splits = task.splits();
    splits.iter().find(|s| s.name == name).ok_or_else(|| {
        let known: Vec<_> = splits.iter().map(|s| s.name).collect();
        TaskError::UnknownSplit {
            task: task.meta().id,
            split: name.to_owned(),
            nearest: nearest(name, &known),
            known,
        }
    })
}

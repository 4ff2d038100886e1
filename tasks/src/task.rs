//! The [`Task`] trait and the facts that a task states about itself.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::error::TaskError;
use crate::nearest::nearest;
use crate::sample::Sample;
use crate::tokenizer::Tokenizer;

/// Metric by which encodings are ranked on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Headline {
    /// Share of samples in which every scored token is right; higher is better.
    ExactMatch,
    /// Exponential of the mean loss per scored token; lower is better.
    Perplexity,
}

impl Headline {
    /// Name of the metric in configurations and records.
    pub fn id(self) -> &'static str {
        match self {
            Headline::ExactMatch => "exact-match",
            Headline::Perplexity => "perplexity",
        }
    }
}

/// Facts about a task that hold for all of its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskMeta {
    /// Kebab-case name, equal to the stem of the task's file.
    pub id: &'static str,
    /// Name shown to people.
    pub label: &'static str,
    /// Version of the samples. It is raised when the same settings and seed give other samples, so that old results
    /// are not mixed with new ones.
    pub version: u32,
    /// Metric by which encodings are ranked.
    pub headline: Headline,
    /// Unit of lengths: `tokens` or `symbols`.
    pub len_unit: &'static str,
    /// One sentence for lists.
    pub summary: &'static str,
    /// Publication or code that defines the task.
    pub source: &'static str,
    /// Whether the task reads a text, so that its setting `path` may name any text; see [`crate::data`].
    pub takes_path: bool,
}

impl TaskMeta {
    /// Defaults of a generated task: first version, ranked by exact match, lengths in tokens. Names are empty.
    pub const GENERATED: Self = Self {
        id: "",
        label: "",
        version: 1,
        headline: Headline::ExactMatch,
        len_unit: "tokens",
        summary: "",
        source: "",
        takes_path: false,
    };
}

/// Distribution of evaluation samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Split {
    /// Name in kebab case.
    pub name: &'static str,
    /// Whether training samples of the same length have the same distribution.
    pub in_distribution: bool,
    /// Whether training draws every sample of trained size that this split has, with another frequency.
    pub part_of_training: bool,
    /// One sentence, shown by `pe-bench explain`.
    pub about: &'static str,
}

impl Split {
    /// Returns a split with the distribution of the training samples.
    pub const fn as_trained(name: &'static str, about: &'static str) -> Self {
        Self { name, in_distribution: true, part_of_training: true, about }
    }

    /// Returns a split with another distribution than that of the training samples.
    pub const fn shifted(name: &'static str, about: &'static str) -> Self {
        Self { name, in_distribution: false, part_of_training: false, about }
    }

    /// Returns a split of samples that are among the training samples wherever they have a trained size.
    pub const fn part(name: &'static str, about: &'static str) -> Self {
        Self { name, in_distribution: false, part_of_training: true, about }
    }
}

/// Property of scored tokens to group results by: a name, the same for all samples of a task, and one value for each
/// scored token in order.
pub type TokenSlice = (&'static str, Vec<u32>);

/// Source of training samples without end and of fixed evaluation sets.
pub trait Task: Send + Sync + Debug {
    /// Facts that hold for all settings.
    fn meta(&self) -> &'static TaskMeta;

    /// Number of token ids; every token is below it.
    fn vocab_size(&self) -> usize;

    /// Display text of a token, or `?` for an id outside the vocabulary.
    fn token_text(&self, token: u32) -> String;

    /// Distributions to evaluate on. The first is that of the training samples.
    fn splits(&self) -> &'static [Split];

    /// Upper bound of the tokens in a sample of this length; the model's input is one token shorter.
    fn max_tokens(&self, len: usize) -> usize;

    /// Upper bound of the tokens in a training sample of this length.
    fn max_train_tokens(&self, len: usize) -> usize {
        self.max_tokens(len)
    }

    /// Checks that there are samples of this length, counted in the task's `len_unit`.
    ///
    /// # Errors
    /// [`TaskError::InvalidLen`], or [`TaskError::TextTooShort`] for text.
    fn check_len(&self, len: usize) -> Result<(), TaskError>;

    /// Draws one training sample.
    ///
    /// # Panics
    /// May panic for a length that [`Task::check_len`] refuses.
    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample;

    /// Returns `count` evaluation samples: the same for the same arguments, and never from the training stream. A text
    /// that is evaluated as a whole gives fewer if the split has no more.
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

    /// Largest `count` that [`Task::eval_set`] accepts; `None` for no limit (generated data).
    fn max_eval_samples(&self, _len: usize) -> Option<usize> {
        None
    }

    /// Hash of data that the settings only name, such as a text; `None` if the settings determine everything.
    fn data_sha256(&self) -> Option<&str> {
        None
    }

    /// Mean bytes of text per scored token, for bits per byte; `None` for tasks other than text.
    fn bytes_per_token(&self) -> Option<f64> {
        None
    }

    /// Exact bytes of text that the scored tokens of a sample stand for; `None` where only the mean of
    /// [`Task::bytes_per_token`] is known.
    fn scored_bytes(&self, _sample: &Sample) -> Option<u64> {
        None
    }

    /// Tokenizer of the text; `None` for tasks other than text.
    fn tokenizer(&self) -> Option<&dyn Tokenizer> {
        None
    }

    /// Messages to the user about how the data were obtained, such as the repair of a damaged cache.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// Properties of the scored tokens of a sample to group results by, beside the sample's own slices.
    ///
    /// Computed from the sample on demand, so that training does not pay for it.
    fn token_slices(&self, _sample: &Sample) -> Vec<TokenSlice> {
        Vec::new()
    }

    /// Marks the tokens of a sample that its answers count, one entry per token: the tokens at which the gates of
    /// contextual positions should open. `None` for tasks without counting.
    fn counted(&self, _sample: &Sample) -> Option<Vec<bool>> {
        None
    }

    /// Reports whether a sample of an evaluation at `len` is no larger than the samples of training at `train_len`, in
    /// everything that `len` bounds: tokens, digits, statements.
    ///
    /// By default the lengths decide. Tasks whose `len` is an upper bound of what a sample has decide by the sample.
    fn has_trained_size(&self, _sample: &Sample, len: usize, train_len: usize) -> bool {
        len <= train_len
    }

    /// Exact-match rate of the best constant or random guess on the first split; `None` if it depends on the length or
    /// is unknown, and for text, which is not ranked by exact match.
    fn chance(&self) -> Option<f64> {
        None
    }

    /// Exact-match rate of the best answer that ignores the question, on the first split at this length; `None` for a
    /// length that [`Task::check_len`] refuses, and for text.
    fn chance_at(&self, len: usize) -> Option<f64> {
        self.check_len(len).ok().and_then(|()| self.chance())
    }
}

/// Greatest length of any task, in its unit. Greater positions are not exact in single precision.
pub const MAX_LEN: usize = 1 << 24;

/// Refuses a length below `min` or above [`MAX_LEN`]; `why` explains the minimum.
pub(crate) fn check_range(
    meta: &TaskMeta,
    len: usize,
    min: usize,
    why: &str,
) -> Result<(), TaskError> {
    if (min..=MAX_LEN).contains(&len) {
        return Ok(());
    }
    Err(invalid_len(meta, len, format!("between {min} and {MAX_LEN} {} ({why})", meta.len_unit)))
}

/// Refuses an odd length; `why` explains what makes tokens come in pairs.
pub(crate) fn check_even(meta: &TaskMeta, len: usize, why: &str) -> Result<(), TaskError> {
    if len.is_multiple_of(2) {
        return Ok(());
    }
    Err(invalid_len(meta, len, format!("even, such as {}: {why}", len + 1)))
}

/// Returns the error for a refused length.
pub(crate) fn invalid_len(meta: &TaskMeta, len: usize, expected: String) -> TaskError {
    TaskError::InvalidLen { task: meta.id, len, expected }
}

/// Refuses a setting outside `range`, NaN included.
pub(crate) fn check_setting<T: PartialOrd + Debug + Copy>(
    meta: &TaskMeta,
    field: &'static str,
    value: T,
    range: &RangeInclusive<T>,
) -> Result<(), TaskError> {
    check_between(meta, field, value, range, "")
}

/// Refuses a setting outside `range`; `why` explains the upper bound, for example that it is the value of `names`.
pub(crate) fn check_between<T: PartialOrd + Debug + Copy>(
    meta: &TaskMeta,
    field: &'static str,
    value: T,
    range: &RangeInclusive<T>,
    why: &str,
) -> Result<(), TaskError> {
    if range.contains(&value) {
        return Ok(());
    }
    let why = if why.is_empty() { String::new() } else { format!(", {why}") };
    let expected = format!("between {:?} and {:?}{why}", range.start(), range.end());
    Err(invalid(meta, field, &value, expected))
}

/// Returns the error for a refused setting.
pub(crate) fn invalid(
    meta: &TaskMeta,
    field: &'static str,
    value: &impl Debug,
    expected: String,
) -> TaskError {
    TaskError::InvalidSetting { task: meta.id, field, value: format!("{value:?}"), expected }
}

/// Finds a split and its number by name.
pub(crate) fn find_split(
    task: &dyn Task,
    name: &str,
) -> Result<(usize, &'static Split), TaskError> {
    let splits = task.splits();
    splits.iter().enumerate().find(|(_, split)| split.name == name).ok_or_else(|| {
        let known: Vec<_> = splits.iter().map(|s| s.name).collect();
        TaskError::UnknownSplit {
            task: task.meta().id,
            split: name.to_owned(),
            nearest: nearest(name, &known),
            known,
        }
    })
}

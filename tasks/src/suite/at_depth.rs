//! # At depth: any task at a depth of filler
//! ## What it asks of an encoding
//! Solving a task whose statement can be anywhere in a long text, among statements of the same task with other answers.
//! A model that solves the task alone must still find the right statement and solve it from a distance. The results
//! separate failures at the task from failures at a depth. Reports draw them as a heat map of depth and length.
//!
//! ## Predicted order
//! First the order of the task at its original length, then that of `needle`: beyond the trained lengths, NoPE and
//! encodings that separate content from position before RoPE; ALiBi only for statements near the end. Large language
//! models lose most for statements in the middle, and more if the other statements have their answers (Zhang et al.
//! 2026). We know of no measurement with small models.
//!
//! ## Definition
//! A sample of the setting `task` at length `task_len` is cut before its first scored token. The first part is the
//! statement, in a frame `#n statement ~;`. A number of frames, `distractors`, have statements of other samples, and
//! with `solved = true` also their answers. A distractor is drawn again until its whole answer differs from that of the
//! statement, at most 100 times, because some tasks have few answers. All numbers `#n` differ. The frames are at
//! uniform positions in filler. At the end `~? #n` asks for one frame, and the rest of its sample follows, with the
//! scored tokens. No other token is scored. The filler is random words (`words`) or five short sentences repeated
//! (`sentences`). `len` counts all tokens. Splits are those of the task, also for distractors. Evaluation sets cover
//! the tenths of the filler in turn.
//!
//! Settings: `task` (a table with `kind`, any task but a text and this one) `{ kind = "copy" }`, `task_len` 3,
//! `distractors` 1 (0 to 15), `solved` false, `filler` `words`. Slices: `depth`, the tenth of the filler that has the
//! statement (0 first, 9 last), and the slices of the task in its original sample. Slices of tokens, counted tokens and
//! chance are those of the task at `task_len`.
//!
//! ## Sample
//! ```text
//! ~wet ~wet ~loud ~we ~we ~on ~rope ~we #8 $ s s | ~; ~row ~is ~rope ~row ~row
//! ~rings ~rope #11 $ b f | ~; ~rope ~a ~? #8 s s .
//!                                            ^ ^ ^
//! ```
//!
//! ## Source
//! Zhang, Cui, Huang, Sang: Positional Failures in Long-Context LLMs, 2026, arXiv 2605.23170 (questions of GSM8K and
//! ARC-Challenge at a depth of filler, among other questions with or without answers). Distractors have the same form
//! as in Hsieh et al.: RULER, 2024, arXiv 2404.06654. Both papers use English for pretrained language models.

use std::sync::LazyLock;

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use crate::files::sha256_hex;
use crate::haystack::{FILLER_TOKENS, Filler, WORDS, hide_at, tenth};
use crate::random::{below, distinct, eval_rng};
use crate::settings::{TaskSettings, is_default, settings};
use crate::suite::copy::CopyConfig;
use crate::task::{MAX_LEN, check_range, check_setting, find_split, invalid};
use crate::vocabulary::{TokenGroup, token_text, vocab_size};
use crate::{Sample, Split, Task, TaskConfig, TaskError, TaskMeta, TokenSlice};

const META: TaskMeta = TaskMeta {
    id: "at-depth",
    label: "Task at a depth",
    summary: "Solve a task whose statement is hidden in filler, among other statements of the same task.",
    source: "after Zhang, Cui, Huang, Sang 2026, arXiv 2605.23170",
    ..TaskMeta::GENERATED
};

/// Slice of the place of the statement; a slice of the task with this name is left out.
const DEPTH: &str = "depth";

/// Numbers of frames.
const LABELS: u32 = 16;
const END: u32 = FILLER_TOKENS;
const ASK: u32 = FILLER_TOKENS + 1;
const LABEL: u32 = FILLER_TOKENS + 2;
/// First token of the task in the frames.
const INNER: u32 = LABEL + LABELS;

/// Tokens of a frame beside the statement, and of the question.
const FRAME: usize = 2;

/// Draws of a distractor until its answer may be the same.
const DRAWS: u32 = 100;
/// Samples of which the distractors of an evaluation set are.
const POOL: usize = 256;

/// Texts that no task in the frames has: one in whose samples the filler's words stand is told from the filler.
static WORD_TEXTS: LazyLock<Vec<String>> =
    LazyLock::new(|| WORDS.iter().map(|word| format!("~{word}")).collect());

/// Token ids of the wrapper, the first of the vocabulary.
fn wrapper() -> [TokenGroup; 3] {
    [
        TokenGroup::Texts(&WORD_TEXTS),
        TokenGroup::Signs(&["~;", "~?"]),
        TokenGroup::Numbered("#", LABELS),
    ]
}

settings! {
    /// Settings of a task at a depth. Token ids: the filler's words, `~;`, `~?`, the numbers of frames, the task's tokens.
    pub struct AtDepthConfig {
        /// Task in the frames.
        pub task: TaskConfig = CopyConfig::default().into(),
        /// Length of its samples, in its own unit.
        pub task_len: usize = 3,
        /// Number of other statements of the task, 0 to 15.
        pub distractors: u32 = 1,
        /// Whether the other statements stand with their answers.
        #[serde(skip_serializing_if = "is_default")]
        pub solved: bool = false,
        /// Text around the frames.
        pub filler: Filler = Filler::Words,
    }
}

impl TaskSettings for AtDepthConfig {
    type Task = AtDepth;

    const META: &'static TaskMeta = &META;

    const SOURCE: &'static str = include_str!("at_depth.rs");

    /// Builds the task in the frames and checks that it has samples of its length.
    ///
    /// # Errors
    /// Those of the task's own settings, and [`TaskError::InvalidSetting`].
    fn build(&self) -> Result<AtDepth, TaskError> {
        check_setting(&META, "distractors", self.distractors, &(0..=LABELS - 1))?;
        let inner = self.task.meta();
        if inner.takes_path || inner.id == META.id {
            let expected = format!("a task other than a text and `{}`", META.id);
            return Err(invalid(&META, "task", &inner.id, expected));
        }
        let task = self.task.build()?;
        let refused = |expected: String| invalid(&META, "task_len", &self.task_len, expected);
        task.check_len(self.task_len).map_err(|error| match error {
            TaskError::InvalidLen { expected, .. } => {
                refused(format!("{expected}, a length of `{}`", inner.id))
            }
            other => other,
        })?;
        let data = format!("{} v{}", inner.id, inner.version);
        let task = AtDepth { config: self.clone(), task, data_sha256: sha256_hex(data.as_bytes()) };
        if task.own_tokens() > MAX_LEN {
            let expected = format!(
                "a length at which the frames of all statements have at most {MAX_LEN} \
                 tokens in total"
            );
            return Err(refused(expected));
        }
        Ok(task)
    }
}

/// A task in frames that stand in filler.
#[derive(Debug)]
pub struct AtDepth {
    config: AtDepthConfig,
    task: Box<dyn Task>,
    /// Hash of the version of the task, which the settings only name.
    data_sha256: String,
}

/// Places of the named frame and of what follows the question.
struct AskedFrame {
    /// First token of the statement.
    statement: usize,
    /// Number of tokens of the statement.
    stated: usize,
    /// First token after the question.
    rest: usize,
}

impl AtDepth {
    /// Upper bound of the tokens of all frames, the question and what follows it.
    fn own_tokens(&self) -> usize {
        let sample = self.task.max_tokens(self.config.task_len);
        // The other statements lack at least one token, their answer.
        let other = FRAME + sample - usize::from(!self.config.solved);
        (sample + 2 * FRAME).saturating_add(other.saturating_mul(self.config.distractors as usize))
    }

    /// Writes a sample at a share of the filler, from 0 to below 1. `draw` draws a sample of the task.
    fn wrap(
        &self,
        target: &Sample,
        depth: f64,
        len: usize,
        draw: &mut dyn FnMut(&mut ChaCha8Rng) -> Sample,
        rng: &mut ChaCha8Rng,
    ) -> Sample {
        let count = self.config.distractors as usize;
        let labels = distinct(rng, count + 1, LABELS);
        let stated = target.scored.iter().position(|scored| *scored).unwrap_or(0);
        let mut frames = vec![frame(labels[0], &target.tokens[..stated])];
        for label in &labels[1..] {
            let mut other = draw(rng);
            for _ in 1..DRAWS {
                if !other.answer().eq(target.answer()) {
                    break;
                }
                other = draw(rng);
            }
            let end = other.scored.iter().position(|scored| *scored && !self.config.solved);
            frames.push(frame(*label, &other.tokens[..end.unwrap_or(other.tokens.len())]));
        }
        let rest = target.tokens.len() - stated;
        let own = frames.iter().map(Vec::len).sum::<usize>() + FRAME + rest;
        let filler = len - own;
        let places = filler as u32 + 1;
        let cut = ((depth * f64::from(places)) as u32).min(filler as u32);
        let cuts = (0..count).map(|_| below(rng, places)).collect::<Vec<_>>();
        // Frames at one place have the order of their numbers, which are random.
        let mut order: Vec<(u32, u32, Vec<u32>)> = std::iter::once(cut)
            .chain(cuts)
            .zip(labels.iter().copied())
            .zip(frames)
            .map(|((cut, label), frame)| (cut, label, frame))
            .collect();
        order.sort_unstable();
        let cuts: Vec<u32> = order.iter().map(|(cut, ..)| *cut).collect();
        let frames: Vec<Vec<u32>> = order.into_iter().map(|(.., frame)| frame).collect();
        let mut tokens = Vec::with_capacity(len);
        hide_at(&frames, &cuts, self.config.filler, filler, &mut tokens, rng);
        tokens.extend([ASK, LABEL + labels[0]]);
        let mut scored = vec![false; tokens.len()];
        tokens.extend(target.tokens[stated..].iter().map(|token| INNER + token));
        scored.extend(&target.scored[stated..]);
        let mut slices = vec![(DEPTH, tenth(cut, places))];
        slices.extend(target.slices.iter().filter(|(name, _)| *name != DEPTH));
        Sample { tokens, scored, slices }
    }
}

impl AskedFrame {
    /// Finds the parts of the task's sample in one of this task.
    fn find(tokens: &[u32]) -> Option<Self> {
        let ask = tokens.iter().position(|token| *token == ASK)?;
        let label = tokens.iter().position(|token| *token == tokens[ask + 1])?;
        let stated = tokens[label..].iter().position(|token| *token == END)? - 1;
        Some(Self { statement: label + 1, stated, rest: ask + 2 })
    }

    /// The task's sample in one of this task.
    fn sample_of(&self, sample: &Sample) -> Sample {
        let Self { statement, stated, rest } = *self;
        let statement = &sample.tokens[statement..statement + stated];
        let tokens = statement.iter().chain(&sample.tokens[rest..]);
        let mut scored = vec![false; stated];
        scored.extend(&sample.scored[rest..]);
        let tokens = tokens.map(|token| token - INNER).collect();
        Sample { tokens, scored, slices: sample.slices[1..].to_vec() }
    }
}

/// A numbered frame with a statement.
fn frame(label: u32, statement: &[u32]) -> Vec<u32> {
    let mut frame = Vec::with_capacity(statement.len() + FRAME);
    frame.push(LABEL + label);
    frame.extend(statement.iter().map(|token| INNER + token));
    frame.push(END);
    frame
}

impl Task for AtDepth {
    fn meta(&self) -> &'static TaskMeta {
        &META
    }

    fn vocab_size(&self) -> usize {
        vocab_size(&wrapper()) + self.task.vocab_size()
    }

    fn token_text(&self, token: u32) -> String {
        match token.checked_sub(INNER) {
            Some(inner) => self.task.token_text(inner),
            None => token_text(&wrapper(), token),
        }
    }

    fn splits(&self) -> &'static [Split] {
        self.task.splits()
    }

    fn max_tokens(&self, len: usize) -> usize {
        len
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(
            &META,
            len,
            self.own_tokens(),
            "the minimum fits all frames and the question without filler",
        )
    }

    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let mut draw = |rng: &mut ChaCha8Rng| self.task.train_sample(self.config.task_len, rng);
        let target = draw(rng);
        let depth = share(rng);
        self.wrap(&target, depth, len, &mut draw, rng)
    }

    fn eval_set(
        &self,
        split: &str,
        len: usize,
        count: usize,
        seed: u64,
    ) -> Result<Vec<Sample>, TaskError> {
        let (_, split) = find_split(self, split)?;
        self.check_len(len)?;
        let mut rng = eval_rng(META.id, split.name, len, seed);
        let mut set =
            |count| self.task.eval_set(split.name, self.config.task_len, count, rng.next_u64());
        let (targets, pool) = (set(count)?, set(POOL)?);
        let mut draw = |rng: &mut ChaCha8Rng| pool[below(rng, pool.len() as u32) as usize].clone();
        let wrapped = targets.iter().enumerate().map(|(index, target)| {
            let depth = ((index % 10) as f64 + share(&mut rng)) / 10.0;
            self.wrap(target, depth, len, &mut draw, &mut rng)
        });
        Ok(wrapped.collect())
    }

    fn data_sha256(&self) -> Option<&str> {
        Some(&self.data_sha256)
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        let Some(parts) = AskedFrame::find(&sample.tokens) else { return Vec::new() };
        let mut slices = self.task.token_slices(&parts.sample_of(sample));
        slices.retain(|(name, _)| *name != DEPTH);
        slices
    }

    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        let parts = AskedFrame::find(&sample.tokens)?;
        let inner = self.task.counted(&parts.sample_of(sample))?;
        let (statement, rest) = inner.split_at(parts.stated);
        let mut marks = vec![false; sample.tokens.len()];
        marks[parts.statement..parts.statement + parts.stated].copy_from_slice(statement);
        marks[parts.rest..].copy_from_slice(rest);
        Some(marks)
    }

    fn chance(&self) -> Option<f64> {
        self.task.chance_at(self.config.task_len)
    }
}

/// Draws a number from 0 to below 1.
fn share(rng: &mut ChaCha8Rng) -> f64 {
    f64::from(rng.next_u32()) / 2.0_f64.powi(32)
}

#[cfg(test)]
pub(crate) mod tests;

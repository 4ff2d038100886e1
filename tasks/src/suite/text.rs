//! # Text: predict the next character
//! ## What it asks of an encoding
//! What language asks: mostly the last few characters, at times a name or a bracket far back. It shows what an
//! encoding is worth where no single trick solves the task.
//!
//! ## Predicted order
//! Small differences: at 125 million parameters and up, CoPE, FIRE, T5's bias, ALiBi and RoPE lie within a few per cent
//! of perplexity at the trained length. Beyond it ALiBi, FIRE and T5's bias hold, RoPE and learned tables do not
//! (Press et al. 2022, Li et al. 2024).
//!
//! ## Definition
//! The text is cut at nine tenths of its characters. Training samples are windows at uniform places of the first
//! part. The split `validation` has `count` windows that do not overlap, evenly spread over the second part; a seed
//! changes nothing. A window has `len + 1` characters, each a token, so that `len` of them are scored. The vocabulary
//! is the sorted set of all characters of the whole text.
//!
//! Settings: `corpus` (a known text, default `tinyshakespeare`) or `path` (any UTF-8 file), not both. No slices.
//!
//! ## Sample
//! ```text
//! p e s ; · t h e · o l d · f e r r y · f o l l o w
//!   ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^
//! ```
//!
//! ## Source
//! The usual character-level set-up of `char-rnn` and `nanoGPT` (Karpathy), with their split of 90 to 10; the sample
//! above is from the made-up text of the tests.

use std::path::PathBuf;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::corpus;
use crate::random::below;
use crate::task::{check_range, find_split};
use crate::{Headline, Sample, Split, Task, TaskError, TaskMeta};

/// What is true of text whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "text",
    label: "Text, by character",
    version: 1,
    headline: Headline::Perplexity,
    len_unit: "tokens",
    summary: "Predict the next character of real text.",
    source: "character-level language modelling as in char-rnn and nanoGPT",
    takes_path: true,
};

const SPLITS: &[Split] = &[Split {
    name: "validation",
    in_distribution: true,
    about: "Windows spread evenly over the last tenth of the text.",
}];

/// Where the text comes from: one of the two, which the type makes certain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "Fields")]
pub enum TextConfig {
    /// Id of a corpus of [`corpus::CORPORA`].
    Corpus(String),
    /// Any UTF-8 file.
    Path(PathBuf),
}

impl Default for TextConfig {
    fn default() -> Self {
        Self::Corpus(corpus::CORPORA[0].id.to_owned())
    }
}

/// The keys as they are written; two of them exclude each other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    corpus: Option<String>,
    path: Option<PathBuf>,
}

impl TryFrom<Fields> for TextConfig {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        match fields {
            Fields { corpus: Some(_), path: Some(_) } => {
                Err("`corpus` and `path` are both given; keep the one that names the text")
            }
            Fields { path: Some(path), .. } => Ok(Self::Path(path)),
            Fields { corpus: Some(corpus), .. } => Ok(Self::Corpus(corpus)),
            Fields { corpus: None, path: None } => Ok(Self::default()),
        }
    }
}

impl TextConfig {
    /// Reads the text, fetching it first if it is a corpus not yet on this machine.
    ///
    /// # Errors
    /// [`TaskError::Corpus`] if the text cannot be had.
    pub fn build(&self) -> Result<Text, TaskError> {
        let path = match self {
            Self::Corpus(name) => &corpus::fetch(name)?,
            Self::Path(path) => path,
        };
        Ok(Text::new(&corpus::read_text(path)?))
    }
}

/// The text task: characters are tokens, numbered in their order in Unicode.
#[derive(Clone)]
pub struct Text {
    alphabet: Vec<char>,
    tokens: Vec<u32>,
    /// Where the validation part starts, in characters.
    cut: usize,
    bytes_per_token: f64,
    sha256: String,
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Text")
            .field("chars", &self.tokens.len())
            .field("vocab_size", &self.alphabet.len())
            .finish_non_exhaustive()
    }
}

impl Text {
    /// Makes the task from a text in memory.
    pub fn new(text: &str) -> Self {
        let mut alphabet: Vec<char> = text.chars().collect();
        let cut = alphabet.len() / 10 * 9 + alphabet.len() % 10 * 9 / 10;
        let validation_chars = alphabet.len() - cut;
        let validation_bytes: usize = alphabet[cut..].iter().map(|c| c.len_utf8()).sum();
        alphabet.sort_unstable();
        alphabet.dedup();
        let token = |c| alphabet.partition_point(|known| *known < c) as u32;
        let tokens = text.chars().map(token).collect();
        Self {
            alphabet,
            tokens,
            cut,
            bytes_per_token: validation_bytes as f64 / validation_chars.max(1) as f64,
            sha256: corpus::sha256_hex(text.as_bytes()),
        }
    }

    fn window(&self, start: usize, len: usize) -> Sample {
        let mut scored = vec![true; len + 1];
        scored[0] = false;
        Sample { tokens: self.tokens[start..=start + len].to_vec(), scored, slices: Vec::new() }
    }

    fn check_fit(&self, part: &'static str, len: usize, count: usize) -> Result<(), TaskError> {
        let chars = match part {
            "training" => self.cut,
            _ => self.tokens.len() - self.cut,
        };
        let window = len + 1;
        let fits = chars / window;
        if fits >= count {
            return Ok(());
        }
        Err(TaskError::TextTooShort { task: META.id, part, chars, window, count, fits })
    }
}

impl Task for Text {
    fn meta(&self) -> &'static TaskMeta {
        &META
    }

    fn vocab_size(&self) -> usize {
        self.alphabet.len()
    }

    fn token_text(&self, token: u32) -> String {
        self.alphabet.get(token as usize).unwrap_or(&'?').to_string()
    }

    fn splits(&self) -> &'static [Split] {
        SPLITS
    }

    fn max_tokens(&self, len: usize) -> usize {
        len.saturating_add(1)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(&META, len, 1, "at least one prediction")?;
        self.check_fit("training", len, 1)?;
        self.check_fit("validation", len, 1)
    }

    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let places = (self.cut - len) as u32;
        self.window(below(rng, places) as usize, len)
    }

    fn eval_set(
        &self,
        split: &str,
        len: usize,
        count: usize,
        _seed: u64,
    ) -> Result<Vec<Sample>, TaskError> {
        find_split(self, split)?;
        self.check_len(len)?;
        self.check_fit("validation", len, count)?;
        let chars = self.tokens.len() - self.cut;
        // At least a window apart, because `count` windows fit.
        let start = |k| self.cut + k * chars / count;
        Ok((0..count).map(|k| self.window(start(k), len)).collect())
    }

    fn max_eval_samples(&self, len: usize) -> Option<usize> {
        Some((self.tokens.len() - self.cut) / self.max_tokens(len))
    }

    fn data_sha256(&self) -> Option<&str> {
        Some(&self.sha256)
    }

    fn bytes_per_token(&self) -> Option<f64> {
        Some(self.bytes_per_token)
    }

    /// Exact match of a whole window is not what text is ranked by.
    fn chance(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests;

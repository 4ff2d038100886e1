//! # Text: predict the next token
//! ## What it asks of an encoding
//! The mixture of natural language: the next token mostly depends on the last few words, and sometimes on a name or a
//! bracket far back. The task shows the value of an encoding where no single mechanism suffices.
//!
//! ## Predicted order
//! Small differences at the trained length: from 125 million parameters on, the perplexities of CoPE, FIRE, T5's bias,
//! ALiBi and RoPE differ by a few per cent. Beyond it ALiBi, FIRE and T5's bias keep their perplexity, and RoPE and
//! learned tables do not (Press et al. 2022, Li et al. 2024).
//!
//! ## Definition
//! A text consists of documents, which are divided into training, validation and test by the text itself or by a rule.
//! A single text is one document, split at nine tenths of its characters into training and validation. A window has
//! `len + 1` tokens of one document, so that `len` of them are scored.
//!
//! Training samples are windows at uniform positions: a document is drawn by its size, then a position in it; a
//! document that is shorter than a window is one window. The splits `validation` and, if the text has such a part,
//! `test` are evaluated according to `eval_windows`, with the same windows for all seeds:
//! - `spread` (default): `count` windows of full length that do not overlap, evenly spread over the part.
//! - `whole`: consecutive windows, each of which scores the tokens that the previous one has not scored. Every token
//!   but the first of a document is thus scored once. The last window of a document is shorter. There are as many
//!   windows as the part needs; if fewer are requested (`eval.samples`), these are spread evenly over the part.
//! - `{ sliding = 128 }`: as `whole`, with windows that start 128 tokens apart. The first window of a document is
//!   scored completely; each later window scores only its end. All but the first tokens therefore have a context of at
//!   least `len` minus the stride. The stride must not exceed the shortest length.
//!
//! Settings: `corpus` (a known text, default `tinyshakespeare`) or `path` (a file or folder, with `field` for the
//! column of its rows), not both; `documents`: `apart` (default) or `joined` (borders are ignored); `tokenizer`:
//! `chars` (default: the sorted set of all characters of the whole text), `bytes`, `gpt2`,
//! `{ file = "tokenizer.json" }` or `{ bpe = 4096 }` (byte pairs learned from the training part).
//!
//! Slice of tokens: `position` in the window, from 1, rounded down to a power of two. Slices of samples if a part has
//! several documents: `document`, its number, up to 256 of them; beyond that `document-tokens`, its size rounded down
//! to a power of two.
//!
//! ## Sample
//! From an invented text:
//! ```text
//! p e s ; · t h e · o l d · f e r r y · f o l l o w
//!   ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^
//! ```
//!
//! ## Source
//! The usual character-level set-up of `char-rnn` and `nanoGPT` (Karpathy), with its split of 90 to 10. Windows over
//! the whole text, `whole` and `sliding`, are as in Press et al. (2021), who compare the two.

mod config;
mod windows;

use std::path::Path;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use crate::corpus::{self, CorpusError};
use crate::data::{Part, Parts, SplitRule, TextDocument};
use crate::files::sha256_hex;
use crate::settings::TaskSettings;
use crate::task::{check_range, find_split};
use crate::tokenizer::{Tokenizer, TokenizerConfig};
use crate::tokens::{self, Origin, TokenStore};
use crate::{Headline, Sample, Split, Task, TaskError, TaskMeta, TokenSlice};

pub use config::{EvalWindows, TextConfig, TextSource};
use windows::{Documents, Window};

const META: TaskMeta = TaskMeta {
    id: "text",
    label: "Text",
    headline: Headline::Perplexity,
    summary: "Predict the next token of real text.",
    source: "language modelling; by character as in char-rnn and nanoGPT",
    takes_path: true,
    ..TaskMeta::GENERATED
};

/// Splits of a text with a test part; without one, only the first.
pub(crate) const SPLITS: &[Split] = &[
    Split::as_trained("validation", "The text's validation part."),
    Split::as_trained("test", "The text's test part."),
];

/// Parts of a text in the order of [`SPLITS`].
pub(crate) fn eval_parts(has_test: bool) -> &'static [Part] {
    if has_test { &[Part::Validation, Part::Test] } else { &[Part::Validation] }
}

/// Greatest number of documents in a part that have a slice each.
const FEW_DOCUMENTS: usize = 256;

impl TaskSettings for TextConfig {
    type Task = Text;

    const META: &'static TaskMeta = &META;

    const SOURCE: &'static str = include_str!("text.rs");

    /// Reads the text, which is fetched first if it is a corpus that is not on this machine, and computes its tokens or
    /// reads them from the cache folder.
    ///
    /// # Errors
    /// [`TaskError::Corpus`] if the text is not available, [`TaskError::Tokens`] if its tokens are not.
    fn build(&self) -> Result<Text, TaskError> {
        self.build_in(&corpus::cache_dir())
    }
}

impl TextConfig {
    fn build_in(&self, cache: &Path) -> Result<Text, TaskError> {
        Text::of(self.source.read()?, self, cache)
    }
}

/// Next-token prediction on one text.
pub struct Text {
    tokenizer: Arc<dyn Tokenizer>,
    tokens: TokenStore,
    /// Documents of each part, in the order of [`Part::ALL`].
    documents: [Documents; 3],
    eval_windows: EvalWindows,
    /// Bytes of each token, if they add up to the text.
    sizes: Option<Vec<u32>>,
    sha256: String,
    origin: Origin,
    notes: Vec<String>,
}

/// Size of a part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartSize {
    /// Part that is measured.
    pub part: Part,
    /// Documents of at least two tokens, which have something to predict.
    pub documents: usize,
    /// Number of its tokens.
    pub tokens: usize,
    /// Size of the text in bytes.
    pub bytes: usize,
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Text")
            .field("vocab_size", &self.vocab_size())
            .field("parts", &self.parts())
            .finish_non_exhaustive()
    }
}

impl Text {
    /// Makes the task from one text in memory, by character.
    ///
    /// # Errors
    /// None for the default settings.
    pub fn new(text: &str) -> Result<Self, TaskError> {
        let documents = vec![TextDocument::unnamed(text.to_owned())];
        let parts = SplitRule::ByNumber.parts(documents).map_err(CorpusError::from)?;
        Self::of(parts, &TextConfig::default(), &corpus::cache_dir())
    }

    fn of(parts: Parts, config: &TextConfig, cache: &Path) -> Result<Self, TaskError> {
        let parts = parts.with_borders(config.documents);
        let (tokenizer, note) = config.tokenizer.build(&parts, cache)?;
        let found = tokens::open_or_encode(&parts, config.documents, &*tokenizer, cache)?;
        let sha256 = match &config.tokenizer {
            // The settings only name the file, like the text.
            TokenizerConfig::File(_) => {
                let both = format!("{}\n{}", parts.sha256, tokenizer.sha256());
                sha256_hex(both.as_bytes())
            }
            _ => parts.sha256,
        };
        let mut notes: Vec<String> = note.into_iter().collect();
        if let Origin::Repaired { path, why } = &found.origin {
            notes.push(format!("{}: {why}, so the tokens were computed again", path.display()));
        }
        Ok(Self {
            documents: Part::ALL.map(|part| Documents::of(part, &found.spans)),
            sizes: if found.exact { tokens::sizes(&*tokenizer) } else { None },
            tokenizer,
            tokens: found.tokens,
            eval_windows: config.eval_windows,
            sha256,
            origin: found.origin,
            notes,
        })
    }

    /// Sizes of the parts that are not empty.
    pub fn parts(&self) -> Vec<PartSize> {
        let sizes = Part::ALL.into_iter().zip(&self.documents);
        let sizes = sizes.filter(|(_, documents)| documents.tokens > 0);
        sizes
            .map(|(part, found)| PartSize {
                part,
                documents: found.count(),
                tokens: found.tokens,
                bytes: found.bytes,
            })
            .collect()
    }

    /// Origin of the tokens.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Text of a sample as in the corpus; incomplete characters are shown as bytes.
    pub fn sample_text(&self, sample: &Sample) -> String {
        self.tokenizer.decode(&sample.tokens)
    }

    fn part(&self, part: Part) -> &Documents {
        &self.documents[part as usize]
    }

    fn eval_parts(&self) -> &'static [Part] {
        eval_parts(self.part(Part::Test).tokens > 0)
    }

    fn sample(&self, part: Part, window: Window) -> Sample {
        let mut scored = vec![false; window.tokens.len()];
        scored[window.scored_from - window.tokens.start..].fill(true);
        let slices = self.document_slice(part, window.document).into_iter().collect();
        Sample { tokens: self.tokens.copy(window.tokens), scored, slices }
    }

    /// Slice of a sample, with the same name for all samples of the task.
    fn document_slice(&self, part: Part, document: usize) -> Option<(&'static str, u32)> {
        let most = self.eval_parts().iter().map(|part| self.part(*part).count()).max()?;
        match most {
            0 | 1 => None,
            2..=FEW_DOCUMENTS => Some(("document", document as u32)),
            _ => Some(("document-tokens", power_below(self.part(part).size(document) as u32))),
        }
    }

    fn check_fit(&self, part: Part, len: usize, count: usize) -> Result<(), TaskError> {
        let window = len + 1;
        let documents = self.part(part);
        let fits = documents.room(window);
        if fits >= count {
            return Ok(());
        }
        Err(TaskError::TextTooShort {
            task: META.id,
            part: part.id(),
            tokens: documents.tokens,
            documents: documents.count(),
            window,
            count,
            fits,
        })
    }
}

/// Largest power of two that is at most `n`; 0 for 0.
fn power_below(n: u32) -> u32 {
    n.checked_ilog2().map_or(0, |power| 1 << power)
}

impl Task for Text {
    fn meta(&self) -> &'static TaskMeta {
        &META
    }

    fn tokenizer(&self) -> Option<&dyn Tokenizer> {
        Some(&*self.tokenizer)
    }

    fn vocab_size(&self) -> usize {
        self.tokenizer.vocab_size()
    }

    fn token_text(&self, token: u32) -> String {
        if token as usize >= self.vocab_size() {
            return "?".to_owned();
        }
        let text = self.tokenizer.decode(&[token]);
        // A control token of a `tokenizer.json` may have no text.
        if text.is_empty() { format!("<{token}>") } else { text }
    }

    fn splits(&self) -> &'static [Split] {
        &SPLITS[..self.eval_parts().len()]
    }

    fn max_tokens(&self, len: usize) -> usize {
        len.saturating_add(1)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        let (least, why) = match self.eval_windows {
            EvalWindows::Sliding(stride) => (stride.get() as usize, "the stride of `eval_windows`"),
            EvalWindows::Spread | EvalWindows::Whole => (1, "at least one prediction"),
        };
        check_range(&META, len, least, why)?;
        self.check_fit(Part::Train, len, 1)?;
        self.eval_parts().iter().try_for_each(|part| self.check_fit(*part, len, 1))
    }

    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        self.sample(Part::Train, self.part(Part::Train).draw(len, rng))
    }

    fn eval_set(
        &self,
        split: &str,
        len: usize,
        count: usize,
        _seed: u64,
    ) -> Result<Vec<Sample>, TaskError> {
        let (number, _) = find_split(self, split)?;
        self.check_len(len)?;
        let part = self.eval_parts()[number];
        if self.eval_windows == EvalWindows::Spread {
            self.check_fit(part, len, count)?;
        }
        let windows = self.part(part).windows(len, count, self.eval_windows);
        Ok(windows.into_iter().map(|window| self.sample(part, window)).collect())
    }

    /// For `spread`, number of windows that fit into every part. Otherwise number of windows that the largest part needs for a
    /// whole evaluation; a smaller part has fewer.
    fn max_eval_samples(&self, len: usize) -> Option<usize> {
        if self.check_len(len).is_err() {
            return Some(0);
        }
        let most = self.eval_parts().iter().map(|p| self.part(*p).most(len, self.eval_windows));
        match self.eval_windows {
            EvalWindows::Spread => most.min(),
            EvalWindows::Whole | EvalWindows::Sliding(_) => most.max(),
        }
    }

    fn data_sha256(&self) -> Option<&str> {
        Some(&self.sha256)
    }

    /// Mean bytes per token over the validation part.
    fn bytes_per_token(&self) -> Option<f64> {
        let validation = self.part(Part::Validation);
        Some(validation.bytes as f64 / validation.tokens.max(1) as f64)
    }

    fn scored_bytes(&self, sample: &Sample) -> Option<u64> {
        let sizes = self.sizes.as_ref()?;
        let scored = sample.tokens.iter().zip(&sample.scored).filter(|(_, scored)| **scored);
        Some(scored.map(|(token, _)| u64::from(sizes[*token as usize])).sum())
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        let scored = sample.scored.iter().enumerate().filter(|(_, scored)| **scored);
        vec![("position", scored.map(|(place, _)| power_below(place as u32)).collect())]
    }

    /// The last window of a document may be shorter.
    fn has_trained_size(&self, sample: &Sample, _len: usize, train_len: usize) -> bool {
        sample.tokens.len() <= self.max_tokens(train_len)
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

#[cfg(test)]
pub(crate) mod tests;

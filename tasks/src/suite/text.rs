//! # Text: predict the next token
//! ## What it asks of an encoding
//! What language asks: mostly the last few words, at times a name or a bracket far back. It shows what an
//! encoding is worth where no single trick solves the task.
//!
//! ## Predicted order
//! Small differences: at 125 million parameters and up, CoPE, FIRE, T5's bias, ALiBi and RoPE lie within a few per cent
//! of perplexity at the trained length. Beyond it ALiBi, FIRE and T5's bias hold, RoPE and learned tables do not
//! (Press et al. 2022, Li et al. 2024).
//!
//! ## Definition
//! A text is documents, and these are for training, validation or test as the text itself says or by a rule. One text
//! alone is one document, cut at nine tenths of its characters into training and validation. A window has `len + 1`
//! tokens of one document, so that `len` of them are scored.
//!
//! Training samples are windows at uniform places: a document is drawn by its size, then a place in it; a document that
//! is shorter than a window is one window. The splits `validation` and, if the text has such a part, `test` are
//! evaluated as `eval_windows` says; a seed changes nothing:
//! - `spread` (default): `count` windows of full length that do not overlap, evenly spread over the part.
//! - `whole`: windows that follow one another, each scoring what the one before has not, so that every token but the
//!   first of a document is scored once; the last window of a document is shorter. There are as many as the part
//!   needs; if fewer are asked for (`eval.samples`), they are spread evenly over all.
//! - `{ sliding = 128 }`: the same with windows that start 128 tokens apart. All of the first window of a document is
//!   scored; each later one scores only its end, so all but the first tokens have a context of at least `len` less
//!   the stride. The stride must not exceed the shortest length.
//!
//! Settings: `corpus` (a known text, default `tinyshakespeare`) or `path` (a file or folder, with `field` for the
//! column of its rows), not both; `documents`: `apart` (default) or `joined` (borders are forgotten); `tokenizer`:
//! `chars` (default: the sorted set of all characters of the whole text), `bytes`, `gpt2`, `{ file = "tokenizer.json" }`
//! or `{ bpe = 4096 }` (byte pairs learned from the training part).
//!
//! Slices of tokens: `position`, the place in the window, first of them 1, rounded down to a power of two. Slices of
//! samples where a part has several documents: `document`, its number, up to 256 of them; beyond that
//! `document-tokens`, its size rounded down to a power of two.
//!
//! ## Sample
//! ```text
//! p e s ; · t h e · o l d · f e r r y · f o l l o w
//!   ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^
//! ```
//!
//! ## Source
//! The usual character-level set-up of `char-rnn` and `nanoGPT` (Karpathy), with their split of 90 to 10; windows over
//! the whole text as in Press et al. (2021), who compare the two; the sample above is from the made-up text of the tests.

mod config;
mod windows;

use std::path::Path;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use crate::corpus::{self, CorpusError};
use crate::data::{self, Part, Parts, SplitRule};
use crate::task::{check_range, find_split};
use crate::tokenizer::{Tokenizer, TokenizerConfig};
use crate::tokens::{self, Origin, Tokens};
use crate::{Headline, Sample, Split, Task, TaskError, TaskMeta, TokenSlice};

pub use config::{EvalWindows, Source, TextConfig};
use windows::{Documents, Window};

/// What is true of text whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "text",
    label: "Text",
    version: 1,
    headline: Headline::Perplexity,
    len_unit: "tokens",
    summary: "Predict the next token of real text.",
    source: "language modelling; by character as in char-rnn and nanoGPT",
    takes_path: true,
};

/// With a test part or, one shorter, without.
const SPLITS: &[Split] = &[
    Split { name: "validation", in_distribution: true, about: "The text's validation part." },
    Split { name: "test", in_distribution: true, about: "The text's test part." },
];

/// Up to so many documents in a part, each has a slice of its own.
const FEW_DOCUMENTS: usize = 256;

impl TextConfig {
    /// Reads the text, fetching it first if it is a corpus not yet on this machine, and makes its tokens or finds them
    /// in the cache folder.
    ///
    /// # Errors
    /// [`TaskError::Corpus`] if the text cannot be had, [`TaskError::Tokens`] if its tokens cannot.
    pub fn build(&self) -> Result<Text, TaskError> {
        self.build_in(&corpus::cache_dir())
    }

    fn build_in(&self, cache: &Path) -> Result<Text, TaskError> {
        let parts = match &self.source {
            Source::Corpus(name) => corpus::read(name)?,
            Source::Path { path, field } => {
                data::read(path, field.as_deref()).map_err(CorpusError::from)?
            }
        };
        Text::of(parts, self, cache)
    }
}

/// The text task.
pub struct Text {
    tokenizer: Arc<dyn Tokenizer>,
    tokens: Tokens,
    /// Of each part, in the order of [`Part::ALL`].
    documents: [Documents; 3],
    eval_windows: EvalWindows,
    /// Bytes of each token, where they add up to the text.
    sizes: Option<Vec<u32>>,
    sha256: String,
    origin: Origin,
    notes: Vec<String>,
}

/// What a part of a text consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartSize {
    /// The part.
    pub part: Part,
    /// Documents in which something can be predicted.
    pub documents: usize,
    /// Tokens.
    pub tokens: usize,
    /// Bytes of text.
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
    /// None that is known: every text has characters.
    pub fn new(text: &str) -> Result<Self, TaskError> {
        let documents = vec![data::single(text.to_owned())];
        let parts = SplitRule::ByNumber.parts(documents).map_err(CorpusError::from)?;
        Self::of(parts, &TextConfig::default(), &corpus::cache_dir())
    }

    fn of(parts: Parts, config: &TextConfig, cache: &Path) -> Result<Self, TaskError> {
        let parts = parts.with_borders(config.documents);
        let (tokenizer, note) = config.tokenizer.build(&parts, cache)?;
        let found = tokens::open_or_encode(&parts, config.documents, &*tokenizer, cache)?;
        let sha256 = match &config.tokenizer {
            // The settings only name it, like the text.
            TokenizerConfig::File(_) => {
                let both = format!("{}\n{}", parts.sha256, tokenizer.sha256());
                corpus::sha256_hex(both.as_bytes())
            }
            _ => parts.sha256,
        };
        let mut notes: Vec<String> = note.into_iter().collect();
        if let Origin::Repaired { path, why } = &found.origin {
            notes.push(format!("{}: {why}, so the tokens were made again", path.display()));
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

    /// Sizes of the parts that there are.
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

    /// Where the tokens came from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The text of a sample as it stands in the corpus; what is no whole character is shown as bytes.
    pub fn sample_text(&self, sample: &Sample) -> String {
        self.tokenizer.decode(&sample.tokens)
    }

    fn part(&self, part: Part) -> &Documents {
        let [train, validation, test] = &self.documents;
        match part {
            Part::Train => train,
            Part::Validation => validation,
            Part::Test => test,
        }
    }

    fn eval_parts(&self) -> &'static [Part] {
        if self.part(Part::Test).tokens > 0 {
            &[Part::Validation, Part::Test]
        } else {
            &[Part::Validation]
        }
    }

    fn sample(&self, part: Part, window: Window) -> Sample {
        let mut scored = vec![false; window.tokens.len()];
        scored[window.scored_from - window.tokens.start..].fill(true);
        let slices = self.document_slice(part, window.document).into_iter().collect();
        Sample { tokens: self.tokens.copy(window.tokens), scored, slices }
    }

    /// What a sample can be grouped by: the same name for all samples of the task.
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

/// The largest power of two that is not above a number; 0 for 0.
fn power_below(n: u32) -> u32 {
    n.checked_ilog2().map_or(0, |power| 1 << power)
}

impl Task for Text {
    fn meta(&self) -> &'static TaskMeta {
        &META
    }

    fn vocab_size(&self) -> usize {
        self.tokenizer.vocab_size()
    }

    fn token_text(&self, token: u32) -> String {
        if token as usize >= self.vocab_size() {
            return "?".to_owned();
        }
        let text = self.tokenizer.decode(&[token]);
        // A control token of a `tokenizer.json` may stand for nothing.
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
        let split = find_split(self, split)?;
        self.check_len(len)?;
        let at = SPLITS.iter().position(|known| known.name == split.name).unwrap_or(0);
        let part = self.eval_parts()[at];
        if self.eval_windows == EvalWindows::Spread {
            self.check_fit(part, len, count)?;
        }
        let windows = self.part(part).windows(len, count, self.eval_windows);
        Ok(windows.into_iter().map(|window| self.sample(part, window)).collect())
    }

    /// Of a whole, as many as its largest part needs; a smaller part gives what it has.
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

    /// Of the validation part.
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

    fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Exact match of a whole window is not what text is ranked by.
    fn chance(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests;

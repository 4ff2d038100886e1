//! # MQAR: many keys, many questions
//! ## What it asks of an encoding
//! To find by content, at many distances in one sequence: each key that comes again asks for the value that stood
//! behind it. Like induction, but with as many things to be kept apart as there are pairs.
//!
//! ## Predicted order
//! Attention solves it with most encodings within the trained lengths (Arora et al. 2023 use learned positions); NoPE
//! later than the rest, since it has no token before. Beyond them, as in induction: NoPE and CoPE before RoPE, before
//! learned tables; ALiBi loses what is far. Nothing is published for encodings side by side.
//!
//! ## Definition
//! First `pairs` keys, each with its value behind it; keys are all different, values too. Then slots of two tokens to
//! the end: in `pairs` of them a key comes again and its value follows, which is the scored token; the others have
//! `filler`. Keys come in random order, at slots drawn with `gaps` (a taken slot gives way to the next free one):
//! `power-law`, the chance of slot `k` falling about as `1 / k` (its octave is uniform, and the slot within it), or
//! `uniform`. `len` counts all tokens and is even.
//!
//! Settings: `pairs` 4, `vocab` 8192 (one blank, keys and values in halves), `filler` `random` (any token, keys too)
//! or `blank`, `gaps` `power-law`. Slice: `span`, tokens from the first value to the last answer. Slice of tokens:
//! `distance` from the value to the answer. Chance: one over the number of ordered choices of `pairs` values.
//!
//! ## Sample
//! ```text
//! k2680 v2078 k2903 v2863 k2988 v2297 k1907 v246 k2988 v2297 v655 v405 k2680
//!                                                      ^^^^^
//! v2078 v2650 v3567 k2903 v2863 k1907 v246 k4066 v3118 v3427 v2216
//! ^^^^^                   ^^^^^       ^^^^
//! ```
//!
//! ## Source
//! Arora et al.: Zoology, 2023, arXiv 2312.04927 (`HazyResearch/zoology`, `multiquery_ar.py`; length 64 with 4 pairs to
//! 512 with 64). There the model answers at the key; here the value follows it, as in any text, so that the question
//! is next-token prediction. Their slots are drawn with the power 0.01 - 1 of `k`.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generated, Generator, one_of_orders};
use crate::random::{below, distinct};
use crate::task::{check_range, check_setting, invalid};
use crate::{Headline, Sample, Split, TaskError, TaskMeta, TokenSlice};

/// What is true of MQAR whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "mqar",
    label: "Multi-query associative recall",
    version: 1,
    headline: Headline::ExactMatch,
    len_unit: "tokens",
    summary: "Recall the value of every key that comes again.",
    source: "Arora et al. 2023 (Zoology), arXiv 2312.04927",
    takes_path: false,
};

const SPLITS: &[Split] = &[Split {
    name: "uniform",
    in_distribution: true,
    about: "As in training, at exactly the given length.",
}];

const BLANK: u32 = 0;

/// What stands in the slots that ask for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filler {
    /// Any token of the vocabulary, keys and values too.
    Random,
    /// The blank.
    Blank,
}

/// How far behind the pairs the questions come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// Slot `k` with a chance of about `1 / k`: mostly soon.
    PowerLaw,
    /// Every slot alike.
    Uniform,
}

/// Settings; the defaults are those of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MqarConfig {
    /// How many pairs, 1 to 65536 and at most the number of keys.
    pub pairs: u32,
    /// Number of tokens, 4 to 131072: a blank, then keys to the half of it, then values.
    pub vocab: u32,
    /// What stands in the slots that ask for nothing.
    pub filler: Filler,
    /// How far behind the pairs the questions come.
    pub gaps: Gaps,
}

impl Default for MqarConfig {
    fn default() -> Self {
        Self { pairs: 4, vocab: 8192, filler: Filler::Random, gaps: Gaps::PowerLaw }
    }
}

impl MqarConfig {
    /// Checks the settings and makes the task.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] for a setting out of range.
    pub fn build(&self) -> Result<Generated<Mqar>, TaskError> {
        check_setting(&META, "vocab", self.vocab, &(4..=1 << 17))?;
        let task = Mqar { settings: self.clone() };
        let keys = task.first_value() - 1;
        if !(1..=keys).contains(&self.pairs) {
            let expected = format!("between 1 and {keys}, the keys that vocab {} has", self.vocab);
            return Err(invalid(&META, "pairs", &self.pairs, expected));
        }
        Ok(Generated(task))
    }
}

/// The MQAR task. Token ids: the blank, the keys, the values.
#[derive(Debug, Clone)]
pub struct Mqar {
    settings: MqarConfig,
}

impl Mqar {
    fn first_value(&self) -> u32 {
        self.settings.vocab / 2
    }

    fn pairs(&self) -> usize {
        self.settings.pairs as usize
    }

    /// A slot below `slots`.
    fn draw_slot(&self, slots: u32, rng: &mut ChaCha8Rng) -> usize {
        let slot = match self.settings.gaps {
            Gaps::Uniform => below(rng, slots),
            Gaps::PowerLaw => loop {
                let octave = below(rng, slots.ilog2() + 1);
                let k = (1 << octave) + below(rng, 1 << octave);
                // The last octave may reach beyond the end.
                if k <= slots {
                    break k - 1;
                }
            },
        };
        slot as usize
    }
}

impl Generator for Mqar {
    const META: &'static TaskMeta = &META;

    fn splits(&self) -> &'static [Split] {
        SPLITS
    }

    fn vocab_size(&self) -> usize {
        self.settings.vocab as usize
    }

    fn token_text(&self, token: u32) -> String {
        if token >= self.settings.vocab {
            return "?".to_owned();
        }
        match token.checked_sub(self.first_value()) {
            Some(value) => format!("v{value}"),
            None if token == BLANK => "_".to_owned(),
            None => format!("k{}", token - 1),
        }
    }

    fn max_tokens(&self, len: usize) -> usize {
        len
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(&META, len, 4 * self.pairs(), "every pair once and once more")?;
        if len.is_multiple_of(2) {
            return Ok(());
        }
        Err(TaskError::InvalidLen {
            task: META.id,
            len,
            expected: format!("even, such as {}: keys have their values behind them", len + 1),
        })
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let pairs = self.pairs();
        let first_value = self.first_value();
        let keys = distinct(rng, pairs, first_value - 1);
        let values = distinct(rng, pairs, self.settings.vocab - first_value);
        let mut tokens = Vec::with_capacity(len);
        tokens.extend(keys.iter().zip(&values).flat_map(|(k, v)| [1 + k, first_value + v]));
        match self.settings.filler {
            Filler::Blank => tokens.resize(len, BLANK),
            Filler::Random => {
                tokens.extend((2 * pairs..len).map(|_| below(rng, self.settings.vocab)));
            }
        }
        let mut scored = vec![false; len];
        let slots = len / 2 - pairs;
        let mut last = 0;
        for pair in 0..pairs {
            let mut slot = self.draw_slot(slots as u32, rng);
            let place = loop {
                let place = 2 * (pairs + slot);
                if !scored[place + 1] {
                    break place;
                }
                slot = (slot + 1) % slots;
            };
            tokens.copy_within(2 * pair..2 * pair + 2, place);
            scored[place + 1] = true;
            last = last.max(place + 1);
        }
        Sample { tokens, scored, slices: vec![("span", last as u32 - 1)] }
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        let context = &sample.tokens[..2 * self.pairs()];
        let distance = |t: usize| {
            let value = context.iter().skip(1).step_by(2).position(|v| *v == sample.tokens[t]);
            (t - 2 * value.unwrap_or(0) - 1) as u32
        };
        let answers = (0..sample.tokens.len()).filter(|t| sample.scored[*t]);
        vec![("distance", answers.map(distance).collect())]
    }

    fn chance(&self) -> Option<f64> {
        Some(one_of_orders(self.pairs(), self.settings.vocab - self.first_value()))
    }
}

#[cfg(test)]
pub(crate) mod tests;

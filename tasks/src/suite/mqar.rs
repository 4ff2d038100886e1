//! # MQAR: recall the values of many keys
//! ## What it asks of an encoding
//! Finding by content at many distances in one sequence: each repeated key asks for the value that followed it. Like
//! induction, but with as many items to keep apart as there are pairs.
//!
//! ## Predicted order
//! Attention solves it with most encodings within the trained lengths (Arora et al. 2023 use learned positions); NoPE
//! learns it later, since it cannot address the previous token. Beyond them, as in induction: NoPE and CoPE before RoPE
//! before learned tables; ALiBi loses distant tokens. No published comparison of encodings.
//!
//! ## Definition
//! First `pairs` keys, each followed by its value; all keys differ, and all values. Then slots of two tokens up to the
//! end: in `pairs` of them a key is repeated with its value, which is scored; the others have `filler`. Keys come in
//! random order, at slots drawn with `gaps` (a taken slot is replaced by the next free one): `power-law`, slot `k` with
//! a probability of about `1 / k` (its octave is uniform, and the slot within it), or `uniform`. `len` counts all
//! tokens and is even.
//!
//! Settings: `pairs` 4, `vocab` 8192 (one blank, keys and values in halves), `filler` `random` (any token except the
//! keys of the sample) or `blank`, `gaps` `power-law`. Slice: `span`, tokens from the first value to the last answer.
//! Slice of tokens: `distance` from the value to the answer. Chance: one over the number of ordered choices of `pairs`
//! values.
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

use crate::generator::{Generator, one_of_orders};
use crate::random::{below, distinct};
use crate::task::{check_between, check_even, check_range, check_setting};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta, TokenSlice};

const BLANK: u32 = 0;

/// Content of the slots without a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotFiller {
    /// Any token of the vocabulary except the keys of the sample, whose pairs it would contradict.
    Random,
    /// The blank in every slot.
    Blank,
}

/// Distribution of the slots with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// Slot `k` is drawn with a probability of about `1 / k`, so that early slots are frequent.
    PowerLaw,
    /// Every slot with the same probability.
    Uniform,
}

/// Settings of MQAR; the defaults are those of the source. Token ids: the blank, the keys, the values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MqarConfig {
    /// Number of pairs, at least 1 and at most the number of keys, which is 65535 with the largest `vocab`.
    pub pairs: u32,
    /// Number of tokens, 4 to 131072: a blank, keys up to the middle, then values.
    pub vocab: u32,
    /// Content of the slots without a question.
    pub filler: SlotFiller,
    /// Distribution of the slots with a question.
    pub gaps: Gaps,
}

impl Default for MqarConfig {
    fn default() -> Self {
        Self { pairs: 4, vocab: 8192, filler: SlotFiller::Random, gaps: Gaps::PowerLaw }
    }
}

impl MqarConfig {
    fn first_value(&self) -> u32 {
        self.vocab / 2
    }

    fn pair_count(&self) -> usize {
        self.pairs as usize
    }

    /// Draws a slot below `slots`.
    fn draw_slot(&self, slots: u32, rng: &mut ChaCha8Rng) -> usize {
        let slot = match self.gaps {
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

/// Returns the first free slot from this one on, round the end. `next` leads from a taken slot towards it, and from a free
/// slot to itself; there must be a free one.
fn free_slot(next: &mut [u32], from: usize) -> usize {
    let mut free = from;
    while next[free] as usize != free {
        free = next[free] as usize;
    }
    // The slots on the way now lead there at once.
    let mut slot = from;
    while slot != free {
        slot = std::mem::replace(&mut next[slot], free as u32) as usize;
    }
    free
}

impl Generator for MqarConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "mqar",
        label: "Multi-query associative recall",
        version: 2,
        summary: "Recall the value of every repeated key.",
        source: "Arora et al. 2023 (Zoology), arXiv 2312.04927",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("mqar.rs");
    const SPLITS: &'static [Split] =
        &[Split::as_trained("uniform", "As in training, at exactly the given length.")];

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "vocab", self.vocab, &(4..=1 << 17))?;
        let keys = self.first_value() - 1;
        let why = format!("the keys that vocab {} has", self.vocab);
        check_between(Self::META, "pairs", self.pairs, &(1..=keys), &why)
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        let first_value = self.first_value();
        vec![
            TokenGroup::Signs(&["_"]),
            TokenGroup::Numbered("k", first_value - 1),
            TokenGroup::Numbered("v", self.vocab - first_value),
        ]
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(
            Self::META,
            len,
            4 * self.pair_count(),
            "every pair once, and once more as a question",
        )?;
        check_even(Self::META, len, "each key is followed by its value")
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let pairs = self.pair_count();
        let first_value = self.first_value();
        let keys = distinct(rng, pairs, first_value - 1);
        let values = distinct(rng, pairs, self.vocab - first_value);
        let mut tokens = Vec::with_capacity(len);
        tokens.extend(keys.iter().zip(&values).flat_map(|(k, v)| [1 + k, first_value + v]));
        match self.filler {
            SlotFiller::Blank => tokens.resize(len, BLANK),
            SlotFiller::Random => {
                let mut is_key = vec![false; self.vocab as usize];
                for key in &keys {
                    is_key[1 + *key as usize] = true;
                }
                // A key elsewhere would contradict its pair.
                tokens.extend((2 * pairs..len).map(|_| {
                    loop {
                        let token = below(rng, self.vocab);
                        if !is_key[token as usize] {
                            break token;
                        }
                    }
                }));
            }
        }
        let mut scored = vec![false; len];
        let slots = len / 2 - pairs;
        let mut last = 0;
        let mut next: Vec<u32> = (0..slots as u32).collect();
        for pair in 0..pairs {
            let slot = free_slot(&mut next, self.draw_slot(slots as u32, rng));
            next[slot] = ((slot + 1) % slots) as u32;
            let place = 2 * (pairs + slot);
            tokens.copy_within(2 * pair..2 * pair + 2, place);
            scored[place + 1] = true;
            last = last.max(place + 1);
        }
        Sample { tokens, scored, slices: vec![("span", last as u32 - 1)] }
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        let context = &sample.tokens[..2 * self.pair_count()];
        let distance = |t: usize| {
            let value = context.iter().skip(1).step_by(2).position(|v| *v == sample.tokens[t]);
            (t - 2 * value.unwrap_or(0) - 1) as u32
        };
        let answers = (0..sample.tokens.len()).filter(|t| sample.scored[*t]);
        vec![("distance", answers.map(distance).collect())]
    }

    fn chance(&self) -> Option<f64> {
        Some(one_of_orders(self.pair_count(), self.vocab - self.first_value()))
    }
}

#[cfg(test)]
pub(crate) mod tests;

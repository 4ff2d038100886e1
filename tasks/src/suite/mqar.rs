//! # MQAR: recall the values of many keys
//! ## What it asks of an encoding
//! Finding by content at many distances in one sequence: each repeated key asks for the value that followed it. The
//! task is like induction, but as many items as there are pairs must be distinguished.
//!
//! ## Predicted order
//! Within the trained lengths attention solves it with most encodings (Arora et al. 2023 use learned positions). NoPE
//! learns it later, since it cannot address the previous token. Beyond the trained lengths, as in induction: NoPE and
//! CoPE before RoPE before learned tables; ALiBi loses distant tokens. There is no published comparison of encodings.
//!
//! ## Definition
//! First come `pairs` keys, each followed by its value. All keys differ, and all values differ. Then come slots of two
//! tokens up to the end. In `pairs` of the slots a key is repeated with its value, which is scored; the other slots
//! have `filler`. Keys come in random order, at slots drawn according to `gaps`; a taken slot is replaced by the next
//! free one. `power-law` draws slot `k` with a probability of about `1 / k`: its octave is uniform, and so is the slot
//! within the octave. `uniform` draws all slots with the same probability. `len` counts all tokens and is even.
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
//! 512 with 64). In Zoology the model answers at the key. Here the value follows the key, as in any text, so the
//! question is next-token prediction. Zoology draws slots with the power 0.01 - 1 of `k`.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generator, one_of_orders};
use crate::random::{below, distinct};
use crate::settings::settings;
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

settings! {
    /// Settings of MQAR; the defaults are those of the source. Token ids: the blank, the keys, the values.
    #[derive(Eq)]
    pub struct MqarConfig {
        /// Number of pairs, at least 1 and at most the number of keys, which is 65535 with the largest `vocab`.
        pub pairs: u32 = 4,
        /// Number of tokens, 4 to 131072: a blank, keys up to the middle, then values.
        pub vocab: u32 = 8192,
        /// Content of the slots without a question.
        pub filler: SlotFiller = SlotFiller::Random,
        /// Distribution of the slots with a question.
        pub gaps: Gaps = Gaps::PowerLaw,
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
        let why = format!("the number of keys with vocab = {}", self.vocab);
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
            "the minimum fits every pair once, and once more as a question",
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

/// Tests of MQAR.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v2 e93fb5299dede4c79159afebf6c709ab0947a3b08f17703f548ed1c4f8a7ece8";

    fn small(pairs: u32, vocab: u32) -> MqarConfig {
        MqarConfig { pairs, vocab, ..MqarConfig::default() }
    }

    pub(crate) fn example() -> Example {
        let few = TaskConfig::from(small(4, 30));
        Example::synthetic(TaskConfig::from(MqarConfig::default()), 24, oracle, GOLDEN)
            .with_oracle_config(few, 40)
            .with_chance_config(TaskConfig::from(small(2, 12)), 20)
    }

    /// Returns the value after the first occurrence of the last key.
    fn oracle(prefix: &[String]) -> Option<String> {
        let (key, before) = prefix.split_last()?;
        assert!(key.starts_with('k'));
        let found = before.iter().position(|text| text == key)?;
        assert!(found.is_multiple_of(2) && before[found + 1].starts_with('v'));
        before.get(found + 1).cloned()
    }

    #[test]
    fn every_pair_is_asked_once_in_a_slot_of_its_own() {
        // As many slots as pairs: all are taken.
        for (gaps, filler) in
            [(Gaps::PowerLaw, SlotFiller::Blank), (Gaps::Uniform, SlotFiller::Random)]
        {
            let config = MqarConfig { filler, gaps, ..small(6, 40) };
            let task = config.build().unwrap();
            for len in [24, 60] {
                for sample in task.eval_set("uniform", len, 50, 1).unwrap() {
                    let mut asked: Vec<&[u32]> = (13..len)
                        .step_by(2)
                        .filter(|t| sample.scored[*t])
                        .map(|t| &sample.tokens[t - 1..=t])
                        .collect();
                    assert_eq!(sample.scored.iter().filter(|s| **s).count(), 6);
                    let mut shown: Vec<&[u32]> = sample.tokens[..12].chunks(2).collect();
                    asked.sort_unstable();
                    shown.sort_unstable();
                    assert_eq!(asked, shown);
                }
            }
        }
    }

    #[test]
    fn a_taken_slot_is_replaced_by_the_next_free_one() {
        let mut next: Vec<u32> = (0..5).collect();
        let drawn = [3, 3, 3, 1, 3].map(|slot| {
            let free = free_slot(&mut next, slot);
            next[free] = (free as u32 + 1) % 5;
            free
        });
        assert_eq!(drawn, [3, 4, 0, 1, 2]);
    }

    /// With a small vocabulary, a filler of arbitrary tokens would have a key in every seventh slot.
    #[test]
    fn keys_occur_in_their_pairs_and_questions_only() {
        let task = small(4, 64).build().unwrap();
        let mut filler: std::collections::BTreeSet<u32> = std::collections::BTreeSet::new();
        for len in [16, 64, 256] {
            for sample in task.eval_set("uniform", len, 100, 4).unwrap() {
                for key in sample.tokens[..8].iter().step_by(2) {
                    let places = (0..len).filter(|t| sample.tokens[*t] == *key).collect::<Vec<_>>();
                    assert!(places.len() == 2 && sample.scored[places[1] + 1], "{places:?}");
                }
                filler.extend(&sample.tokens[8..]);
            }
        }
        assert_eq!(filler.len(), 64, "every token is a filler where it is not a key");
    }

    #[test]
    fn power_law_asks_soon_and_uniform_anywhere() {
        let early = |gaps| {
            let task = MqarConfig { gaps, ..small(1, 40) }.build().unwrap();
            let set = task.eval_set("uniform", 2 + 2 * 127, 4000, 2).unwrap();
            set.iter().filter(|s| s.slices[0].1 <= 2 * 15).count()
        };
        // 15 of 127 slots hold 4 of 7 octaves, but 0.118 of the slots.
        assert!(early(Gaps::PowerLaw).abs_diff(2286) < 160);
        assert!(early(Gaps::Uniform).abs_diff(472) < 110);
    }

    #[test]
    fn slices_agree_with_the_tokens() {
        let task = small(3, 20).build().unwrap();
        for sample in task.eval_set("uniform", 30, 50, 3).unwrap() {
            let answers: Vec<usize> = (0..30).filter(|t| sample.scored[*t]).collect();
            assert_eq!(sample.slices, [("span", *answers.last().unwrap() as u32 - 1)]);
            let distances = answers.iter().map(|t| {
                let value = sample.tokens[..6].iter().rposition(|v| *v == sample.tokens[*t]);
                (t - value.unwrap()) as u32
            });
            assert_eq!(task.token_slices(&sample), [("distance", distances.collect())]);
        }
    }

    #[test]
    fn bad_settings_and_lengths_name_the_field() {
        let said = |pairs, vocab| small(pairs, vocab).build().unwrap_err().to_string();
        assert_eq!(said(4, 3), "mqar: vocab is 3, must be between 4 and 131072");
        assert_eq!(
            said(5, 10),
            "mqar: pairs is 5, must be between 1 and 4, the number of keys with vocab = 10"
        );
        assert!(said(0, 10).contains("pairs is 0"));
        let task = MqarConfig::default().build().unwrap();
        assert!(task.check_len(14).unwrap_err().to_string().contains("between 16 and"));
        assert!(task.check_len(17).unwrap_err().to_string().contains("even, such as 18"));
    }
}

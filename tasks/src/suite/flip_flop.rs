//! # Flip-flop: remember the last written bit, ignore the rest
//! ## What it asks of an encoding
//! Finding the latest `w` among any number of distractors. Attention by distance alone looks at the wrong position as
//! soon as distances differ from training; attention that counts writes instead of tokens is unaffected.
//!
//! ## Predicted order
//! CoPE before RoPE before learned absolute: Golovneva et al. 2024 report errors of 0, 1.8 and 6.8% in distribution and
//! 4.9, 20.3 and 21.7% on sparse sequences (4 layers, 4 heads, width 256). In that paper the spread over seeds is as
//! large as the differences.
//!
//! ## Definition
//! `FFL(T, p)` has `T` tokens (even): instructions at even positions, each followed by a bit. The first instruction is
//! `w`(rite), the last `r`(ead), the others are independent: `i`(gnore) with probability `p`, `w` and `r` with `(1 - p)
//! / 2` each. Bits after `w` and `i` are fair coins; the bit after `r` is the one after the latest `w`. Only bits after
//! reads are scored: all of them, or only the final one (`scored = "last-read"`). `len` is `T`. Training uses `p =
//! ignore`; the splits `sparse` and `dense` change only `p`.
//!
//! Settings: `ignore` 0.8, `ignore_sparse` 0.98, `ignore_dense` 0.1 (probabilities, the paper's values), `scored`
//! `all-reads` or `last-read`. Slices: `reads`, and `distance` in tokens from the bit that the final read recalls to
//! its answer. Slice of tokens: `read-distance`, this distance for each scored read. Chance: one half for the final
//! read; for all reads, the probability that every read recalls the guessed bit.
//!
//! ## Sample
//! ```text
//! w 0 i 1 i 1 i 1 i 0 i 0 i 0 w 0 r 0 i 1 i 1 r 0
//!                                   ^           ^
//! ```
//!
//! ## Source
//! Liu, Ash, Goel, Krishnamurthy, Zhang: Exposing Attention Glitches with Flip-Flop Language Modeling, 2023,
//! arXiv 2306.00946, section 3 and appendix B.2. Token ids as on the authors' data card (`synthseq/flipflop`).

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::Generator;
use crate::random::Weighted;
use crate::settings::settings;
use crate::task::{check_even, check_range, check_setting};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta, TokenSlice};

const WRITE: u32 = 0;
const READ: u32 = 1;
const ZERO: u32 = 3;

/// Selection of scored reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoredReads {
    /// Every bit after a read.
    AllReads,
    /// The final bit alone.
    LastRead,
}

settings! {
    /// Settings of flip-flop; the defaults are the paper's.
    pub struct FlipFlopConfig {
        /// Probability of `i` in training and in the split `in-distribution`.
        pub ignore: f64 = 0.8,
        /// Probability of `i` in the split `sparse`.
        pub ignore_sparse: f64 = 0.98,
        /// Probability of `i` in the split `dense`.
        pub ignore_dense: f64 = 0.1,
        /// Selection of scored reads.
        pub scored: ScoredReads = ScoredReads::AllReads,
    }
}

impl Generator for FlipFlopConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "flip-flop",
        label: "Flip-flop",
        summary: "Recall the last written bit among writes, reads and ignored bits.",
        source: "Liu et al. 2023, arXiv 2306.00946",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("flip_flop.rs");
    const SPLITS: &'static [Split] = &[
        Split::as_trained("in-distribution", "As many ignored bits as in training."),
        Split::shifted(
            "sparse",
            "Almost all bits are ignored, so that the last write is far back.",
        ),
        Split::shifted("dense", "Few bits are ignored, so that many writes and reads compete."),
    ];

    fn check(&self) -> Result<(), TaskError> {
        [
            ("ignore", self.ignore),
            ("ignore_sparse", self.ignore_sparse),
            ("ignore_dense", self.ignore_dense),
        ]
        .into_iter()
        .try_for_each(|(field, value)| check_setting(Self::META, field, value, &(0.0..=1.0)))
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![TokenGroup::Signs(&["w", "r", "i", "0", "1"])]
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(Self::META, len, 4, "the minimum fits one write and one read")?;
        check_even(Self::META, len, "each instruction has a bit")
    }

    fn sample(&self, split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let ignore = [self.ignore, self.ignore_sparse, self.ignore_dense][split];
        let other = (1.0 - ignore) / 2.0;
        let instructions = Weighted::new([other, other, ignore]);
        let mut tokens = Vec::with_capacity(len);
        let mut scored = vec![false; len];
        let mut stored = ZERO + (rng.next_u32() & 1);
        let mut written_at = 1;
        let mut reads = 1;
        tokens.extend([WRITE, stored]);
        for pair in 1..len / 2 - 1 {
            let (choice, coin) = instructions.draw(rng);
            let instruction = choice as u32;
            let mut bit = ZERO + coin;
            if instruction == READ {
                bit = stored;
                reads += 1;
                scored[2 * pair + 1] = self.scored == ScoredReads::AllReads;
            } else if instruction == WRITE {
                stored = bit;
                written_at = 2 * pair + 1;
            }
            tokens.extend([instruction, bit]);
        }
        tokens.extend([READ, stored]);
        scored[len - 1] = true;
        let distance = (len - 1 - written_at) as u32;
        Sample { tokens, scored, slices: vec![("reads", reads), ("distance", distance)] }
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        let mut written_at = 0;
        let mut distances = Vec::new();
        for (t, pair) in (1..).step_by(2).zip(sample.tokens.chunks(2)) {
            if pair[0] == WRITE {
                written_at = t;
            } else if sample.scored[t] {
                distances.push((t - written_at) as u32);
            }
        }
        vec![("read-distance", distances)]
    }

    /// Marks every instruction `w`.
    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        Some(sample.tokens.iter().map(|token| *token == WRITE).collect())
    }

    fn chance(&self) -> Option<f64> {
        (self.scored == ScoredReads::LastRead).then_some(0.5)
    }

    /// Chance level of the best guess, one bit for all reads, which must be the stored one at every read.
    fn chance_at(&self, len: usize) -> Option<f64> {
        if self.scored == ScoredReads::LastRead {
            return self.chance();
        }
        let other = (1.0 - self.ignore) / 2.0;
        // Probabilities that no read has failed so far and that the stored bit is the guessed one, or is not.
        let (mut same, mut differs) = (0.5, 0.5);
        for _ in 1..len / 2 - 1 {
            let written = (same + differs) * other / 2.0;
            same = same * (self.ignore + other) + written;
            differs = differs * self.ignore + written;
        }
        Some(same)
    }
}

/// Tests of flip-flop.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    const IGNORE: u32 = 2;

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 a9160368629fa70e5b6e0eff5c414d2baec019bce532cdc64ef1bec62831b9f8";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(FlipFlopConfig::default());
        let last = FlipFlopConfig { scored: ScoredReads::LastRead, ..FlipFlopConfig::default() };
        Example::synthetic(config, 24, oracle, GOLDEN)
            .with_chance_config(TaskConfig::from(last), 24)
    }

    /// Reads the whole prefix; after `r`, returns the bit after the last `w`.
    fn oracle(prefix: &[String]) -> Option<String> {
        assert_eq!(prefix.last()?, "r");
        let written = prefix.iter().rposition(|text| text == "w")?;
        prefix.get(written + 1).cloned()
    }

    fn rates(split: &str) -> [f64; 3] {
        let task = FlipFlopConfig::default().build().unwrap();
        let mut counts = [0_u32; 3];
        for sample in task.eval_set(split, 512, 400, 1).unwrap() {
            for instruction in sample.tokens[2..510].iter().step_by(2) {
                counts[*instruction as usize] += 1;
            }
        }
        counts.map(|c| f64::from(c) / f64::from(counts.iter().sum::<u32>()))
    }

    #[test]
    fn instructions_follow_the_probabilities_of_their_split() {
        for (split, ignore) in [("in-distribution", 0.8), ("sparse", 0.98), ("dense", 0.1)] {
            let [write, read, ignored] = rates(split);
            // 101,600 draws: the standard deviation is below 0.0016.
            assert!((ignored - ignore).abs() < 0.006, "{split}: {ignored}");
            assert!((write - read).abs() < 0.012, "{split}: {write} {read}");
        }
    }

    #[test]
    fn expected_reads_are_those_of_the_paper() {
        let task = FlipFlopConfig::default().build().unwrap();
        for (split, expected) in [("in-distribution", 26.4), ("dense", 115.3), ("sparse", 3.54)] {
            let samples = task.eval_set(split, 512, 1000, 2).unwrap();
            let reads: u32 = samples.iter().map(|s| s.slices[0].1).sum();
            let mean = f64::from(reads) / 1000.0;
            assert!((mean - expected).abs() < 0.05 * expected, "{split}: {mean}");
        }
    }

    #[test]
    fn slices_agree_with_the_tokens() {
        let task = FlipFlopConfig::default().build().unwrap();
        for sample in task.eval_set("dense", 40, 50, 3).unwrap() {
            let instructions = || sample.tokens.iter().step_by(2);
            let reads = instructions().filter(|t| **t == READ).count();
            let written = instructions().rposition(|t| *t == WRITE).unwrap();
            let distance = sample.tokens.len() - 2 - 2 * written;
            let expected = vec![("reads", reads as u32), ("distance", distance as u32)];
            assert_eq!(sample.slices, expected);
        }
    }

    #[test]
    fn every_read_has_its_distance() {
        for scored in [ScoredReads::AllReads, ScoredReads::LastRead] {
            let config = FlipFlopConfig { scored, ..FlipFlopConfig::default() };
            let task = config.build().unwrap();
            for sample in task.eval_set("dense", 40, 50, 3).unwrap() {
                let [(name, distances)] = &task.token_slices(&sample)[..] else { panic!() };
                assert_eq!(*name, "read-distance");
                let asked: Vec<usize> = (0..40).filter(|t| sample.scored[*t]).collect();
                assert_eq!(asked.len(), distances.len());
                for (t, distance) in asked.iter().zip(distances) {
                    let written = t - *distance as usize;
                    assert_eq!((sample.tokens[written - 1], sample.tokens[t - 1]), (WRITE, READ));
                    assert_eq!(sample.tokens[written], sample.tokens[*t]);
                    let between = &sample.tokens[written + 1..*t];
                    assert!(between.iter().step_by(2).all(|instruction| *instruction != WRITE));
                }
                assert_eq!(distances.last(), Some(&sample.slices[1].1));
            }
        }
    }

    #[test]
    fn last_read_scores_the_final_bit_only_and_chance_is_one_half() {
        let config = FlipFlopConfig { scored: ScoredReads::LastRead, ..FlipFlopConfig::default() };
        let task = config.build().unwrap();
        assert_eq!(task.chance(), Some(0.5));
        let samples = task.eval_set("dense", 32, 2000, 4).unwrap();
        for sample in &samples {
            assert_eq!(sample.scored.iter().rposition(|s| *s), Some(31));
            assert_eq!(sample.scored.iter().filter(|s| **s).count(), 1);
        }
        let ones = samples.iter().filter(|s| s.tokens[31] == ZERO + 1).count();
        assert!(ones.abs_diff(1000) < 110, "{ones}");
    }

    /// The shared check guesses a whole answer; here the number of reads is known and one bit is guessed for all.
    #[test]
    fn chance_with_all_reads_is_what_one_bit_throughout_gets() {
        let task = FlipFlopConfig::default().build().unwrap();
        for (len, least) in [(4, 0.49), (24, 0.2), (128, 0.01)] {
            let chance = task.chance_at(len).unwrap();
            let set = task.eval_set("in-distribution", len, 20_000, 6).unwrap();
            let all_zero = |s: &&Sample| (0..len).all(|t| !s.scored[t] || s.tokens[t] == ZERO);
            let rate = set.iter().filter(all_zero).count() as f64 / 20_000.0;
            let tolerance = 5.0 * (chance * (1.0 - chance) / 20_000.0).sqrt();
            assert!((rate - chance).abs() < tolerance && chance > least, "{len}: {rate} {chance}");
        }
        assert_eq!(task.chance(), None);
    }

    #[test]
    fn certain_and_impossible_instructions_are_allowed() {
        let config = FlipFlopConfig { ignore: 1.0, ignore_dense: 0.0, ..FlipFlopConfig::default() };
        let task = config.build().unwrap();
        let all = task.eval_set("in-distribution", 64, 20, 5).unwrap();
        assert!(all.iter().all(|s| s.slices == [("reads", 1), ("distance", 62)]));
        let none = task.eval_set("dense", 64, 20, 5).unwrap();
        assert!(none.iter().all(|s| !s.tokens.contains(&IGNORE)));
    }

    #[test]
    fn bad_settings_and_lengths_name_the_field() {
        for (json, field) in [
            (r#"{"ignore": 1.5}"#, "ignore is 1.5"),
            (r#"{"ignore_sparse": -0.1}"#, "ignore_sparse is -0.1"),
            (r#"{"ignore_dense": 2}"#, "ignore_dense is 2.0"),
        ] {
            let config: FlipFlopConfig = serde_json::from_str(json).unwrap();
            let said = config.build().unwrap_err().to_string();
            assert_eq!(said, format!("flip-flop: {field}, must be between 0.0 and 1.0"));
        }
        let task = FlipFlopConfig::default().build().unwrap();
        assert!(task.check_len(7).unwrap_err().to_string().contains("must be even, such as 8"));
        assert!(task.check_len(2).unwrap_err().to_string().contains("between 4 and"));
    }

    #[test]
    fn writes_are_what_is_counted() {
        let task = FlipFlopConfig::default().build().unwrap();
        for sample in task.eval_set("dense", 32, 20, 5).unwrap() {
            let counted = task.counted(&sample).unwrap();
            let texts = sample.tokens.iter().map(|token| task.token_text(*token));
            assert!(texts.zip(&counted).all(|(text, counted)| *counted == (text == "w")));
            assert!(counted[0], "the first instruction is a write");
        }
    }
}

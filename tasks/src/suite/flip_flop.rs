//! # Flip-flop: remember the last written bit, ignore the rest
//! ## What it asks of an encoding
//! Finding the latest `w` among any number of distractors. Attention by distance alone looks at the wrong position as
//! soon as distances differ from training; attention that counts writes instead of tokens is unaffected.
//!
//! ## Predicted order
//! CoPE before RoPE before learned absolute: Golovneva et al. 2024 report errors of 0, 1.8 and 6.8% in distribution
//! and 4.9, 20.3 and 21.7% on sparse sequences (4 layers, 4 heads, width 256; the spread over seeds is as large as the
//! differences there).
//!
//! ## Definition
//! `FFL(T, p)` has `T` tokens (even): instructions at even positions, each followed by a bit. The first instruction is
//! `w`(rite), the last `r`(ead), the others are independent: `i`(gnore) with probability `p`, `w` and `r` with
//! `(1 - p) / 2` each. Bits after `w` and `i` are fair coins; the bit after `r` is the one after the latest `w`.
//! Only bits after reads are scored: all of them, or (`scored = "last-read"`) the final one. `len` is `T`. Training
//! uses `p = ignore`; the splits `sparse` and `dense` change `p` alone.
//!
//! Settings: `ignore` 0.8, `ignore_sparse` 0.98, `ignore_dense` 0.1 (probabilities, the paper's values),
//! `scored` `all-reads` or `last-read`. Slices: `reads`, and `distance` in tokens from the bit that the final read
//! recalls to its answer. Slice of tokens: `read-distance`, the same for each scored read. Chance: one half for the
//! final read; for all reads the probability that every one of them recalls the guessed bit.
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

/// Settings of flip-flop; the defaults are the paper's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlipFlopConfig {
    /// Probability of `i` in training and in the split `in-distribution`.
    pub ignore: f64,
    /// Probability of `i` in the split `sparse`.
    pub ignore_sparse: f64,
    /// Probability of `i` in the split `dense`.
    pub ignore_dense: f64,
    /// Selection of scored reads.
    pub scored: ScoredReads,
}

impl Default for FlipFlopConfig {
    fn default() -> Self {
        Self { ignore: 0.8, ignore_sparse: 0.98, ignore_dense: 0.1, scored: ScoredReads::AllReads }
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
        check_range(Self::META, len, 4, "one write and one read")?;
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

#[cfg(test)]
pub(crate) mod tests;

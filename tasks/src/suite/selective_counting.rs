//! # Selective counting: count the tokens of the named classes
//! ## What it asks of an encoding
//! Reading which classes are meant, counting only these among noise, and writing the number. Positions must advance
//! with what an instruction names, not with tokens and not with a fixed kind of token.
//!
//! ## Predicted order
//! CoPE, which counts what its gates select, before all others in distribution. At twice the length a replication finds
//! no gain: the share of correct answers of RoPE is 93.2% at 1024 tokens, the trained length, and 45.2% at 2048 tokens.
//! CoPE has 94.8% and 45.6%. In the replication each number is one token, and most numbers at 2048 never occurred in
//! training.
//!
//! ## Definition
//! `count A and B | ... ? n`: `targets` classes, uniform in `min_targets ..= max_targets` and all different; then
//! content, each token of which is one of `classes` with probability `object_rate` and otherwise one of `noise`
//! symbols; then `?` and the number of targets in the content. `answer = "number"`: one token for each number from 0 to
//! `max_count`; after that many targets, noise replaces further targets, and lengths at which this would be usual are
//! errors. `"digits"`: decimal digits, the most significant first, and `.`. The answer is scored. `len` counts all
//! tokens (with `digits`, short answers leave some of them unused): in training it is uniform in `min_len ..= len`, in
//! evaluation it is exactly `len`.
//!
//! Settings: `classes` 10 (1 to 26), `min_targets` 1, `max_targets` 2, `object_rate` 0.5, `noise` 4800 (1 to 65536),
//! `answer` `number`, `max_count` 999 (1 to 65536), `first_token` false (whether `^` precedes the instruction),
//! `shared_tokens` 0 (this many of the highest numbers share the tokens of `n0`, `n1` and so on; 0 with `digits`).
//! These are the values of the hard mode. A small variant has `classes` 4, `noise` 8, `max_count` 64 at `len` 64
//! (`SelectiveCountingConfig::small`). `min_len` is the shortest training length (left out: the shortest that fits; the
//! replication trains at one length, `min_len` = `len`). Slices: `count` and `targets`. Chance: the share of the most
//! frequent answer among simulated samples.
//!
//! ## Sample
//! ```text
//! count C and A | n5 n0 D n4 D n7 D n1 D n6 C n2 D n5 A n3 n4 n7 n6 ? 2
//!                                                                     ^
//! ```
//!
//! ## Source
//! The replication `JiaVMode/CoPE-vs-RoPE` (`src/data_gen.py` at 0967c75, "hard mode": vocabulary 5000, 10 classes, 1
//! or 2 targets, half of the content are objects). In the replication a first token precedes the instruction, and the
//! numbers from 100 on share the tokens of the noise, which starts 100 ids after the numbers: `first_token = true`,
//! `max_count = 4899`, `shared_tokens = 4800`. The defaults have no first token and no shared tokens.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generator, simulated_chance};
use crate::random::{Weighted, below, distinct};
use crate::settings::{is_default, settings};
use crate::task::{MAX_LEN, check_between, check_range, check_setting, invalid_len};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta};

/// Signs, from the first id after the classes.
const SIGNS: &[&str] = &["count", "and", "|", "?", "."];
const DIGITS: u32 = 10;
/// Token before the instruction, the last id.
const FIRST: &[&str] = &["^"];

/// Format of the number in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NumberFormat {
    /// One token for each number.
    Number,
    /// Decimal digits, most significant first.
    Digits,
}

settings! {
    /// Settings of selective counting; the defaults are those of the hard mode. Token ids: the classes, the signs, the
    /// noise, the numbers or digits that share no token, the first token.
    pub struct SelectiveCountingConfig {
        /// Classes of objects, 1 to 26.
        pub classes: u32 = 10,
        /// Fewest classes that an instruction names.
        pub min_targets: u32 = 1,
        /// Most classes that an instruction names.
        pub max_targets: u32 = 2,
        /// Probability that a token of the content is an object.
        pub object_rate: f64 = 0.5,
        /// Kinds of noise, 1 to 65536.
        pub noise: u32 = 4800,
        /// Format of the number in the answer.
        pub answer: NumberFormat = NumberFormat::Number,
        /// Highest number that has a token, 1 to 65536; without effect for `answer = "digits"`.
        pub max_count: u32 = 999,
        /// Whether a fixed token precedes the instruction.
        #[serde(skip_serializing_if = "is_default")]
        pub first_token: bool = false,
        /// How many of the highest numbers have the tokens of the first kinds of noise, in order; at most all but one.
        #[serde(skip_serializing_if = "is_default")]
        pub shared_tokens: u32 = 0,
        /// Shortest training length; `None`: the shortest length that fits.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub min_len: Option<usize> = None,
    }
}

impl SelectiveCountingConfig {
    /// Returns small settings for lengths around 64.
    pub fn small() -> Self {
        Self { classes: 4, noise: 8, max_count: 64, ..Self::default() }
    }

    fn sign(&self, number: u32) -> u32 {
        self.classes + number
    }

    fn first_noise(&self) -> u32 {
        self.classes + SIGNS.len() as u32
    }

    fn first_number(&self) -> u32 {
        self.first_noise() + self.noise
    }

    /// Number of numbers or digits with tokens of their own.
    fn numbers(&self) -> u32 {
        match self.answer {
            NumberFormat::Number => self.max_count + 1 - self.shared_tokens,
            NumberFormat::Digits => DIGITS,
        }
    }

    /// Upper bound of the tokens in an answer at this length.
    fn answer_room(&self, len: usize) -> usize {
        match self.answer {
            NumberFormat::Number => 1,
            // As many digits as the length itself, and the full stop.
            NumberFormat::Digits => len.max(1).ilog10() as usize + 2,
        }
    }

    /// Number of tokens of instruction, question and answer.
    fn overhead(&self, targets: usize, len: usize) -> usize {
        usize::from(self.first_token) + 2 * targets + 2 + self.answer_room(len)
    }

    /// Shortest length with content for every instruction.
    fn shortest(&self) -> usize {
        let fits = |len: &usize| *len > self.overhead(self.max_targets as usize, *len);
        (1..=MAX_LEN).find(fits).unwrap_or(MAX_LEN)
    }

    /// Appends the content and counts the targets in it.
    fn draw_content(
        &self,
        targets: &[u32],
        tokens_of_content: usize,
        tokens: &mut Vec<u32>,
        rng: &mut ChaCha8Rng,
    ) -> u32 {
        let Self { classes, noise, answer, max_count, .. } = *self;
        let objects = Weighted::new([self.object_rate, 1.0 - self.object_rate]);
        let most = if answer == NumberFormat::Number { max_count } else { u32::MAX };
        // At most 26 classes: a bit for each target.
        let wanted = targets.iter().fold(0_u32, |bits, target| bits | 1 << target);
        let mut count = 0;
        tokens.extend((0..tokens_of_content).map(|_| {
            let (choice, _) = objects.draw(rng);
            if choice == 0 {
                let class = below(rng, classes);
                let hit = wanted >> class & 1;
                if hit == 0 || count < most {
                    count += hit;
                    return class;
                }
            }
            self.first_noise() + below(rng, noise)
        }));
        count
    }

    fn push_number(&self, count: u32, tokens: &mut Vec<u32>) {
        match self.answer {
            NumberFormat::Number => tokens.push(match count.checked_sub(self.numbers()) {
                Some(noise) => self.first_noise() + noise,
                None => self.first_number() + count,
            }),
            NumberFormat::Digits => {
                let digits = count.checked_ilog10().unwrap_or(0);
                let digit = |place| count / 10_u32.pow(place) % 10;
                tokens.extend((0..=digits).rev().map(|place| self.first_number() + digit(place)));
                tokens.push(self.sign(4));
            }
        }
    }
}

impl Generator for SelectiveCountingConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "selective-counting",
        label: "Selective counting",
        version: 2,
        summary: "Count the objects that an instruction names.",
        source: "JiaVMode/CoPE-vs-RoPE, after Golovneva et al. 2024",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("selective_counting.rs");
    const SPLITS: &'static [Split] = &[Split::as_trained(
        "in-distribution",
        "Instructions and content as in training, of exactly the given length.",
    )];

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "classes", self.classes, &(1..=26))?;
        check_setting(Self::META, "object_rate", self.object_rate, &(0.0..=1.0))?;
        check_setting(Self::META, "noise", self.noise, &(1..=1 << 16))?;
        check_setting(Self::META, "max_count", self.max_count, &(1..=1 << 16))?;
        let (most, why) = match self.answer {
            NumberFormat::Number => {
                (self.noise.min(self.max_count), "the smaller of `noise` and `max_count`")
            }
            NumberFormat::Digits => (0, "because digits have separate tokens"),
        };
        check_between(Self::META, "shared_tokens", self.shared_tokens, &(0..=most), why)?;
        let Self { classes, min_targets, max_targets, .. } = *self;
        let why = "the value of `classes`";
        check_between(Self::META, "max_targets", max_targets, &(1..=classes), why)?;
        let why = "the value of `max_targets`";
        check_between(Self::META, "min_targets", min_targets, &(1..=max_targets), why)?;
        let Some(min_len) = self.min_len else { return Ok(()) };
        check_setting(Self::META, "min_len", min_len, &(self.shortest()..=MAX_LEN))
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![
            TokenGroup::Letters('A', self.classes),
            TokenGroup::Signs(SIGNS),
            TokenGroup::Numbered("n", self.noise),
            TokenGroup::Numbered("", self.numbers()),
            TokenGroup::Signs(if self.first_token { FIRST } else { &[] }),
        ]
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        let Self { classes, max_targets, object_rate, answer, max_count, .. } = *self;
        let overhead = self.overhead(max_targets as usize, len);
        let shortest = self.shortest();
        let why = "the minimum fits the longest instruction, one token and the answer";
        check_range(Self::META, len, shortest, why)?;
        check_range(Self::META, len, self.min_len.unwrap_or(shortest), "min_len sets the minimum")?;
        let rate = object_rate * f64::from(max_targets) / f64::from(classes);
        let usual = (len - overhead) as f64 * rate;
        if answer == NumberFormat::Digits || usual <= f64::from(max_count) {
            return Ok(());
        }
        let most = (f64::from(max_count) / rate) as usize + overhead;
        let expected = format!(
            "at most {most} tokens, because the expected count in longer sequences is above max_count, \
             {max_count}; raise max_count, or set answer = \"digits\""
        );
        Err(invalid_len(Self::META, len, expected))
    }

    fn min_train_len(&self) -> Option<usize> {
        Some(self.min_len.unwrap_or_else(|| self.shortest()))
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let Self { classes, min_targets, max_targets, .. } = *self;
        let named = min_targets + below(rng, max_targets - min_targets + 1);
        let targets = distinct(rng, named as usize, classes);
        let mut tokens = Vec::with_capacity(len);
        if self.first_token {
            tokens.push(self.first_number() + self.numbers());
        }
        for (place, target) in targets.iter().enumerate() {
            tokens.extend([self.sign(u32::from(place > 0)), *target]);
        }
        tokens.push(self.sign(2));
        let content = len - self.overhead(named as usize, len);
        let count = self.draw_content(&targets, content, &mut tokens, rng);
        tokens.push(self.sign(3));
        let asked_from = tokens.len();
        self.push_number(count, &mut tokens);
        Sample::scored_from(asked_from, tokens, vec![("count", count), ("targets", named)])
    }

    /// Marks the objects of the named classes after the instruction.
    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        let tokens = &sample.tokens;
        let first = usize::from(self.first_token);
        let content = tokens.iter().position(|token| *token == self.sign(2))?;
        let targets = tokens[..content].iter().skip(first + 1).step_by(2).collect::<Vec<_>>();
        let mark = |(t, token): (usize, &u32)| t > content && targets.contains(&token);
        Some(tokens.iter().enumerate().map(mark).collect())
    }

    /// Room for one more digit of the answer can take the place of content.
    fn has_trained_size(&self, sample: &Sample, _len: usize, train_len: usize) -> bool {
        let place = |sign| sample.tokens.iter().position(|token| *token == self.sign(sign));
        let [_, (_, targets)] = sample.slices[..] else { return false };
        let most = train_len.saturating_sub(self.overhead(targets as usize, train_len));
        place(2).zip(place(3)).is_some_and(|(from, to)| to - from - 1 <= most)
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        Some(simulated_chance(self, len))
    }
}

#[cfg(test)]
pub(crate) mod tests;

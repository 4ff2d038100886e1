//! # Selective counting: how many of these?
//! ## What it asks of an encoding
//! To read which classes are meant, to count these and no others among noise, and to say the number: positions that
//! advance with what an instruction names, not with tokens and not with a fixed kind of token.
//!
//! ## Predicted order
//! CoPE, which counts what its gates select, before all others in distribution. At twice the length a replication
//! finds no gain: RoPE 93.2 and then 45.2 % right, CoPE 94.8 and 45.6 % (1024 trained, 2048 tested; each number of the
//! answer is a token of its own, and most numbers at 2048 were never seen).
//!
//! ## Definition
//! `count A and B | ... ? n`: `targets` classes, uniform in `min_targets ..= max_targets` and all different; then
//! content, each token of which is one of `classes` with probability `object_rate` and otherwise one of `noise`
//! symbols; then `?` and the number of targets in the content. `answer = "number"`: one token for each number from 0 to
//! `max_count`; where that many are reached, noise takes the place of further targets, and lengths at which that would
//! be usual are refused. `"digits"`: decimal digits, the most significant first, and `.`. The answer is scored. `len`
//! counts all tokens (with `digits`, short answers leave some of them unused).
//!
//! Settings: `classes` 10 (1 to 26), `min_targets` 1, `max_targets` 2, `object_rate` 0.5, `noise` 4800 (1 to 65536),
//! `answer` `number`, `max_count` 999 (1 to 65536). These are the hard mode; small are `classes` 4, `noise` 8,
//! `max_count` 64 at `len` 64 (`SelectiveCountingConfig::small`). Slices: `count` and `targets`. Chance: the share of
//! the commonest answer among samples drawn for the purpose.
//!
//! ## Sample
//! ```text
//! count C and D | C n4 A n4 n3 n6 n3 n7 B n7 n3 n4 A n4 n0 D C n4 n4 n6 n0 n6 n0
//! n4 n7 n5 n4 n5 n3 ? 3
//!                     ^
//! ```
//!
//! ## Source
//! The replication `JiaVMode/CoPE-vs-RoPE` (`src/data_gen.py`, "hard mode": vocabulary 5000, 10 classes, 1 or 2
//! targets, half of the content objects). There noise and numbers share tokens and a first token stands before the
//! instruction; not so here.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generated, Generator, simulated_chance};
use crate::random::{Weighted, below, distinct};
use crate::task::{check_range, check_setting, invalid};
use crate::{Headline, Sample, Split, TaskError, TaskMeta};

/// What is true of selective counting whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "selective-counting",
    label: "Selective counting",
    version: 1,
    headline: Headline::ExactMatch,
    len_unit: "tokens",
    summary: "Count the objects that an instruction names.",
    source: "JiaVMode/CoPE-vs-RoPE, after Golovneva et al. 2024",
    takes_path: false,
};

const SPLITS: &[Split] = &[Split {
    name: "in-distribution",
    in_distribution: true,
    about: "Instructions and content as in training, of exactly the given length.",
}];

/// `count`, `and`, `|`, `?`, `.`, from the first id after the classes.
const SIGNS: [&str; 5] = ["count", "and", "|", "?", "."];
const DIGITS: u32 = 10;

/// How the number is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// One token for each number.
    Number,
    /// Decimal digits.
    Digits,
}

/// Settings; the defaults are those of the hard mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelectiveCountingConfig {
    /// Classes of objects, 1 to 26.
    pub classes: u32,
    /// Fewest classes that an instruction names.
    pub min_targets: u32,
    /// Most classes that an instruction names.
    pub max_targets: u32,
    /// Probability that a token of the content is an object.
    pub object_rate: f64,
    /// Kinds of noise, 1 to 65536.
    pub noise: u32,
    /// How the number is said.
    pub answer: Answer,
    /// Highest number that has a token, 1 to 65536; of no effect with `answer = "digits"`.
    pub max_count: u32,
}

impl Default for SelectiveCountingConfig {
    fn default() -> Self {
        Self {
            classes: 10,
            min_targets: 1,
            max_targets: 2,
            object_rate: 0.5,
            noise: 4800,
            answer: Answer::Number,
            max_count: 999,
        }
    }
}

impl SelectiveCountingConfig {
    /// Sizes for a processor: lengths about 64.
    pub fn small() -> Self {
        Self { classes: 4, noise: 8, max_count: 64, ..Self::default() }
    }

    /// Checks the settings and makes the task.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] for a setting out of range.
    pub fn build(&self) -> Result<Generated<SelectiveCounting>, TaskError> {
        check_setting(&META, "classes", self.classes, &(1..=26))?;
        check_setting(&META, "object_rate", self.object_rate, &(0.0..=1.0))?;
        check_setting(&META, "noise", self.noise, &(1..=1 << 16))?;
        check_setting(&META, "max_count", self.max_count, &(1..=1 << 16))?;
        if !(1..=self.classes).contains(&self.max_targets) {
            let expected = format!("between 1 and {}, the setting classes", self.classes);
            return Err(invalid(&META, "max_targets", &self.max_targets, expected));
        }
        if !(1..=self.max_targets).contains(&self.min_targets) {
            let expected = format!("between 1 and {}, the setting max_targets", self.max_targets);
            return Err(invalid(&META, "min_targets", &self.min_targets, expected));
        }
        Ok(Generated(SelectiveCounting {
            objects: Weighted::new([self.object_rate, 1.0 - self.object_rate]),
            settings: self.clone(),
        }))
    }
}

/// The selective counting task. Token ids: the classes, the signs, the noise, the numbers or digits.
#[derive(Debug, Clone)]
pub struct SelectiveCounting {
    settings: SelectiveCountingConfig,
    objects: Weighted<2>,
}

impl SelectiveCounting {
    fn sign(&self, number: u32) -> u32 {
        self.settings.classes + number
    }

    fn first_noise(&self) -> u32 {
        self.settings.classes + SIGNS.len() as u32
    }

    fn first_number(&self) -> u32 {
        self.first_noise() + self.settings.noise
    }

    fn numbers(&self) -> u32 {
        match self.settings.answer {
            Answer::Number => self.settings.max_count + 1,
            Answer::Digits => DIGITS,
        }
    }

    /// Tokens that an answer may need at this length.
    fn answer_room(&self, len: usize) -> usize {
        match self.settings.answer {
            Answer::Number => 1,
            // As many digits as the length itself, and the full stop.
            Answer::Digits => len.max(1).ilog10() as usize + 2,
        }
    }

    /// Tokens that are not content: instruction, question, answer.
    fn overhead(&self, targets: usize, len: usize) -> usize {
        2 * targets + 2 + self.answer_room(len)
    }

    /// Appends the content and counts the targets in it.
    fn draw_content(
        &self,
        targets: &[u32],
        tokens_of_content: usize,
        tokens: &mut Vec<u32>,
        rng: &mut ChaCha8Rng,
    ) -> u32 {
        let SelectiveCountingConfig { classes, noise, answer, max_count, .. } = self.settings;
        let most = if answer == Answer::Number { max_count } else { u32::MAX };
        // At most 26 classes: a bit for each target.
        let wanted = targets.iter().fold(0_u32, |bits, target| bits | 1 << target);
        let mut count = 0;
        tokens.extend((0..tokens_of_content).map(|_| {
            let (choice, _) = self.objects.draw(rng);
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

    fn say(&self, count: u32, tokens: &mut Vec<u32>) {
        match self.settings.answer {
            Answer::Number => tokens.push(self.first_number() + count),
            Answer::Digits => {
                let digits = count.checked_ilog10().unwrap_or(0);
                let digit = |place| count / 10_u32.pow(place) % 10;
                tokens.extend((0..=digits).rev().map(|place| self.first_number() + digit(place)));
                tokens.push(self.sign(4));
            }
        }
    }
}

impl Generator for SelectiveCounting {
    const META: &'static TaskMeta = &META;

    fn splits(&self) -> &'static [Split] {
        SPLITS
    }

    fn vocab_size(&self) -> usize {
        (self.first_number() + self.numbers()) as usize
    }

    fn token_text(&self, token: u32) -> String {
        let sign = token.checked_sub(self.settings.classes);
        match (token.checked_sub(self.first_number()), token.checked_sub(self.first_noise()), sign)
        {
            (Some(number), ..) if number < self.numbers() => number.to_string(),
            (Some(_), ..) => "?".to_owned(),
            (None, Some(noise), _) => format!("n{noise}"),
            (None, None, Some(sign)) => SIGNS[sign as usize].to_owned(),
            (None, None, None) => char::from_u32(u32::from('A') + token).unwrap_or('?').to_string(),
        }
    }

    fn max_tokens(&self, len: usize) -> usize {
        len
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        let SelectiveCountingConfig {
            classes, max_targets, object_rate, answer, max_count, ..
        } = self.settings;
        let overhead = self.overhead(max_targets as usize, len);
        check_range(&META, len, overhead + 1, "the longest instruction, one token, the answer")?;
        let rate = object_rate * f64::from(max_targets) / f64::from(classes);
        let usual = (len - overhead) as f64 * rate;
        if answer == Answer::Digits || usual <= f64::from(max_count) {
            return Ok(());
        }
        let most = (f64::from(max_count) / rate) as usize + overhead;
        Err(TaskError::InvalidLen {
            task: META.id,
            len,
            expected: format!(
                "at most {most} tokens, beyond which the usual count is above max_count \
                 {max_count}; raise max_count or use answer = \"digits\""
            ),
        })
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let SelectiveCountingConfig { classes, min_targets, max_targets, .. } = self.settings;
        let named = min_targets + below(rng, max_targets - min_targets + 1);
        let targets = distinct(rng, named as usize, classes);
        let mut tokens = Vec::with_capacity(len);
        for (place, target) in targets.iter().enumerate() {
            tokens.extend([self.sign(u32::from(place > 0)), *target]);
        }
        tokens.push(self.sign(2));
        let content = len - self.overhead(named as usize, len);
        let count = self.draw_content(&targets, content, &mut tokens, rng);
        tokens.push(self.sign(3));
        let asked_from = tokens.len();
        self.say(count, &mut tokens);
        Sample::scored_from(asked_from, tokens, vec![("count", count), ("targets", named)])
    }

    /// The objects of the named classes, behind the instruction.
    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        let tokens = &sample.tokens;
        let content = tokens.iter().position(|token| *token == self.sign(2))?;
        let targets = tokens[..content].iter().skip(1).step_by(2).collect::<Vec<_>>();
        let mark = |(t, token): (usize, &u32)| t > content && targets.contains(&token);
        Some(tokens.iter().enumerate().map(mark).collect())
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        Some(simulated_chance(self, len))
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! # Needle: which of the numbers?
//! ## What it asks of an encoding
//! To find one of several statements by its name, at any distance, among filler that cannot be predicted and among
//! other statements of the same form; then to copy its number.
//!
//! ## Predicted order
//! As in passkey, with more weight on content: NoPE and encodings that keep content and position apart before RoPE
//! beyond the trained lengths; ALiBi only for what is near. More needles cost all of them (Hsieh et al. 2024).
//!
//! ## Definition
//! Filler, with `needles` statements `name = d1 ... dn ;` at uniform places in it, names all different; then, for each
//! of `queries` needles in random order, `? name = d1 ... dn ;`, of which the digits and the `;` are scored. Digits
//! are independent and uniform. The filler is random words (`words`) or five short sentences over and over
//! (`sentences`). `len` counts all tokens.
//!
//! Settings: `needles` 2, `queries` 1 (at most `needles`), `digits` 2 (1 to 18), `names` 64 (2 to 65536), `filler`
//! `words`. Slices, of the needle asked for first: `depth`, the tenth of the filler in which it stands (0 first, 9
//! last), and `distance` in tokens from a digit to its copy. Slice of tokens: `query`, 0 on. Chance: 10 to the power
//! of minus `digits * queries`.
//!
//! ## Sample
//! ```text
//! is n41 = 7 4 ; row wet wet loud we we on rope we row n45 = 5 6 ; is rope row
//! row rings rope rope a are ? n41 = 7 4 ;
//!                                   ^ ^ ^
//! ```
//!
//! ## Source
//! Hsieh et al.: RULER, 2024, arXiv 2404.06654, tasks `niah_single`, `niah_multikey` and `niah_multiquery` (1 or 4
//! needles, numbers of 7 digits). Theirs is English for trained language models; here words are tokens, so that a
//! small model learns the task from nothing.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generated, Generator};
use crate::haystack::{FILLER_TOKENS, Filler, draw_digits, filler_text, hide};
use crate::random::distinct;
use crate::task::{check_range, check_setting, invalid};
use crate::{Headline, Sample, Split, TaskError, TaskMeta, TokenSlice};

/// What is true of needle whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "needle",
    label: "Needle in a haystack",
    version: 1,
    headline: Headline::ExactMatch,
    len_unit: "tokens",
    summary: "Find the number of a name among others in endless filler.",
    source: "Hsieh et al. 2024 (RULER), arXiv 2404.06654",
    takes_path: false,
};

const SPLITS: &[Split] = &[Split {
    name: "uniform",
    in_distribution: true,
    about: "The needles at uniform places of the filler.",
}];

const ASK: u32 = FILLER_TOKENS;
const EQUALS: u32 = FILLER_TOKENS + 1;
const END: u32 = FILLER_TOKENS + 2;
const ZERO: u32 = FILLER_TOKENS + 3;
const NAME: u32 = ZERO + 10;

/// Settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NeedleConfig {
    /// Statements in the filler, 1 to `names`.
    pub needles: u32,
    /// How many of them are asked for, 1 to `needles`.
    pub queries: u32,
    /// Digits of each number, 1 to 18.
    pub digits: u32,
    /// How many names there are, 2 to 65536.
    pub names: u32,
    /// What stands around the needles.
    pub filler: Filler,
}

impl Default for NeedleConfig {
    fn default() -> Self {
        Self { needles: 2, queries: 1, digits: 2, names: 64, filler: Filler::Words }
    }
}

impl NeedleConfig {
    /// Checks the settings and makes the task.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] for a setting out of range.
    pub fn build(&self) -> Result<Generated<Needle>, TaskError> {
        check_setting(&META, "digits", self.digits, &(1..=18))?;
        check_setting(&META, "names", self.names, &(2..=1 << 16))?;
        if !(1..=self.names).contains(&self.needles) {
            let expected = format!("between 1 and {}, the setting names", self.names);
            return Err(invalid(&META, "needles", &self.needles, expected));
        }
        if !(1..=self.needles).contains(&self.queries) {
            let expected = format!("between 1 and {}, the setting needles", self.needles);
            return Err(invalid(&META, "queries", &self.queries, expected));
        }
        Ok(Generated(Needle { settings: self.clone() }))
    }
}

/// The needle task. Token ids: the filler's words, `?`, `=`, `;`, the digits, the names.
#[derive(Debug, Clone)]
pub struct Needle {
    settings: NeedleConfig,
}

impl Needle {
    /// All statements and questions.
    fn own_tokens(&self) -> usize {
        let NeedleConfig { needles, queries, digits, .. } = self.settings;
        let statement = digits as usize + 3;
        needles as usize * statement + queries as usize * (statement + 1)
    }
}

impl Generator for Needle {
    const META: &'static TaskMeta = &META;

    fn splits(&self) -> &'static [Split] {
        SPLITS
    }

    fn vocab_size(&self) -> usize {
        (NAME + self.settings.names) as usize
    }

    fn token_text(&self, token: u32) -> String {
        match token {
            ASK => "?".to_owned(),
            EQUALS => "=".to_owned(),
            END => ";".to_owned(),
            ZERO..NAME => (token - ZERO).to_string(),
            _ if (NAME..NAME + self.settings.names).contains(&token) => {
                format!("n{}", token - NAME)
            }
            _ => filler_text(token).unwrap_or_else(|| "?".to_owned()),
        }
    }

    fn max_tokens(&self, len: usize) -> usize {
        len
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(&META, len, self.own_tokens(), "the needles and the questions without filler")
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let NeedleConfig { needles, queries, digits, names, filler } = self.settings;
        let drawn = distinct(rng, needles as usize, names);
        let statements: Vec<Vec<u32>> = drawn
            .into_iter()
            .map(|name| {
                let mut statement = vec![NAME + name, EQUALS];
                statement.extend(draw_digits(ZERO, digits, rng));
                statement.push(END);
                statement
            })
            .collect();
        let mut tokens = Vec::with_capacity(len);
        let hidden = hide(&statements, filler, len - self.own_tokens(), &mut tokens, rng);
        let asked = distinct(rng, queries as usize, needles);
        let first = hidden[asked[0] as usize];
        let slices =
            vec![("depth", first.tenth), ("distance", (tokens.len() + 1 - first.start) as u32)];
        let mut scored = vec![false; len];
        for needle in asked {
            tokens.push(ASK);
            tokens.extend(&statements[needle as usize]);
            scored[tokens.len() - digits as usize - 1..tokens.len()].fill(true);
        }
        Sample { tokens, scored, slices }
    }

    fn token_slices(&self, _sample: &Sample) -> Vec<TokenSlice> {
        let NeedleConfig { queries, digits, .. } = self.settings;
        let query = |query| std::iter::repeat_n(query, digits as usize + 1);
        vec![("query", (0..queries).flat_map(query).collect())]
    }

    fn chance(&self) -> Option<f64> {
        let NeedleConfig { queries, digits, .. } = self.settings;
        Some(0.1_f64.powf(f64::from(queries) * f64::from(digits)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Of `checks::golden`: version and hash.
    const GOLDEN: &str = "v1 a3818ab290733ed508c30ec780fa5acf97831305956bc3b74a45d4ca4b05b080";

    pub(crate) fn example() -> Example {
        let many = NeedleConfig { needles: 5, queries: 3, names: 9, ..NeedleConfig::default() };
        let pair = NeedleConfig { queries: 2, digits: 1, ..NeedleConfig::default() };
        let config = TaskConfig::Needle(NeedleConfig::default());
        Example::synthetic(config, 36, oracle, GOLDEN)
            .with_oracle_config(TaskConfig::Needle(many), 80)
            .with_chance_config(TaskConfig::Needle(pair), 30)
    }

    /// Reads on in the first statement that has the name which was asked for last.
    fn oracle(prefix: &[String]) -> Option<String> {
        let asked = prefix.iter().rposition(|text| text == "?")? + 1;
        let found = prefix.iter().position(|text| *text == prefix[asked])?;
        assert!(found < asked);
        prefix.get(found + prefix.len() - asked).cloned()
    }

    #[test]
    fn every_needle_is_there_once_and_all_names_differ() {
        let config = NeedleConfig { needles: 4, queries: 4, names: 5, ..NeedleConfig::default() };
        let task = config.build().unwrap();
        for sample in task.eval_set("uniform", 100, 50, 1).unwrap() {
            assert_eq!(sample.tokens.len(), 100);
            let mut names: Vec<u32> =
                sample.tokens.iter().copied().filter(|t| *t >= NAME).collect();
            assert_eq!(names.len(), 8);
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), 4);
            let expected = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3].to_vec();
            assert_eq!(task.token_slices(&sample), [("query", expected)]);
            let first = sample.scored.iter().position(|s| *s).unwrap();
            let distance = sample.slices[1].1 as usize;
            assert_eq!(
                sample.tokens[first - 2..=first + 2],
                sample.tokens[first - 2 - distance..=first + 2 - distance]
            );
        }
    }

    #[test]
    fn bad_settings_and_lengths_name_the_field() {
        let said = |json| {
            let config: NeedleConfig = serde_json::from_str(json).unwrap();
            config.build().unwrap_err().to_string()
        };
        assert_eq!(said(r#"{"digits": 0}"#), "needle: digits is 0, must be between 1 and 18");
        assert!(said(r#"{"names": 1}"#).contains("names is 1, must be between 2 and 65536"));
        assert!(
            said(r#"{"needles": 65}"#).contains("needles is 65, must be between 1 and 64, the")
        );
        assert!(said(r#"{"queries": 3}"#).contains("queries is 3, must be between 1 and 2, the"));
        let task = NeedleConfig::default().build().unwrap();
        assert!(task.check_len(15).unwrap_err().to_string().contains("between 16 and"));
    }
}

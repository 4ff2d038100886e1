//! # Needle: find one of several numbers
//! ## What it asks of an encoding
//! Finding one of several statements by its name, at any distance, among unpredictable filler and other statements of
//! the same form; then copying its number.
//!
//! ## Predicted order
//! As in passkey, with more weight on content. Beyond the trained lengths: NoPE and encodings that separate content
//! from position before RoPE; ALiBi only at short distances. More needles make the task harder for all encodings (Hsieh
//! et al. 2024).
//!
//! ## Definition
//! Filler with `needles` statements `name = d1 ... dn ;` at uniform positions; all names differ. Then `? name = d1 ...
//! dn ;` follows for `queries` of the needles in random order, and its digits and its `;` are scored. Digits are
//! independent and uniform. The filler is random words (`words`) or five short sentences repeated (`sentences`). `len`
//! counts all tokens.
//!
//! Settings: `needles` 2, `queries` 1 (at most `needles`), `digits` 2 (1 to 18), `names` 64 (2 to 65536), `filler`
//! `words`. Slices, of the first needle in the questions: `depth`, the tenth of the filler that contains it (0 first, 9
//! last), and `distance` in tokens from a digit to its copy. Slice of tokens: `query`, from 0. Chance: 10 to the power
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
//! needles, numbers of 7 digits). RULER uses English for pretrained language models; here words are tokens, so that a
//! small model can learn the task from scratch.

use rand_chacha::ChaCha8Rng;

use crate::generator::Generator;
use crate::haystack::{FILLER, FILLER_TOKENS, Filler, draw_digits, hide};
use crate::random::distinct;
use crate::settings::settings;
use crate::task::{check_between, check_range, check_setting};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta, TokenSlice};

const ASK: u32 = FILLER_TOKENS;
const EQUALS: u32 = FILLER_TOKENS + 1;
const END: u32 = FILLER_TOKENS + 2;
const ZERO: u32 = FILLER_TOKENS + 3;
const NAME: u32 = ZERO + 10;

settings! {
    /// Settings of needle. Token ids: the filler's words, `?`, `=`, `;`, the digits, the names.
    #[derive(Eq)]
    pub struct NeedleConfig {
        /// Number of statements in the filler, 1 to `names`.
        pub needles: u32 = 2,
        /// Number of questions, 1 to `needles`.
        pub queries: u32 = 1,
        /// Number of digits of each number, 1 to 18.
        pub digits: u32 = 2,
        /// Number of names, 2 to 65536.
        pub names: u32 = 64,
        /// Text around the needles.
        pub filler: Filler = Filler::Words,
    }
}

impl NeedleConfig {
    /// Number of tokens of all statements and questions.
    fn own_tokens(&self) -> usize {
        let statement = self.digits as usize + 3;
        self.needles as usize * statement + self.queries as usize * (statement + 1)
    }
}

impl Generator for NeedleConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "needle",
        label: "Needle in a haystack",
        summary: "Find the number that belongs to a name, among others in filler text.",
        source: "Hsieh et al. 2024 (RULER), arXiv 2404.06654",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("needle.rs");
    const SPLITS: &'static [Split] =
        &[Split::as_trained("uniform", "The needles at uniform positions in the filler.")];

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "digits", self.digits, &(1..=18))?;
        check_setting(Self::META, "names", self.names, &(2..=1 << 16))?;
        check_between(
            Self::META,
            "needles",
            self.needles,
            &(1..=self.names),
            "the value of `names`",
        )?;
        let range = 1..=self.needles;
        check_between(Self::META, "queries", self.queries, &range, "the value of `needles`")
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![
            FILLER,
            TokenGroup::Signs(&["?", "=", ";"]),
            TokenGroup::Numbered("", 10),
            TokenGroup::Numbered("n", self.names),
        ]
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        let why = "the minimum fits the needles and the questions without filler";
        check_range(Self::META, len, self.own_tokens(), why)
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let Self { needles, queries, digits, names, filler } = *self;
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
        let query = |query| std::iter::repeat_n(query, self.digits as usize + 1);
        vec![("query", (0..self.queries).flat_map(query).collect())]
    }

    fn chance(&self) -> Option<f64> {
        Some(0.1_f64.powf(f64::from(self.queries) * f64::from(self.digits)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 a3818ab290733ed508c30ec780fa5acf97831305956bc3b74a45d4ca4b05b080";

    pub(crate) fn example() -> Example {
        let many = NeedleConfig { needles: 5, queries: 3, names: 9, ..NeedleConfig::default() };
        let pair = NeedleConfig { queries: 2, digits: 1, ..NeedleConfig::default() };
        let config = TaskConfig::from(NeedleConfig::default());
        Example::synthetic(config, 36, oracle, GOLDEN)
            .with_oracle_config(TaskConfig::from(many), 80)
            .with_chance_config(TaskConfig::from(pair), 30)
    }

    /// Returns the continuation of the first statement with the requested name.
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

//! # Passkey: find a number in uniform filler
//! ## What it asks of an encoding
//! Finding the only statement that is not filler, at any distance, and copying it digit by digit. The filler is always
//! the same and contains no similar statement, so a failure is due to distances that did not occur in training.
//!
//! ## Predicted order
//! Within the trained lengths every encoding solves it. Beyond them, in Zhu et al. 2025 (fine-tuned models): TAPE
//! before RoPE with a raised base (`Theta`) and before windows. Trained from scratch: NoPE before RoPE and learned
//! tables; ALiBi only if the statement is near.
//!
//! ## Definition
//! Filler that contains the statement `key = d1 ... dn ;` once; the statement is repeated at the end. The digits and
//! the `;` at the end are scored. The filler is five short sentences repeated (`sentences`) or random words from them
//! (`words`). The statement's position is uniform among those before, between and after the tokens of filler; digits
//! are independent and uniform. `len` counts all tokens.
//!
//! Settings: `digits` 5 (1 to 18), `filler` `sentences`. Slices: `depth`, the tenth of the filler that contains the
//! statement (0 first, 9 last), and `distance` in tokens from a digit to its copy. Chance: 10 to the power of minus
//! `digits`.
//!
//! ## Sample
//! ```text
//! the tide is low . the gulls are loud . the rope is wet . a bell rings . we row
//! on . key = 6 7 7 4 5 ; the tide is low . the gulls are loud key = 6 7 7 4 5 ;
//!                                                                   ^ ^ ^ ^ ^ ^
//! ```
//!
//! ## Source
//! Mohtashami, Jaggi: Landmark Attention, 2023, arXiv 2305.16300; Zhu et al. 2025 (TAPE), arXiv 2501.00712
//! (`eval_retrieval.py`: keys from 1 to 49,999, lengths to 8192). Both papers use English for pretrained language
//! models; here words are tokens, so that a small model can learn the task from scratch, and all keys have the same
//! number of digits.

use rand_chacha::ChaCha8Rng;

use crate::generator::Generator;
use crate::haystack::{FILLER, FILLER_TOKENS, Filler, draw_digits, hide};
use crate::settings::settings;
use crate::task::{check_range, check_setting};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta};

const KEY: u32 = FILLER_TOKENS;
const EQUALS: u32 = FILLER_TOKENS + 1;
const END: u32 = FILLER_TOKENS + 2;
const ZERO: u32 = FILLER_TOKENS + 3;

settings! {
    /// Settings of passkey. Token ids: the filler's words, `key`, `=`, `;`, the digits.
    #[derive(Eq)]
    pub struct PasskeyConfig {
        /// Number of digits of the key, 1 to 18.
        pub digits: u32 = 5,
        /// Text around the key.
        pub filler: Filler = Filler::Sentences,
    }
}

impl PasskeyConfig {
    /// Number of tokens of the statement and its repetition.
    fn own_tokens(&self) -> usize {
        2 * (self.digits as usize + 3)
    }
}

impl Generator for PasskeyConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "passkey",
        label: "Passkey",
        summary: "Find a number hidden in filler text.",
        source: "Mohtashami, Jaggi 2023, arXiv 2305.16300",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("passkey.rs");
    const SPLITS: &'static [Split] =
        &[Split::as_trained("uniform", "The key at a uniform position in the filler.")];

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "digits", self.digits, &(1..=18))
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![FILLER, TokenGroup::Signs(&["key", "=", ";"]), TokenGroup::Numbered("", 10)]
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(
            Self::META,
            len,
            self.own_tokens(),
            "the minimum fits the key and the question without filler",
        )
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let mut statement = vec![KEY, EQUALS];
        statement.extend(draw_digits(ZERO, self.digits, rng));
        statement.push(END);
        let mut tokens = Vec::with_capacity(len);
        let hidden = hide(&[&statement], self.filler, len - self.own_tokens(), &mut tokens, rng)[0];
        let again = tokens.len();
        tokens.extend(statement);
        let slices = vec![("depth", hidden.tenth), ("distance", (again - hidden.start) as u32)];
        Sample::scored_from(again + 2, tokens, slices)
    }

    fn chance(&self) -> Option<f64> {
        Some(0.1_f64.powi(self.digits as i32))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 e9fc236c64301245bfaa85ddcc75731ac15a0829ffe1d54c061ae3f958421cf6";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(PasskeyConfig::default());
        let two = TaskConfig::from(PasskeyConfig { digits: 2, filler: Filler::Words });
        Example::synthetic(config, 48, oracle, GOLDEN).with_chance_config(two, 20)
    }

    /// Returns the continuation of the statement at its first occurrence.
    fn oracle(prefix: &[String]) -> Option<String> {
        let first = prefix.iter().position(|text| text == "key")?;
        let again = prefix.iter().rposition(|text| text == "key")?;
        assert!(first < again);
        prefix.get(first + prefix.len() - again).cloned()
    }

    #[test]
    fn sequence_is_filler_but_for_the_key_and_as_long_as_asked() {
        for filler in [Filler::Sentences, Filler::Words] {
            let task = PasskeyConfig { filler, ..PasskeyConfig::default() }.build().unwrap();
            for len in [16, 17, 300] {
                for sample in task.eval_set("uniform", len, 20, 1).unwrap() {
                    assert_eq!(sample.tokens.len(), len);
                    let own = sample.tokens.iter().filter(|t| **t >= FILLER_TOKENS).count();
                    assert_eq!(own, 16);
                    assert_eq!(sample.scored.iter().filter(|s| **s).count(), 6);
                    let distance = sample.slices[1].1 as usize;
                    assert_eq!(sample.tokens[len - 6..], sample.tokens[len - 6 - distance..][..6]);
                    assert!(sample.slices[0].1 < 10);
                }
            }
        }
    }

    #[test]
    fn bad_settings_and_lengths_name_the_field() {
        let said = PasskeyConfig { digits: 19, ..PasskeyConfig::default() }.build().unwrap_err();
        assert_eq!(said.to_string(), "passkey: digits is 19, must be between 1 and 18");
        let task = PasskeyConfig::default().build().unwrap();
        assert!(task.check_len(15).unwrap_err().to_string().contains("between 16 and"));
        let unknown = serde_json::from_str::<PasskeyConfig>(r#"{"filler": "essay"}"#);
        assert!(unknown.unwrap_err().to_string().contains("expected `sentences` or `words`"));
    }
}

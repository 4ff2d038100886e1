//! # Induction: recall the token after the signal
//! ## What it asks of an encoding
//! The basis of in-context learning: finding the earlier occurrence of the current token and predicting the token after
//! it. This takes two layers: one attends to the previous token, and one finds the earlier occurrence by content at any
//! distance.
//!
//! ## Predicted order
//! Encodings that can attend to the previous token (RoPE, relative, ALiBi, CoPE) solve it within the trained lengths,
//! NoPE with more difficulty. Beyond the trained lengths the search must not depend on distance: NoPE and CoPE before
//! RoPE before learned tables; ALiBi loses distant tokens. In Gu and Dao 2023 no attention model answers well far
//! beyond twice the trained length.
//!
//! ## Definition
//! `len` tokens, independent and uniform over `symbols`, except for the signal `S`. It occurs at a uniform position
//! among the first `len - 3` and again as the last but one token. The last token, which is scored, is the one that
//! followed the first signal.
//!
//! Setting: `symbols` 15 (2 to 65536). Slice: `distance` in tokens from the symbol to be recalled to the answer.
//! Chance: one in `symbols`.
//!
//! ## Sample
//! ```text
//! j k k g h k i a c n S i g m m o h m n c h n S i
//!                                               ^
//! ```
//!
//! ## Source
//! Gu, Dao: Mamba, 2023, arXiv 2312.00752, section 4.1.2 (vocabulary of 16, trained at length 256, tested from 64 to
//! 2^20), after Olsson et al. 2022 and Dao et al. 2023 (H3).

use rand_chacha::ChaCha8Rng;

use crate::generator::Generator;
use crate::random::below;
use crate::settings::settings;
use crate::task::{check_range, check_setting};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta};

/// Length of the shortest sample, `S x S x`.
const MIN_LEN: usize = 4;

settings! {
    /// Settings of induction; the default is the source's. Token ids: the symbols, then the signal.
    #[derive(Eq)]
    pub struct InductionConfig {
        /// Number of symbols beside the signal, 2 to 65536.
        pub symbols: u32 = 15,
    }
}

impl Generator for InductionConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "induction",
        label: "Induction",
        summary: "Recall the token that followed the signal earlier.",
        source: "Gu, Dao 2023 (Mamba), arXiv 2312.00752",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("induction.rs");
    const SPLITS: &'static [Split] =
        &[Split::as_trained("uniform", "The signal at a uniform position in a random sequence.")];

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "symbols", self.symbols, &(2..=1 << 16))
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![TokenGroup::symbols(self.symbols), TokenGroup::Signs(&["S"])]
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(
            Self::META,
            len,
            MIN_LEN,
            "the minimum fits the signal and the token after it, twice",
        )
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let mut tokens: Vec<u32> = (0..len).map(|_| below(rng, self.symbols)).collect();
        let place = below(rng, (len - 3) as u32) as usize;
        tokens[place] = self.symbols;
        tokens[len - 2] = self.symbols;
        tokens[len - 1] = tokens[place + 1];
        let distance = (len - 1) - (place + 1);
        Sample::scored_from(len - 1, tokens, vec![("distance", distance as u32)])
    }

    fn chance(&self) -> Option<f64> {
        Some(1.0 / f64::from(self.symbols))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 3d9fe2d0bebde7e0b93a42b318a24a66d7542c56e25b8a693af298b135e729f5";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(InductionConfig::default());
        Example::synthetic(config, 24, oracle, GOLDEN)
    }

    /// Finds the previous occurrence of the last token and returns the token after it.
    fn oracle(prefix: &[String]) -> Option<String> {
        let (signal, before) = prefix.split_last()?;
        assert_eq!(signal, "S");
        let found = before.iter().position(|text| text == signal)?;
        before.get(found + 1).cloned()
    }

    #[test]
    fn signal_stands_twice_and_every_distance_occurs() {
        let task = InductionConfig::default().build().unwrap();
        let mut counts = [0_u32; 8];
        for sample in task.eval_set("uniform", 10, 7000, 1).unwrap() {
            let signals: Vec<usize> =
                (0..10).filter(|t| task.token_text(sample.tokens[*t]) == "S").collect();
            assert_eq!((signals.len(), signals[1]), (2, 8));
            let [(name, distance)] = sample.slices[..] else { panic!("{:?}", sample.slices) };
            assert_eq!((name, distance as usize), ("distance", 8 - signals[0]));
            counts[distance as usize - 1] += 1;
        }
        // From 2 tokens (`S x S x`) to 8.
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|c| c.abs_diff(1000) < 160), "{counts:?}");
    }

    #[test]
    fn bad_settings_and_lengths_name_the_field() {
        let said = InductionConfig { symbols: 1 }.build().unwrap_err().to_string();
        assert_eq!(said, "induction: symbols is 1, must be between 2 and 65536");
        let task = InductionConfig { symbols: 65_536 }.build().unwrap();
        assert!(task.check_len(3).unwrap_err().to_string().contains("between 4 and"));
        assert_eq!(task.token_text(40), "s40");
    }
}

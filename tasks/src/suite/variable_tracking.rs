//! # Variable tracking: all variables with a given value
//! ## What it asks of an encoding
//! Following a chain of statements, each of which names the previous one: finding by content repeatedly, over distances
//! without a pattern. One layer follows one link of the chain.
//!
//! ## Predicted order
//! As in needle, with larger differences, since every link must be found. Beyond the trained lengths: encodings that
//! find by content at any distance (NoPE, CoPE) before RoPE before learned tables; ALiBi only for short spans. There is
//! no published comparison of encodings.
//!
//! ## Definition
//! Filler with `chains` chains of statements at uniform positions. A chain is `x = v`, with a different value for each
//! chain, then `hops` times `y = x` with the previous name and a new one. The statements of a chain are in order, and
//! different chains are interleaved; all names differ. At the end come `? v` for one chain, its names in order and `;`;
//! the names and `;` are scored. The filler is five short sentences repeated (`sentences`) or random words from them
//! (`words`). `len` counts all tokens.
//!
//! Settings: `chains` 2 (one chain is solved by copying the token before each `=`), `hops` 2, `names` 64, `values` 64
//! (both at most 65536), `filler` `sentences`. Slices, of the chain in the question: `span`, tokens from its first
//! statement to its last, and `distance`, tokens from its first statement to its first name in the answer. Slice of
//! tokens: `hop`, 0 for the first name; the `;` has the number after that of the last name. Chance: one over the number
//! of ordered choices of `hops + 1` names.
//!
//! ## Sample
//! ```text
//! the tide is low . the x29 = 3 gulls are loud . x41 = 35 x32 = x29 x45 = x41
//! the x44 = x32 rope x46 = x45 ? 35 x41 x45 x46 ;
//!                                   ^^^ ^^^ ^^^ ^
//! ```
//!
//! ## Source
//! Hsieh et al.: RULER, 2024, arXiv 2404.06654, task `vt` (1 chain, 4 hops, names of 5 letters, numbers of 5 digits,
//! the answer in any order). RULER uses English for pretrained language models; here words, names and numbers are
//! tokens, so that a small model can learn the task from scratch, and the answer has the order of the chain.

use rand_chacha::ChaCha8Rng;

use crate::generator::{Generator, one_of_orders};
use crate::haystack::{FILLER, FILLER_TOKENS, Filler, hide};
use crate::random::{below, distinct, shuffle};
use crate::settings::settings;
use crate::task::{check_between, check_range, check_setting, invalid};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta, TokenSlice};

const ASK: u32 = FILLER_TOKENS;
const EQUALS: u32 = FILLER_TOKENS + 1;
const END: u32 = FILLER_TOKENS + 2;
const NAME: u32 = FILLER_TOKENS + 3;

settings! {
    /// Settings of variable tracking. Token ids: the filler's words, `?`, `=`, `;`, the names, the values.
    #[derive(Eq)]
    pub struct VariableTrackingConfig {
        /// Number of chains, 1 to `values`.
        pub chains: u32 = 2,
        /// Assignments of a variable to another in each chain, 1 to 1024.
        pub hops: u32 = 2,
        /// Number of names, 2 to 65536; all chains together need `chains * (hops + 1)`.
        pub names: u32 = 64,
        /// Number of values, 1 to 65536.
        pub values: u32 = 64,
        /// Text around the statements.
        pub filler: Filler = Filler::Sentences,
    }
}

impl VariableTrackingConfig {
    /// Number of names in a chain.
    fn links(&self) -> usize {
        self.hops as usize + 1
    }

    /// Number of tokens of all statements, the question and its answer.
    fn own_tokens(&self) -> usize {
        let statements = self.chains as usize * self.links();
        3 * statements + 2 + self.links() + 1
    }

    fn first_value(&self) -> u32 {
        NAME + self.names
    }
}

impl Generator for VariableTrackingConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "variable-tracking",
        label: "Variable tracking",
        version: 2,
        summary: "Name all variables to which a value was assigned, directly or through other variables.",
        source: "Hsieh et al. 2024 (RULER), arXiv 2404.06654",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("variable_tracking.rs");
    const SPLITS: &'static [Split] =
        &[Split::as_trained("uniform", "The statements at uniform positions in the filler.")];

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "values", self.values, &(1..=1 << 16))?;
        check_setting(Self::META, "hops", self.hops, &(1..=1024))?;
        check_between(
            Self::META,
            "chains",
            self.chains,
            &(1..=self.values),
            "the value of `values`",
        )?;
        let needed = u64::from(self.chains) * u64::from(self.hops + 1);
        if (needed..=1 << 16).contains(&self.names.into()) {
            return Ok(());
        }
        let Self { chains, hops, .. } = self;
        let expected =
            format!("between {needed}, which {chains} chains with {hops} hops need, and 65536");
        Err(invalid(Self::META, "names", &self.names, expected))
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![
            FILLER,
            TokenGroup::Signs(&["?", "=", ";"]),
            TokenGroup::Numbered("x", self.names),
            TokenGroup::Numbered("", self.values),
        ]
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        let why = "the minimum fits the statements and the question without filler";
        check_range(Self::META, len, self.own_tokens(), why)
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let Self { chains, names, values, filler, .. } = *self;
        let links = self.links();
        let mut drawn = distinct(rng, chains as usize * links, names);
        for name in &mut drawn {
            *name += NAME;
        }
        let values = distinct(rng, chains as usize, values);
        // The chain of each statement, in order.
        let mut turns: Vec<u32> =
            (0..chains).flat_map(|chain| std::iter::repeat_n(chain, links)).collect();
        if chains > 1 {
            shuffle(rng, &mut turns);
        }
        let mut done = vec![0; chains as usize];
        let statements: Vec<[u32; 3]> = turns
            .iter()
            .map(|chain| {
                let chain = *chain as usize;
                let link = chain * links + done[chain];
                let source = if done[chain] == 0 {
                    self.first_value() + values[chain]
                } else {
                    drawn[link - 1]
                };
                done[chain] += 1;
                [drawn[link], EQUALS, source]
            })
            .collect();
        let mut tokens = Vec::with_capacity(len);
        let hidden = hide(&statements, filler, len - self.own_tokens(), &mut tokens, rng);
        let asked = below(rng, chains);
        tokens.extend([ASK, self.first_value() + values[asked as usize]]);
        let answer = tokens.len();
        tokens.extend(&drawn[asked as usize * links..][..links]);
        tokens.push(END);
        let of_asked = || turns.iter().zip(&hidden).filter(|(chain, _)| **chain == asked);
        let first = of_asked().map(|(_, at)| at.start).min().unwrap_or(0);
        let last = of_asked().map(|(_, at)| at.start).max().unwrap_or(0);
        let slices = vec![("span", (last - first) as u32), ("distance", (answer - first) as u32)];
        Sample::scored_from(answer, tokens, slices)
    }

    fn token_slices(&self, _sample: &Sample) -> Vec<TokenSlice> {
        vec![("hop", (0..=self.links() as u32).collect())]
    }

    fn chance(&self) -> Option<f64> {
        Some(one_of_orders(self.links(), self.names))
    }
}

/// Tests of variable tracking.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v2 8d3c83f7dbcac914cff2b8155e1a3a9d49803456280f2ab148102a00019bbc2f";

    fn chains(chains: u32, hops: u32, names: u32) -> VariableTrackingConfig {
        VariableTrackingConfig { chains, hops, names, ..VariableTrackingConfig::default() }
    }

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(VariableTrackingConfig::default());
        Example::synthetic(config, 36, oracle, GOLDEN)
            .with_oracle_config(TaskConfig::from(chains(3, 4, 20)), 120)
            .with_chance_config(TaskConfig::from(chains(2, 1, 6)), 30)
    }

    /// Runs the statements in order and lists who holds the value that is asked for.
    fn oracle(prefix: &[String]) -> Option<String> {
        let asked = prefix.iter().rposition(|text| text == "?")? + 1;
        let mut held = std::collections::BTreeMap::new();
        let mut holders = Vec::new();
        for t in (0..asked).filter(|t| prefix[*t] == "=") {
            let (name, source) = (&prefix[t - 1], &prefix[t + 1]);
            let value = held.get(source).unwrap_or(source).clone();
            assert!(held.insert(name.clone(), value.clone()).is_none(), "{name} twice");
            if value == prefix[asked] {
                holders.push(name.clone());
            }
        }
        let done = prefix.len() - asked - 1;
        Some(holders.get(done).cloned().unwrap_or_else(|| ";".to_owned()))
    }

    #[test]
    fn slices_agree_with_the_tokens() {
        let task = chains(2, 3, 10).build().unwrap();
        let mut spans = 0;
        for sample in task.eval_set("uniform", 90, 50, 1).unwrap() {
            assert_eq!(sample.tokens.len(), 90);
            let answer = sample.scored.iter().position(|s| *s).unwrap();
            assert_eq!(sample.scored.iter().filter(|s| **s).count(), 5);
            let defined = |name: u32| {
                let at = |t: &usize| sample.tokens[*t] == name && sample.tokens[t + 1] == EQUALS;
                (0..answer).find(at).unwrap()
            };
            let [first, last] = [0, 3].map(|k| defined(sample.tokens[answer + k]));
            let expected = [("span", (last - first) as u32), ("distance", (answer - first) as u32)];
            assert_eq!(sample.slices, expected);
            assert_eq!(task.token_slices(&sample), [("hop", vec![0, 1, 2, 3, 4])]);
            spans += last - first;
        }
        assert!(spans > 50 * 9);
    }

    /// With one chain, the token before each `=` is the answer.
    #[test]
    fn names_in_order_of_assignment_are_not_the_answer_by_default() {
        let task = VariableTrackingConfig::default().build().unwrap();
        let mut same = 0;
        for sample in task.eval_set("uniform", 60, 50, 5).unwrap() {
            let answer = sample.scored.iter().position(|s| *s).unwrap();
            let assigned = (1..answer).filter(|t| sample.tokens[*t] == EQUALS);
            let assigned: Vec<u32> = assigned.map(|t| sample.tokens[t - 1]).collect();
            assert_eq!(assigned.len(), 6);
            same += usize::from(sample.tokens[answer..].starts_with(&assigned[..3]));
        }
        // One order in twenty has the three statements of the asked chain first.
        assert!(same < 12, "{same} of 50");
    }

    #[test]
    fn chains_are_mixed() {
        let task = chains(2, 1, 10).build().unwrap();
        let set = task.eval_set("uniform", 17, 600, 2).unwrap();
        // Without filler: four statements of three tokens, a a b b or one of the other five orders.
        let apart = set.iter().filter(|sample| {
            let heads = [0, 3, 6, 9].map(|t| sample.tokens[t + 2] >= task.0.first_value());
            heads == [true, false, true, false]
        });
        assert!(apart.count().abs_diff(200) < 60);
    }

    #[test]
    fn bad_settings_and_lengths_name_the_field() {
        let said = |json| {
            let config: VariableTrackingConfig = serde_json::from_str(json).unwrap();
            config.build().unwrap_err().to_string()
        };
        let expected = "variable-tracking: hops is 0, must be between 1 and 1024";
        assert_eq!(said(r#"{"hops": 0}"#), expected);
        assert!(said(r#"{"chains": 65}"#).contains("chains is 65, must be between 1 and 64, the"));
        assert!(said(r#"{"values": 0}"#).contains("values is 0, must be between 1 and 65536"));
        let needed = said(r#"{"chains": 20, "hops": 4}"#);
        assert!(needed.contains("names is 64, must be between 100, which 20 chains"), "{needed}");
        let task = VariableTrackingConfig::default().build().unwrap();
        assert!(task.check_len(23).unwrap_err().to_string().contains("between 24 and"));
    }
}

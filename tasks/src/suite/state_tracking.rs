//! # State tracking: the product of a sequence of moves
//! ## What it asks of an encoding
//! Following a state through moves whose order matters: neither an average nor one attended token suffices. With all
//! intermediate answers (`answer = "prefixes"`) the state is available, and the encoding only has to align each answer
//! with its move.
//!
//! ## Predicted order
//! `final`: with attention of few layers no encoding leads on S5 and A5, whose word problem is complete for NC1
//! (Merrill et al. 2024). The word problem of S3 is not complete for NC1 and separates encodings first. The papers of
//! encodings that transform with content (PaTH, Selective RoPE) claim that these are better than RoPE and NoPE.
//! `prefixes`: as in string copy.
//!
//! ## Definition
//! `g1 ... gn = p`: moves, independent and uniform over the elements of `group`, and their product from left to right
//! (`g1` first). An element is written as the image of `123` or `12345`. `answer = "final"` scores `p` alone;
//! `"prefixes"` scores all of `p1 ... pn` after the sign, where `pt` is the product of the first `t` moves. `len`
//! counts the moves: in training their number is uniform in `min_len ..= len`, in evaluation it is exactly `len`.
//!
//! Settings: `group` `s3` (6 elements), `s5` (120) or `a5` (60, the even ones of `s5`); `answer` `final`; `min_len` 1.
//! Slice: `length`. Slice of tokens: `moves`, the number of moves in the product. Chance: one over the number of
//! elements, to the power of `len` for `prefixes`.
//!
//! ## Sample
//! ```text
//! 312 312 213 231 312 231 123 132 = 312
//!                                   ^^^
//! ```
//!
//! ## Source
//! Merrill, Petty, Sabharwal: The Illusion of State in State-Space Models, 2024, arXiv 2404.08819
//! (`jopetty/word-problem`: input and product). `Selective RoPE` (`timurcarstensen/selective-rope`) trains S3 up to 128
//! moves and tests up to 512. It asks at every move; next-token prediction cannot do this without revealing the state.

use std::sync::LazyLock;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::Generator;
use crate::random::below;
use crate::settings::settings;
use crate::strings::{UNIFORM, uniform_chance};
use crate::task::{MAX_LEN, check_range, check_setting};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta, TokenSlice};

/// Permutation group of the moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermutationGroup {
    /// All permutations of 3 things.
    S3,
    /// All permutations of 5 things.
    S5,
    /// The even permutations of 5 things.
    A5,
}

/// Elements of a group and their products.
struct GroupTable {
    /// Elements in alphabetical order, each as the image of `123...`. The first is the identity.
    texts: Vec<String>,
    /// Products row by row: the effect of `row` followed by `column`.
    products: Vec<u32>,
}

impl PermutationGroup {
    fn table(self) -> &'static GroupTable {
        static S3: LazyLock<GroupTable> = LazyLock::new(|| GroupTable::new(3, false));
        static S5: LazyLock<GroupTable> = LazyLock::new(|| GroupTable::new(5, false));
        static A5: LazyLock<GroupTable> = LazyLock::new(|| GroupTable::new(5, true));
        match self {
            PermutationGroup::S3 => &S3,
            PermutationGroup::S5 => &S5,
            PermutationGroup::A5 => &A5,
        }
    }
}

impl GroupTable {
    fn new(things: u8, even_only: bool) -> Self {
        let mut elements: Vec<Vec<u8>> = vec![Vec::new()];
        for _ in 0..things {
            elements = elements
                .iter()
                .flat_map(|element| {
                    let rest = (0..things).filter(|thing| !element.contains(thing));
                    rest.map(|thing| [&element[..], &[thing]].concat())
                })
                .collect();
        }
        elements.retain(|element| !even_only || inversions(element).is_multiple_of(2));
        let index = |product: &Vec<u8>| elements.iter().position(|e| e == product).unwrap_or(0);
        let products = elements
            .iter()
            .flat_map(|first| elements.iter().map(move |second| (first, second)))
            .map(|(first, second)| first.iter().map(|thing| second[*thing as usize]).collect())
            .map(|product| index(&product) as u32)
            .collect();
        let text = |e: &Vec<u8>| e.iter().map(|thing| (thing + 1).to_string()).collect();
        Self { texts: elements.iter().map(text).collect(), products }
    }
}

fn inversions(element: &[u8]) -> usize {
    let later = |k: usize| element[k..].iter().filter(|later| **later < element[k]).count();
    (0..element.len()).map(later).sum()
}

/// Products in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskedProducts {
    /// The product of all moves.
    Final,
    /// The product of the first move, of the first two, and so on.
    Prefixes,
}

settings! {
    /// Settings of state tracking. Token ids: the elements, then `=`.
    #[derive(Eq)]
    pub struct StateTrackingConfig {
        /// Permutation group of the moves.
        pub group: PermutationGroup = PermutationGroup::S3,
        /// Products in the answer.
        pub answer: AskedProducts = AskedProducts::Final,
        /// Fewest moves in training.
        pub min_len: usize = 1,
    }
}

impl StateTrackingConfig {
    /// Number of elements.
    fn order(&self) -> u32 {
        self.group.table().texts.len() as u32
    }
}

impl Generator for StateTrackingConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "state-tracking",
        label: "State tracking",
        len_unit: "symbols",
        summary: "Compute the product of a sequence of permutations.",
        source: "Merrill, Petty, Sabharwal 2024, arXiv 2404.08819",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("state_tracking.rs");
    const SPLITS: &'static [Split] = UNIFORM;

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "min_len", self.min_len, &(1..=MAX_LEN))
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![TokenGroup::Texts(&self.group.table().texts), TokenGroup::Signs(&["="])]
    }

    fn max_tokens(&self, len: usize) -> usize {
        let answers = if self.answer == AskedProducts::Final { 1 } else { len };
        len.saturating_add(answers).saturating_add(1)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(Self::META, len, self.min_len, "min_len sets the minimum")
    }

    fn min_train_len(&self) -> Option<usize> {
        Some(self.min_len)
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let products = &self.group.table().products;
        let order = self.order();
        let mut tokens = Vec::with_capacity(self.max_tokens(len));
        tokens.extend((0..len).map(|_| below(rng, order)));
        tokens.push(order);
        let mut state = 0;
        for t in 0..len {
            state = products[(state * order + tokens[t]) as usize];
            if self.answer == AskedProducts::Prefixes || t + 1 == len {
                tokens.push(state);
            }
        }
        Sample::scored_from(len + 1, tokens, vec![("length", len as u32)])
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        let asked = sample.answer_len() as u32;
        let moves = sample.tokens.len() as u32 - 1 - asked;
        vec![("moves", (moves - asked + 1..=moves).collect())]
    }

    fn chance(&self) -> Option<f64> {
        (self.answer == AskedProducts::Final).then(|| 1.0 / f64::from(self.order()))
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        self.chance().or_else(|| Some(uniform_chance(self.order(), len)))
    }
}

/// Tests of state tracking.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 9e99a23de66ef5665c4b04f7af4273e7e9898e45b767c91dea154b2e44d2c1d9";

    fn config(group: PermutationGroup, answer: AskedProducts) -> StateTrackingConfig {
        StateTrackingConfig { group, answer, min_len: 1 }
    }

    pub(crate) fn example() -> Example {
        let [s3, prefixes] = [AskedProducts::Final, AskedProducts::Prefixes]
            .map(|answer| TaskConfig::from(config(PermutationGroup::S3, answer)));
        let a5 = TaskConfig::from(config(PermutationGroup::A5, AskedProducts::Prefixes));
        Example::synthetic(s3, 12, oracle, GOLDEN)
            .with_oracle_config(a5, 12)
            .with_chance_config(prefixes, 3)
    }

    /// Returns the product of as many moves as there are answers so far, plus one; for `final`, of all moves.
    fn oracle(prefix: &[String]) -> Option<String> {
        let equals = prefix.iter().position(|text| text == "=")?;
        Some(product(&prefix[..prefix.len() - equals]))
    }

    /// Applies the moves one by one to the things.
    fn product(moves: &[String]) -> String {
        let mut state: Vec<char> = ('1'..='9').take(moves[0].len()).collect();
        for step in moves {
            let becomes: Vec<char> = step.chars().collect();
            for thing in &mut state {
                *thing = becomes[thing.to_digit(10).unwrap() as usize - 1];
            }
        }
        state.into_iter().collect()
    }

    #[test]
    fn groups_have_their_orders_and_are_closed() {
        for (group, order) in
            [(PermutationGroup::S3, 6), (PermutationGroup::S5, 120), (PermutationGroup::A5, 60)]
        {
            let GroupTable { texts, products } = group.table();
            assert_eq!((texts.len(), products.len()), (order, order * order));
            assert!(texts.windows(2).all(|pair| pair[0] < pair[1]));
            for row in products.chunks(order) {
                let mut row = row.to_vec();
                row.sort_unstable();
                assert_eq!(row, (0..order as u32).collect::<Vec<_>>());
            }
            // The first element changes nothing.
            assert_eq!(products[..order], (0..order as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn final_answers_are_products_in_every_group() {
        for group in [PermutationGroup::S3, PermutationGroup::S5, PermutationGroup::A5] {
            let task = config(group, AskedProducts::Final).build().unwrap();
            for sample in task.eval_set("uniform", 20, 50, 1).unwrap() {
                let texts: Vec<String> =
                    sample.tokens.iter().map(|t| task.token_text(*t)).collect();
                assert_eq!(texts.len(), 22);
                assert_eq!(texts[21], product(&texts[..20]));
                assert_eq!(task.token_slices(&sample), [("moves", vec![20])]);
            }
        }
    }

    #[test]
    fn prefixes_are_counted_from_the_first_move() {
        let task = config(PermutationGroup::S3, AskedProducts::Prefixes).build().unwrap();
        let sample = &task.eval_set("uniform", 4, 1, 1).unwrap()[0];
        assert_eq!(sample.tokens.len(), 9);
        assert_eq!(task.token_slices(sample), [("moves", vec![1, 2, 3, 4])]);
        assert_eq!(sample.tokens[5], sample.tokens[0]);
    }

    #[test]
    fn is_trained_to_a_length_and_tested_beyond() {
        let config = StateTrackingConfig { min_len: 3, ..StateTrackingConfig::default() };
        crate::testing::strings::trained_to_a_length(&TaskConfig::from(config));
        let unknown = serde_json::from_str::<StateTrackingConfig>(r#"{"group": "s4"}"#);
        assert!(unknown.unwrap_err().to_string().contains("unknown variant `s4`, expected one of"));
    }
}

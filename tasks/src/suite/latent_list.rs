//! # Latent list: a property of a list after operations on it
//! ## What it asks of an encoding
//! Following a list that is never shown through operations, of which some change it and some do not. The length of the
//! list is a count of two kinds of tokens with opposite signs. An element of the list is a state that depends on the
//! order of the operations.
//!
//! ## Predicted order
//! `length` beyond the trained lengths: encodings that count what gates select (CoPE) before NoPE, which counts by its
//! causal mask, before RoPE and relative biases. Because the list has bounds, its length is not only a difference of
//! counts. `sum` and `element`: as in state tracking with `answer = "final"`, PaTH and Selective RoPE before RoPE and
//! NoPE; with few layers no encoding follows many operations. We know of no measurement.
//!
//! ## Definition
//! Operations on a list that is empty at first, one token each: `+v` appends a number, uniform below `values`; `pop`
//! removes the last number; `reverse` reverses the list; `pass` does nothing. Each operation is `pass` with the
//! probability `pass_rate`, otherwise `+v`, `pop` or `reverse` with the weights 2, 2 and 1. An operation that is
//! impossible is drawn again: a list is never longer than `max_size`, `pop` needs a number, and the list is not empty
//! at the end. Then follow `?`, the question and its answer, the only scored token. The question is `length`, `sum`
//! (modulo `values`) or `element i`, the i-th number from the front, `i` uniform from 1 to the length. With `question =
//! "any"`, each of the three has the same probability. `len` counts the operations: in training their number is uniform
//! in `min_len ..= len`, in evaluation it is exactly `len`.
//!
//! Settings: `question` `any`, `values` 10 (2 to 65536), `max_size` 8 (1 to 1024), `pass_rate` 0.2 (0 to 0.9),
//! `min_len` 1. Slices: `question`, 0 for `length`, 1 for `sum`, 2 for `element`, and `size`, the length of the list at the
//! end. Chance: one over `values` for `sum` and `element`, otherwise the share of the most frequent answer among simulated
//! samples.
//!
//! ## Sample
//! ```text
//! reverse reverse reverse +1 pass pop pass pass pass +4 ? element 1 4
//!                                                                   ^
//! ```
//!
//! ## Source
//! Vodrahalli et al.: Michelangelo, 2024, arXiv 2409.12640, task Latent List: operations on a list in Python, with and
//! without effect, then a question about the list. Their task is code for pretrained language models; here an operation
//! is a token, so that a small model can learn the task from scratch.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generator, simulated_chance};
use crate::random::{Weighted, below};
use crate::settings::settings;
use crate::task::{MAX_LEN, check_range, check_setting};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta};

/// Operations without a number, then the signs of questions.
const SIGNS: &[&str] = &["pop", "reverse", "pass", "?", "length", "sum", "element"];

/// Question about the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListQuestion {
    /// Each of the others with the same probability.
    Any,
    /// The number of elements.
    Length,
    /// The sum of the elements, modulo the number of values.
    Sum,
    /// The i-th element from the front.
    Element,
}

settings! {
    /// Settings of latent list. Token ids: the operations that append, `pop`, `reverse`, `pass`, `?`, `length`, `sum`,
    /// `element`, the numbers from 0.
    pub struct LatentListConfig {
        /// Question about the list.
        pub question: ListQuestion = ListQuestion::Any,
        /// Number of values of the elements, 2 to 65536.
        pub values: u32 = 10,
        /// Greatest length of the list, 1 to 1024.
        pub max_size: u32 = 8,
        /// Probability that an operation is one without effect, 0 to 0.9.
        pub pass_rate: f64 = 0.2,
        /// Fewest operations in training.
        pub min_len: usize = 1,
    }
}

impl LatentListConfig {
    /// Token of a sign, by its place in [`SIGNS`].
    fn sign(&self, place: u32) -> u32 {
        self.values + place
    }

    fn first_number(&self) -> u32 {
        self.values + SIGNS.len() as u32
    }

    /// Appends operations that leave a list with elements, and returns it.
    fn operate(&self, len: usize, tokens: &mut Vec<u32>, rng: &mut ChaCha8Rng) -> Vec<u32> {
        let effect = 1.0 - self.pass_rate;
        let kinds = Weighted::new([0.4 * effect, 0.4 * effect, 0.2 * effect, self.pass_rate]);
        let mut list = Vec::with_capacity(self.max_size as usize);
        while tokens.len() < len {
            let (kind, _) = kinds.draw(rng);
            let size = match kind {
                0 => list.len() + 1,
                // Below zero without an element.
                1 => list.len().wrapping_sub(1),
                _ => list.len(),
            };
            let least = usize::from(tokens.len() + 1 == len);
            if !(least..=self.max_size as usize).contains(&size) {
                continue;
            }
            match kind {
                0 => list.push(below(rng, self.values)),
                1 => _ = list.pop(),
                2 => list.reverse(),
                _ => {}
            }
            let token = match kind {
                0 => list.last().copied(),
                _ => None,
            };
            tokens.push(token.unwrap_or_else(|| self.sign(kind as u32 - 1)));
        }
        list
    }
}

impl Generator for LatentListConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "latent-list",
        label: "Latent list",
        len_unit: "symbols",
        summary: "Give the length, an element or the sum of a list after a sequence of operations.",
        source: "Vodrahalli et al. 2024 (Michelangelo), arXiv 2409.12640",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("latent_list.rs");
    const SPLITS: &'static [Split] =
        &[Split::as_trained("uniform", "Random operations, exactly as many as the given length.")];

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "values", self.values, &(2..=1 << 16))?;
        check_setting(Self::META, "max_size", self.max_size, &(1..=1024))?;
        check_setting(Self::META, "pass_rate", self.pass_rate, &(0.0..=0.9))?;
        check_setting(Self::META, "min_len", self.min_len, &(1..=MAX_LEN))
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![
            TokenGroup::Numbered("+", self.values),
            TokenGroup::Signs(SIGNS),
            TokenGroup::Numbered("", self.values.max(self.max_size + 1)),
        ]
    }

    fn max_tokens(&self, len: usize) -> usize {
        // The number of an element stands in its question only.
        let question = match self.question {
            ListQuestion::Length | ListQuestion::Sum => 2,
            ListQuestion::Any | ListQuestion::Element => 3,
        };
        len.saturating_add(question + 1)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(Self::META, len, self.min_len, "min_len sets the minimum")
    }

    fn min_train_len(&self) -> Option<usize> {
        Some(self.min_len)
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let mut tokens = Vec::with_capacity(self.max_tokens(len));
        let list = self.operate(len, &mut tokens, rng);
        let size = list.len() as u32;
        let question = match self.question {
            ListQuestion::Any => below(rng, 3),
            ListQuestion::Length => 0,
            ListQuestion::Sum => 1,
            ListQuestion::Element => 2,
        };
        tokens.extend([self.sign(3), self.sign(4 + question)]);
        let answer = match question {
            0 => size,
            1 => {
                (list.iter().map(|value| u64::from(*value)).sum::<u64>() % u64::from(self.values))
                    as u32
            }
            _ => {
                let place = below(rng, size);
                tokens.push(self.first_number() + place + 1);
                list[place as usize]
            }
        };
        tokens.push(self.first_number() + answer);
        let asked = tokens.len() - 1;
        Sample::scored_from(asked, tokens, vec![("question", question), ("size", size)])
    }

    /// Marks the operations that change the length, if it is what is asked for.
    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        let changes = |token: &u32| *token <= self.sign(0);
        (self.question == ListQuestion::Length).then(|| sample.tokens.iter().map(changes).collect())
    }

    fn chance(&self) -> Option<f64> {
        let is_uniform = matches!(self.question, ListQuestion::Sum | ListQuestion::Element);
        is_uniform.then(|| 1.0 / f64::from(self.values))
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        self.chance().or_else(|| Some(simulated_chance(self, len)))
    }
}

/// Tests of latent list.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 d59623bd6396e9894c4b06ca7eef568f460e801f616a64c26a62a9c9f4bfcb5a";

    fn asking(question: ListQuestion) -> LatentListConfig {
        LatentListConfig { question, ..LatentListConfig::default() }
    }

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(LatentListConfig::default());
        Example::synthetic(config.clone(), 14, oracle, GOLDEN)
            .with_oracle_config(config, 40)
            .with_chance_config(asking(ListQuestion::Length).into(), 12)
    }

    /// Carries out the operations on two stacks, one of them reversed, from their texts.
    fn list_after(operations: &[String]) -> Vec<u32> {
        let mut list = std::collections::VecDeque::new();
        let mut is_reversed = false;
        for operation in operations {
            match (operation.as_str(), is_reversed) {
                ("pass", _) => {}
                ("reverse", _) => is_reversed = !is_reversed,
                ("pop", false) => assert!(list.pop_back().is_some()),
                ("pop", true) => assert!(list.pop_front().is_some()),
                (append, false) => list.push_back(append[1..].parse().unwrap()),
                (append, true) => list.push_front(append[1..].parse().unwrap()),
            }
        }
        let list: Vec<u32> = list.into();
        if is_reversed { list.into_iter().rev().collect() } else { list }
    }

    fn oracle(prefix: &[String]) -> Option<String> {
        let ask = prefix.iter().position(|text| text == "?")?;
        let list = list_after(&prefix[..ask]);
        let answer = match (prefix[ask + 1].as_str(), prefix.get(ask + 2)) {
            ("length", None) => list.len() as u32,
            ("sum", None) => list.iter().sum::<u32>() % 10,
            ("element", Some(place)) => list[place.parse::<usize>().ok()? - 1],
            other => panic!("{other:?}"),
        };
        Some(answer.to_string())
    }

    #[test]
    fn lists_keep_to_their_bounds_and_have_elements_at_the_end() {
        let config = LatentListConfig { max_size: 3, ..asking(ListQuestion::Length) };
        let task = config.build().unwrap();
        let mut sizes = [0_u32; 4];
        for len in [1, 2, 9, 30] {
            for sample in task.eval_set("uniform", len, 2000, 1).unwrap() {
                assert_eq!(sample.tokens.len(), len + 3);
                let texts: Vec<String> =
                    sample.tokens.iter().map(|t| task.token_text(*t)).collect();
                let longest = (1..=len).map(|end| list_after(&texts[..end]).len()).max();
                assert!(longest <= Some(3), "{texts:?}");
                let size = list_after(&texts[..len]).len();
                assert!(size > 0 && sample.slices[1] == ("size", size as u32));
                sizes[size] += u32::from(len == 30);
            }
        }
        // A walk between two walls that is drawn again at 0 and 3 visits each size equally often; 0 is left at the end.
        assert!(sizes[1..].iter().all(|count| *count > 300), "{sizes:?}");
    }

    #[test]
    fn every_operation_and_question_has_its_share() {
        let task =
            LatentListConfig { max_size: 1024, pass_rate: 0.5, ..LatentListConfig::default() };
        let task = task.build().unwrap();
        let (mut passes, mut questions) = (0, [0_u32; 3]);
        for sample in task.eval_set("uniform", 100, 3000, 2).unwrap() {
            let texts = sample.tokens.iter().map(|t| task.token_text(*t));
            passes += texts.filter(|text| text == "pass").count();
            questions[sample.slices[0].1 as usize] += 1;
        }
        // `pop` is drawn again where there is nothing to remove, which makes `pass` a little more frequent.
        assert!((0.5..0.54).contains(&(passes as f64 / 300_000.0)), "{passes}");
        assert!(questions.iter().all(|count| count.abs_diff(1000) < 130), "{questions:?}");
    }

    #[test]
    fn operations_that_change_the_length_are_marked_if_it_is_asked_for() {
        let task = asking(ListQuestion::Length).build().unwrap();
        for sample in task.eval_set("uniform", 20, 50, 3).unwrap() {
            let marks = task.counted(&sample).unwrap();
            for (token, mark) in sample.tokens.iter().zip(marks) {
                let text = task.token_text(*token);
                assert_eq!(mark, text == "pop" || text.starts_with('+'), "{text}");
            }
        }
        let any = LatentListConfig::default().build().unwrap();
        assert_eq!(any.counted(&any.eval_set("uniform", 9, 1, 0).unwrap()[0]), None);
    }

    #[test]
    fn sums_and_elements_are_uniform() {
        for question in [ListQuestion::Sum, ListQuestion::Element] {
            let task = asking(question).build().unwrap();
            let mut counts = [0_u32; 10];
            for sample in task.eval_set("uniform", 25, 10_000, 4).unwrap() {
                let answer = task.token_text(*sample.tokens.last().unwrap());
                counts[answer.parse::<usize>().unwrap()] += 1;
            }
            assert!(
                counts.iter().all(|count| count.abs_diff(1000) < 160),
                "{question:?} {counts:?}"
            );
        }
    }

    #[test]
    fn training_lengths_are_drawn_from_a_range() {
        let mut rng = <ChaCha8Rng as rand::SeedableRng>::seed_from_u64(5);
        let config = LatentListConfig { min_len: 3, ..asking(ListQuestion::Sum) };
        let task = config.build().unwrap();
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..8000 {
            *counts.entry(task.train_sample(10, &mut rng).tokens.len() - 3).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), (3..=10).collect::<Vec<_>>());
        assert!(counts.values().all(|count| count.abs_diff(1000) < 160), "{counts:?}");
    }

    #[test]
    fn bad_settings_and_lengths_name_the_field() {
        for (json, expected) in [
            (r#"{"values": 1}"#, "values is 1, must be between 2 and 65536"),
            (r#"{"max_size": 0}"#, "max_size is 0, must be between 1 and 1024"),
            (r#"{"pass_rate": 1}"#, "pass_rate is 1.0, must be between 0.0 and 0.9"),
            (r#"{"min_len": 0}"#, "min_len is 0, must be between 1 and 16777216"),
        ] {
            let config: LatentListConfig = serde_json::from_str(json).unwrap();
            assert_eq!(config.build().unwrap_err().to_string(), format!("latent-list: {expected}"));
        }
        let task = LatentListConfig { min_len: 4, ..LatentListConfig::default() }.build().unwrap();
        assert!(task.check_len(3).unwrap_err().to_string().contains("min_len sets the minimum"));
        let unknown = serde_json::from_str::<LatentListConfig>(r#"{"question": "median"}"#);
        assert!(unknown.unwrap_err().to_string().contains("expected one of `any`, `length`"));
    }
}

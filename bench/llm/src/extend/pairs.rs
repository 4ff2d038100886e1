//! Inputs with expected outputs, as in SCROLLS, in the tokens of a pretrained model.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use tasks::{Headline, Sample, Split, Task, TaskError, TaskMeta};

use super::facts::{Facts, stated};
use crate::pretrained::{Pretrained, without_middle};

const META: TaskMeta = TaskMeta {
    id: "input-output",
    label: "Inputs with expected outputs",
    headline: Headline::Perplexity,
    summary: "Continue an input with its output.",
    source: "Shaham et al. 2022, SCROLLS, arXiv 2201.03533",
    takes_path: true,
    ..TaskMeta::GENERATED
};

const SPLITS: &[Split] = &[Split::as_trained("outputs", "The items in their order.")];

/// Fewest tokens of a sample: one of the input, one of the output.
const LEAST: usize = 2;

/// Items of an input and its output. A sample has an item: the input, of which the middle is dropped if it is too long, and
/// the output with the token that ends a text; only these are scored.
#[derive(Clone)]
pub struct InputOutput {
    items: Vec<TokenizedItem>,
    facts: Facts,
    /// The inputs of a training sample are padded to a multiple of this.
    multiple: usize,
}

#[derive(Debug, Clone)]
struct TokenizedItem {
    input: Vec<u32>,
    output: Vec<u32>,
}

impl TokenizedItem {
    /// Splits the tokens of an input and its output where they leave those of the input alone, whose last token may merge
    /// with the text that follows. The token `end` closes the output; `None` if nothing is left of the input or the output.
    fn of(alone: &[u32], mut both: Vec<u32>, end: Option<u32>) -> Option<Self> {
        let kept = alone.iter().zip(&both).take_while(|(a, b)| a == b).count();
        let mut output = both.split_off(kept);
        if both.is_empty() || output.is_empty() {
            return None;
        }
        output.extend(end);
        Some(Self { input: both, output })
    }
}

impl std::fmt::Debug for InputOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InputOutput").field("items", &self.items.len()).finish_non_exhaustive()
    }
}

impl InputOutput {
    /// Tokenizes pairs of an input and its output for a model.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] if there is no pair, [`TaskError::ModelTokenizer`] if the tokenizer rejects a text
    /// or leaves none of its tokens.
    pub fn new(pairs: &[(String, String)], model: &Pretrained) -> Result<Self, TaskError> {
        if pairs.is_empty() {
            return Err(TaskError::InvalidSetting {
                task: META.id,
                field: "items",
                value: "empty".to_owned(),
                expected: "at least one input with an output".to_owned(),
            });
        }
        let refused = |index: usize, reason: &dyn std::fmt::Display| {
            let reason = format!("item {}: {reason}", index + 1);
            TaskError::ModelTokenizer { task: META.id, reason }
        };
        let closing = model.tokenizer().around().after;
        let end = model.end.first().or(closing.first()).copied();
        let mut items = Vec::new();
        for (index, (input, output)) in pairs.iter().enumerate() {
            let encode = |text: &str| model.tokenizer().prompt(text);
            let texts =
                encode(input).and_then(|alone| Ok((alone, encode(&format!("{input} {output}"))?)));
            match texts.map(|(alone, both)| TokenizedItem::of(&alone, both, end)) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => {
                    let reason = "the model's tokenizer gives the output no tokens that are separate from the input; \
                                  leave out this item";
                    return Err(refused(index, &reason));
                }
                Err(error) => return Err(refused(index, &error)),
            }
        }
        let facts = Self::facts(&items, model.vocabulary);
        Ok(Self { items, facts, multiple: 1 })
    }

    fn facts(items: &[TokenizedItem], vocabulary: usize) -> Facts {
        let pieces = items.iter().flat_map(|item| [&*item.input, &item.output]);
        Facts::of_pieces(pieces, vocabulary)
    }

    /// Pads training samples such that a model reads a multiple of `tokens` of them, which shifted groups need.
    #[must_use]
    pub fn in_multiples_of(self, tokens: usize) -> Self {
        Self { multiple: tokens, ..self }
    }

    /// An item in at most `len` tokens; the output has at most half of them.
    fn sample(item: &TokenizedItem, len: usize) -> Sample {
        let output = &item.output[..item.output.len().min(len / 2)];
        let mut tokens = without_middle(item.input.clone(), len - output.len());
        let mut scored = vec![false; tokens.len()];
        tokens.extend(output);
        scored.resize(tokens.len(), true);
        Sample { tokens, scored, slices: Vec::new() }
    }
}

impl Task for InputOutput {
    stated!(META, SPLITS);

    fn max_tokens(&self, len: usize) -> usize {
        let inputs = len.saturating_sub(1).checked_next_multiple_of(self.multiple);
        inputs.map_or(usize::MAX, |inputs| inputs.saturating_add(1))
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        if len >= LEAST {
            return Ok(());
        }
        let expected = format!("at least {LEAST}");
        Err(TaskError::InvalidLen { task: META.id, len, expected })
    }

    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let mut sample = Self::sample(&self.items[rng.random_range(0..self.items.len())], len);
        let padded = self.max_tokens(sample.tokens.len());
        sample.tokens.resize(padded, 0);
        sample.scored.resize(padded, false);
        sample
    }

    fn eval_set(
        &self,
        _split: &str,
        len: usize,
        count: usize,
        _seed: u64,
    ) -> Result<Vec<Sample>, TaskError> {
        self.check_len(len)?;
        Ok(self.items.iter().take(count).map(|item| Self::sample(item, len)).collect())
    }

    fn max_eval_samples(&self, _len: usize) -> Option<usize> {
        Some(self.items.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_inputs_lose_their_middle_and_only_outputs_are_scored() {
        let item = TokenizedItem { input: (0..10).collect(), output: vec![20, 21, 2] };
        let whole = InputOutput::sample(&item, 20);
        assert_eq!(whole.tokens.len(), 13);
        assert_eq!(whole.scored.iter().filter(|scored| **scored).count(), 3);
        assert!(whole.scored[10..].iter().all(|scored| *scored));
        let cut = InputOutput::sample(&item, 8);
        assert_eq!(cut.tokens, [0, 1, 7, 8, 9, 20, 21, 2]);
        let shortest = InputOutput::sample(&item, 2);
        assert_eq!((shortest.tokens, shortest.scored), (vec![9, 20], vec![false, true]));
    }

    #[test]
    fn the_same_tokens_in_other_items_have_another_hash() {
        let item = |input: &[u32], output: &[u32]| TokenizedItem {
            input: input.into(),
            output: output.into(),
        };
        let all = [
            vec![item(&[1], &[2]), item(&[3], &[4])],
            vec![item(&[1, 2], &[3, 4])],
            vec![item(&[1, 2, 3], &[4])],
        ];
        let hashes = all.map(|items| InputOutput::facts(&items, 5).sha256);
        assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
    }

    #[test]
    fn outputs_begin_where_the_tokens_leave_those_of_the_input() {
        let of = |alone: &[u32], both: &[u32]| {
            TokenizedItem::of(alone, both.to_vec(), Some(2)).map(|item| (item.input, item.output))
        };
        assert_eq!(of(&[1, 5], &[1, 5, 7]), Some((vec![1, 5], vec![7, 2])));
        // The last token of the input merges with the output.
        assert_eq!(of(&[1, 5, 6], &[1, 5, 9, 7]), Some((vec![1, 5], vec![9, 7, 2])));
        assert_eq!(of(&[1, 5], &[1, 5]), None);
        assert_eq!(of(&[4], &[3]), None);
    }

    #[test]
    fn training_samples_fill_shifted_groups() {
        let item = TokenizedItem { input: (0..10).collect(), output: vec![20, 21, 2] };
        let facts = InputOutput::facts(std::slice::from_ref(&item), 32);
        let task = InputOutput { items: vec![item], facts, multiple: 1 };
        let mut rng = <ChaCha8Rng as rand_chacha::rand_core::SeedableRng>::seed_from_u64(0);
        let plain = task.train_sample(16, &mut rng);
        assert_eq!((plain.tokens.len(), task.max_tokens(16)), (13, 16));
        let task = task.in_multiples_of(8);
        let padded = task.train_sample(16, &mut rng);
        assert_eq!((padded.tokens.len(), task.max_tokens(16)), (17, 17));
        assert_eq!(padded.tokens[..13], plain.tokens);
        assert!(padded.scored[13..].iter().all(|scored| !scored));
    }
}

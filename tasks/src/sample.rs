//! A [`Sample`] is one sequence, a [`Batch`] several of them padded to one length.

/// Token sequence with a mask of the tokens to be predicted.
///
/// `tokens[t]` with `scored[t]` must be predicted from `tokens[..t]`; `scored[0]` is always false.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Token ids, each below the task's vocabulary size.
    pub tokens: Vec<u32>,
    /// Whether each token is to be predicted; as long as `tokens`.
    pub scored: Vec<bool>,
    /// Properties to group results by: names, the same in all samples of a task, and values.
    pub slices: Vec<(&'static str, u32)>,
}

impl Sample {
    /// Returns a sequence whose end is the answer: every token from this index on is scored.
    ///
    /// # Panics
    /// If the index is beyond the end.
    pub fn scored_from(index: usize, tokens: Vec<u32>, slices: Vec<(&'static str, u32)>) -> Self {
        let mut scored = vec![false; tokens.len()];
        scored[index..].fill(true);
        Self { tokens, scored, slices }
    }

    /// Number of scored tokens.
    pub(crate) fn answer_len(&self) -> usize {
        self.scored.iter().filter(|scored| **scored).count()
    }

    /// The scored tokens in order.
    pub(crate) fn answer(&self) -> impl Iterator<Item = u32> {
        let tokens = self.tokens.iter().zip(&self.scored);
        tokens.filter(|(_, scored)| **scored).map(|(token, _)| *token)
    }

    /// The scored tokens.
    pub(crate) fn into_answer(self) -> Vec<u32> {
        let tokens = self.tokens.into_iter().zip(self.scored);
        tokens.filter(|(_, scored)| *scored).map(|(token, _)| token).collect()
    }
}

/// Right-padded batch for next-token prediction: inputs are `tokens[..L-1]`, targets `tokens[1..]`.
///
/// All three lists are row-major `[batch_size, len]`. Padding is token 0 and never scored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Number of samples (rows).
    pub batch_size: usize,
    /// Number of tokens per row: one less than the longest sequence, or the requested number if it is greater.
    pub len: usize,
    /// Tokens that the model reads.
    pub inputs: Vec<u32>,
    /// The token that follows each input.
    pub targets: Vec<u32>,
    /// Whether each target is scored.
    pub scored: Vec<bool>,
}

impl Batch {
    /// Collates samples, padded to the longest.
    pub fn collate(samples: &[Sample]) -> Batch {
        Self::collate_to(samples, 0)
    }

    /// Like [`Batch::collate`], padded to at least `len` columns.
    ///
    /// A fixed width keeps the shapes of all batches equal, which helps backends that compile per shape.
    pub fn collate_to(samples: &[Sample], len: usize) -> Batch {
        let longest = samples.iter().map(|s| s.tokens.len()).max().unwrap_or(0);
        let len = len.max(longest.saturating_sub(1));
        let cells = samples.len() * len;
        let mut batch = Batch {
            batch_size: samples.len(),
            len,
            inputs: Vec::with_capacity(cells),
            targets: Vec::with_capacity(cells),
            scored: Vec::with_capacity(cells),
        };
        for (row, sample) in samples.iter().enumerate() {
            let end = (row + 1) * len;
            if let (Some((_, targets)), Some((_, scored))) =
                (sample.tokens.split_first(), sample.scored.split_first())
            {
                batch.inputs.extend(&sample.tokens[..targets.len()]);
                batch.targets.extend(targets);
                batch.scored.extend(scored);
            }
            batch.inputs.resize(end, 0);
            batch.targets.resize(end, 0);
            batch.scored.resize(end, false);
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(tokens: &[u32]) -> Sample {
        let scored = (0..tokens.len()).map(|t| t > 0 && t % 2 == 0).collect();
        Sample { tokens: tokens.to_vec(), scored, slices: Vec::new() }
    }

    #[test]
    fn targets_are_inputs_one_step_later_and_padding_is_unscored() {
        let batch = Batch::collate(&[sample(&[5, 6, 7]), sample(&[1, 2, 3, 4, 9])]);
        assert_eq!((batch.batch_size, batch.len), (2, 4));
        assert_eq!(batch.inputs, [5, 6, 0, 0, 1, 2, 3, 4]);
        assert_eq!(batch.targets, [6, 7, 0, 0, 2, 3, 4, 9]);
        let scored = [false, true, false, false, false, true, false, true];
        assert_eq!(batch.scored, scored);
    }

    #[test]
    fn collate_to_widens_but_never_cuts() {
        let samples = [sample(&[1, 2, 3])];
        let wide = Batch::collate_to(&samples, 5);
        assert_eq!((wide.len, wide.targets), (5, vec![2, 3, 0, 0, 0]));
        assert_eq!(Batch::collate_to(&samples, 1).len, 2);
    }

    #[test]
    fn empty_input_gives_an_empty_batch() {
        let batch = Batch::collate(&[]);
        assert_eq!((batch.batch_size, batch.len, batch.inputs.len()), (0, 0, 0));
        let batch = Batch::collate_to(&[sample(&[]), sample(&[3])], 2);
        assert_eq!((batch.inputs, batch.scored), (vec![0; 4], vec![false; 4]));
    }
}

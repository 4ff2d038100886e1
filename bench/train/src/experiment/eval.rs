//! Settings of the final evaluation.

use records::WeightsAt;

use pe_zoo::settings::is_default;

pe_zoo::settings! {
    /// Settings of an evaluation.
    pub struct EvalConfig {
        /// Lengths, in the task's unit; empty: the training length.
        pub lens: Vec<usize> = Vec::new(),
        /// Splits of the task; `None`: all.
        pub splits: Option<Vec<String>> = None,
        /// Maximum number of sequences per split and length.
        pub samples: usize = 500,
        /// Maximum number of tokens per split and length; `None`: only `samples` limits them. Longer lengths get fewer
        /// sequences, but at least one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tokens: Option<usize> = None,
        /// Number of sequences per forward pass. This setting changes time and memory, and of the results only the last
        /// digits of losses: a batch with one scored row is computed by another matrix product.
        pub batch_size: usize = 32,
        /// Seed of the evaluation data, the same for all cells.
        pub seed: u64 = 1_000_003,
        /// Weights that are evaluated; `last` by default. Not serialized for those after the last step, so that keys of
        /// older records stay valid.
        #[serde(skip_serializing_if = "is_default")]
        pub weights: WeightsAt = WeightsAt::Last,
        /// Longest input, in tokens, for which the evaluated weights were trained, if it differs.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub trained_for: Option<usize> = None,
    }
}

impl EvalConfig {
    /// Lengths to evaluate, with the training length as the default.
    pub fn lens_or<'a>(&'a self, train_len: &'a usize) -> &'a [usize] {
        if self.lens.is_empty() { std::slice::from_ref(train_len) } else { &self.lens }
    }

    /// Number of sequences evaluated at a length, limited by the settings and by the task.
    pub fn samples_at(&self, task: &dyn tasks::Task, len: usize) -> usize {
        let input = task.max_tokens(len).saturating_sub(1).max(1);
        let by_tokens = self.tokens.map_or(usize::MAX, |tokens| (tokens / input).max(1));
        let there_are = task.max_eval_samples(len).unwrap_or(usize::MAX);
        self.samples.min(by_tokens).min(there_are)
    }
}

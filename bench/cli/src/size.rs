//! Options for the size of a training step that is measured.

use clap::Args;
use train::speed::SpeedSize;

/// Size of the measured work.
#[derive(Args, Clone, Copy)]
pub(crate) struct SizeArgs {
    /// Number of sequences per step.
    #[arg(long, default_value_t = 16)]
    batch: usize,
    /// Number of tokens per sequence.
    #[arg(long, default_value_t = 512)]
    len: usize,
    /// Width of the model.
    #[arg(long, default_value_t = 256)]
    dim: usize,
    /// Number of attention heads.
    #[arg(long, default_value_t = 4)]
    heads: usize,
    /// Number of transformer layers.
    #[arg(long, default_value_t = 4)]
    layers: usize,
    /// Size of the vocabulary.
    #[arg(long, default_value_t = 64)]
    vocab: usize,
    /// Number of timed steps, after two that are not timed.
    #[arg(long, default_value_t = 7)]
    steps: usize,
    /// Number of CPU threads.
    #[arg(long, default_value_t = 2)]
    pub(crate) threads: usize,
    /// Time one attention layer instead of the model, forward and backward.
    #[arg(long, conflicts_with_all = ["layers", "vocab"])]
    attention: bool,
}

impl SizeArgs {
    pub(crate) fn size(self) -> SpeedSize {
        let Self { batch, len, dim, heads, layers, vocab, steps, threads, attention } = self;
        SpeedSize { batch, len, dim, heads, layers, vocab, steps, threads, attention }
    }

    /// Options of a command line that parse to a size.
    pub(crate) fn arguments(size: &SpeedSize) -> Vec<String> {
        let numbers = [
            ("--batch", size.batch),
            ("--len", size.len),
            ("--dim", size.dim),
            ("--heads", size.heads),
            ("--steps", size.steps),
            ("--threads", size.threads),
        ];
        let of_model = [("--layers", size.layers), ("--vocab", size.vocab)];
        let of_model = of_model.into_iter().filter(|_| !size.attention);
        let numbers = numbers.into_iter().chain(of_model);
        let numbers = numbers.flat_map(|(name, n)| [name.to_owned(), n.to_string()]);
        numbers.chain(size.attention.then(|| "--attention".to_owned())).collect()
    }
}

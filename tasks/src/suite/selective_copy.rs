//! # Selective copy: repeat the symbols that are not blank
//! ## What it asks of an encoding
//! Stepping from one symbol to the next over any number of blanks. The distance from a symbol to its copy differs
//! between symbols; its index among the symbols does not. With positions that count symbols instead of tokens, this is
//! string copy.
//!
//! ## Predicted order
//! CoPE before learned absolute before RoPE: Golovneva et al. 2024 report errors of 0, 16.9 and 40.1% in distribution,
//! of 0, 25.6 and 100% with fewer blanks, and of 0, 85.2 and 100% with more blanks.
//!
//! ## Definition
//! A context of independent uniform symbols among blanks is followed by a sign `|` (except with `s4`) and by the
//! symbols in order, which are scored. `len` counts the tokens of the context in training.
//!
//! Settings: `preset`, and the settings of that preset.
//! * `cope`: the sizes of CoPE's authors at `len` 512. The number of blanks for each symbol (0 to 1000) is `blanks` 1
//!   in training and in the split `in-distribution`, and `blanks_dense` 0.5 and `blanks_sparse` 2 in the splits of
//!   these names. This makes 256 symbols with 256, 128 or 512 blanks. Every order of symbols and blanks is equally
//!   likely. `symbols` 15.
//! * `mad`: MAD's sizes at `len` 239, which makes 256 tokens in all. `copied` 16 symbols; all other tokens are blanks.
//!   Each blank is put before a uniformly drawn symbol, so the last token of the context is never blank. `symbols` 14.
//!   `train_samples` (left out: unlimited; MAD has 12,800) makes the training set finite.
//! * `s4`: the sizes of the S4 authors, without markers: only the length of the context shows where the answer starts.
//!   `copied` 16 symbols; every order of symbols and blanks is equally likely (Mamba's length is `len` 4112). `symbols`
//!   14.
//!
//! Slices: `copied`, the number of symbols, and `blanks`. Slices of tokens: `index` of the symbol, from 0; `distance`
//! in tokens from the symbol to its copy. Chance: `symbols` to the power of minus `copied`.
//!
//! ## Sample
//! ```text
//! _ _ _ h _ a n _ g _ _ _ m c n l | h a n g m c n l
//!                                   ^ ^ ^ ^ ^ ^ ^ ^
//! ```
//!
//! ## Source
//! Golovneva et al. 2024 (CoPE), arXiv 2405.18719: the sizes; its generator, sign and metric are not published. Poli et
//! al. 2024 (MAD), arXiv 2403.17844 (`athms/mad-lab`, `generate_copying_instance`). Gu et al. 2021 (`state-spaces/s4`,
//! `copying.py`), with the sizes of Gu, Dao 2023 (Mamba). In MAD and S4 the model reads blanks or markers while it
//! answers. Here it reads its previous answers, as in all tasks of pe-zoo.

mod presets;

use rand_chacha::ChaCha8Rng;

use crate::generator::Generator;
use crate::random::below;
use crate::strings::uniform_chance;
use crate::task::{MAX_LEN, check_range, check_setting};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta, TokenSlice};

pub use presets::{CopeSizes, MadSizes, S4Sizes, SelectiveCopyConfig};

/// Sizes of the context and token ids: the symbols, then the blank, then `|`.
/// Numbers of symbols and blanks in a context.
#[derive(Clone, Copy)]
struct ContextCounts {
    symbols: usize,
    blanks: usize,
}

impl SelectiveCopyConfig {
    fn symbols(&self) -> u32 {
        match self {
            Self::Cope(CopeSizes { symbols, .. })
            | Self::Mad(MadSizes { symbols, .. })
            | Self::S4(S4Sizes { symbols, .. }) => *symbols,
        }
    }

    fn blank(&self) -> u32 {
        self.symbols()
    }

    fn sign(&self) -> Option<u32> {
        (!matches!(self, Self::S4(_))).then_some(self.symbols() + 1)
    }

    /// Numbers of symbols and blanks in a context of the split with this number.
    fn counts(&self, split: usize, len: usize) -> ContextCounts {
        match self {
            Self::Cope(CopeSizes { blanks, blanks_dense, blanks_sparse, .. }) => {
                let symbols = (len as f64 / (1.0 + blanks)).round() as usize;
                // A length of 0 is refused later, by its range.
                let symbols = symbols.clamp(1, len.max(1));
                let of = |blanks: f64| (symbols as f64 * blanks).round() as usize;
                let blanks = match split {
                    0 => len.saturating_sub(symbols),
                    1 => of(*blanks_dense),
                    _ => of(*blanks_sparse),
                };
                ContextCounts { symbols, blanks }
            }
            Self::Mad(MadSizes { copied, .. }) | Self::S4(S4Sizes { copied, .. }) => {
                ContextCounts { symbols: *copied, blanks: len.saturating_sub(*copied) }
            }
        }
    }

    /// Number of tokens of a sequence with these counts.
    fn tokens(&self, counts: ContextCounts) -> usize {
        let ContextCounts { symbols, blanks } = counts;
        let sign = usize::from(self.sign().is_some());
        symbols.saturating_mul(2).saturating_add(blanks).saturating_add(sign)
    }

    /// Appends a context.
    fn draw_context(&self, counts: ContextCounts, tokens: &mut Vec<u32>, rng: &mut ChaCha8Rng) {
        let ContextCounts { symbols, blanks } = counts;
        if let Self::Mad(_) = self {
            let mut before = vec![0; symbols];
            for _ in 0..blanks {
                before[below(rng, symbols as u32) as usize] += 1;
            }
            for count in before {
                tokens.resize(tokens.len() + count, self.blank());
                tokens.push(below(rng, self.symbols()));
            }
            return;
        }
        let mut left = symbols as u32;
        for slots in (1..=(symbols + blanks) as u32).rev() {
            // A symbol with the share of symbols in the rest: all orders are equally likely.
            let is_symbol = below(rng, slots) < left;
            left -= u32::from(is_symbol);
            tokens.push(if is_symbol { below(rng, self.symbols()) } else { self.blank() });
        }
    }

    /// Indices of the symbols in the context of a sample.
    fn places<'a>(&self, sample: &'a Sample) -> impl Iterator<Item = usize> + use<'a> {
        let blank = self.blank();
        let context = sample.scored.iter().position(|scored| *scored).unwrap_or(0);
        (0..context).filter(move |t| sample.tokens[*t] < blank)
    }
}

impl Generator for SelectiveCopyConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "selective-copy",
        label: "Selective copy",
        summary: "Repeat the symbols of a sequence without its blanks.",
        source: "Golovneva et al. 2024 (CoPE), arXiv 2405.18719",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("selective_copy.rs");
    const SPLITS: &'static [Split] = &[
        Split::as_trained("in-distribution", "As many blanks as in training."),
        Split::shifted("dense", "Fewer blanks between the symbols."),
        Split::shifted("sparse", "More blanks between the symbols."),
    ];

    fn check(&self) -> Result<(), TaskError> {
        match self {
            Self::Cope(CopeSizes { blanks, blanks_dense, blanks_sparse, .. }) => {
                let fields = ["blanks", "blanks_dense", "blanks_sparse"];
                for (field, value) in fields.into_iter().zip([blanks, blanks_dense, blanks_sparse])
                {
                    check_setting(Self::META, field, *value, &(0.0..=1000.0))?;
                }
            }
            Self::Mad(MadSizes { copied, .. }) | Self::S4(S4Sizes { copied, .. }) => {
                check_setting(Self::META, "copied", *copied, &(1..=MAX_LEN))?;
            }
        }
        if let Some(count) = self.train_samples() {
            check_setting(Self::META, "train_samples", count, &(1..=u32::MAX))?;
        }
        check_setting(Self::META, "symbols", self.symbols(), &(2..=1 << 16))
    }

    fn splits(&self) -> &'static [Split] {
        match self {
            Self::Cope(_) => Self::SPLITS,
            Self::Mad(_) | Self::S4(_) => &Self::SPLITS[..1],
        }
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        let signs: &[&str] = if self.sign().is_some() { &["_", "|"] } else { &["_"] };
        vec![TokenGroup::symbols(self.symbols()), TokenGroup::Signs(signs)]
    }

    fn max_tokens(&self, len: usize) -> usize {
        let of_split = |split| self.tokens(self.counts(split, len));
        (0..self.splits().len()).map(of_split).max().unwrap_or(0)
    }

    fn max_train_tokens(&self, len: usize) -> usize {
        self.tokens(self.counts(0, len))
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        let (least, why) = match self {
            // In a shorter context the number of symbols is rounded to 0.
            Self::Cope(CopeSizes { blanks, .. }) => (
                ((1.0 + blanks) / 2.0).ceil() as usize,
                "the minimum fits one symbol with its blanks",
            ),
            Self::Mad(MadSizes { copied, .. }) | Self::S4(S4Sizes { copied, .. }) => {
                (*copied, "the minimum fits the symbols that are copied, without blanks")
            }
        };
        check_range(Self::META, len, least, why)
    }

    fn train_samples(&self) -> Option<u32> {
        match self {
            Self::Mad(MadSizes { train_samples, .. }) => *train_samples,
            _ => None,
        }
    }

    fn sample(&self, split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let counts = self.counts(split, len);
        let ContextCounts { symbols, blanks } = counts;
        let mut tokens = Vec::with_capacity(self.tokens(counts));
        self.draw_context(counts, &mut tokens, rng);
        tokens.extend(self.sign());
        let asked_from = tokens.len();
        for t in 0..symbols + blanks {
            if tokens[t] != self.blank() {
                tokens.push(tokens[t]);
            }
        }
        let slices = vec![("copied", symbols as u32), ("blanks", blanks as u32)];
        Sample::scored_from(asked_from, tokens, slices)
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        let answers = (0..sample.tokens.len()).filter(|t| sample.scored[*t]);
        let distances = answers.zip(self.places(sample)).map(|(t, place)| (t - place) as u32);
        let distances: Vec<u32> = distances.collect();
        vec![("index", (0..distances.len() as u32).collect()), ("distance", distances)]
    }

    /// Marks every symbol, including those of the answer so far: the number of symbols between a symbol and its copy
    /// is constant.
    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        Some(sample.tokens.iter().map(|token| *token < self.blank()).collect())
    }

    /// The numbers of symbols and blanks are rounded, so that lengths may share them.
    fn has_trained_size(&self, sample: &Sample, _len: usize, train_len: usize) -> bool {
        let ContextCounts { symbols, blanks } = self.counts(0, train_len);
        let trained = [symbols, blanks];
        sample.slices.iter().zip(trained).all(|((_, count), most)| *count as usize <= most)
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        Some(uniform_chance(self.symbols(), self.counts(0, len).symbols))
    }
}

#[cfg(test)]
pub(crate) mod tests;

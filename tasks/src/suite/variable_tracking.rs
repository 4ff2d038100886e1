//! # Variable tracking: all variables with a given value
//! ## What it asks of an encoding
//! Following a chain of statements, each of which names the previous one: finding by content repeatedly, over distances
//! without pattern. One layer follows one link.
//!
//! ## Predicted order
//! As in needle, with larger differences, since every link must hold: encodings that find by content at any distance
//! (NoPE, CoPE) before RoPE before learned tables, beyond the trained lengths; ALiBi only for short spans. No published
//! comparison of encodings.
//!
//! ## Definition
//! Filler with `chains` chains of statements at uniform positions in it: `x = v`, with a different value for each
//! chain, then `hops` times `y = x` with the previous name and a new one. A chain's statements are in order, those of
//! different chains interleaved; all names differ. At the end `? v` for one chain, its names in order and `;`, which
//! are scored. The filler is five short sentences repeated (`sentences`) or random words from them (`words`). `len`
//! counts all tokens.
//!
//! Settings: `chains` 2 (one chain is solved by copying the token before each `=`), `hops` 2, `names` 64, `values` 64
//! (both at most 65536), `filler` `sentences`. Slices, of the chain in the question: `span`, tokens from its first
//! statement to its last, and `distance`, tokens from its first statement to its first name in the answer. Slice of
//! tokens: `hop`, 0 for the first name; the `;` has the one after the last. Chance: one over the number of ordered
//! choices of `hops + 1` names.
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
use serde::{Deserialize, Serialize};

use crate::generator::{Generator, one_of_orders};
use crate::haystack::{FILLER, FILLER_TOKENS, Filler, hide};
use crate::random::{below, distinct, shuffle};
use crate::task::{check_between, check_range, check_setting, invalid};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta, TokenSlice};

const ASK: u32 = FILLER_TOKENS;
const EQUALS: u32 = FILLER_TOKENS + 1;
const END: u32 = FILLER_TOKENS + 2;
const NAME: u32 = FILLER_TOKENS + 3;

/// Settings of variable tracking. Token ids: the filler's words, `?`, `=`, `;`, the names, the values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VariableTrackingConfig {
    /// Number of chains, 1 to `values`.
    pub chains: u32,
    /// Assignments of a variable to another in each chain, 1 to 1024.
    pub hops: u32,
    /// Number of names, 2 to 65536; all chains together need `chains * (hops + 1)`.
    pub names: u32,
    /// Number of values, 1 to 65536.
    pub values: u32,
    /// Text around the statements.
    pub filler: Filler,
}

impl Default for VariableTrackingConfig {
    fn default() -> Self {
        Self { chains: 2, hops: 2, names: 64, values: 64, filler: Filler::Sentences }
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
        check_between(Self::META, "chains", self.chains, &(1..=self.values), "the setting values")?;
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
        let why = "the statements and the question without filler";
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

#[cfg(test)]
pub(crate) mod tests;

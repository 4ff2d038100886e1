//! # Variable tracking: who got the value?
//! ## What it asks of an encoding
//! To follow a chain of statements, each of which names the one before: find by content, again and again, over
//! distances without pattern. One layer follows one link.
//!
//! ## Predicted order
//! As in needle, and steeper, since every link must hold: encodings that find by content at any distance (NoPE, CoPE)
//! before RoPE, before learned tables, beyond the trained lengths; ALiBi only for short spans. Nothing is published for encodings side by side.
//!
//! ## Definition
//! Filler, and in it `chains` chains of statements at uniform places: `x = v`, a value of its own for each chain, then
//! `hops` times `y = x` with the name before and a new one. A chain's statements come in order, those of different
//! chains mixed; all names differ. At the end `? v` for one chain, its names in order and `;`, which are scored. The
//! filler is five short sentences over and over (`sentences`) or random words of theirs (`words`). `len` counts all
//! tokens.
//!
//! Settings: `chains` 1, `hops` 2, `names` 64, `values` 64 (both at most 65536), `filler` `sentences`. Slices, of the
//! chain asked for: `span`, tokens from its first statement to its last, and `distance`, tokens from its first
//! statement to its first name in the answer. Slice of tokens: `hop`, 0 for the first name; the `;` has the one after
//! the last. Chance: one over the number of ordered choices of `hops + 1` names.
//!
//! ## Sample
//! ```text
//! the tide is low . the gulls are loud . the x41 = 29 rope x45 = x41 is wet .
//! x46 = x45 a bell rings . we row ? 29 x41 x45 x46 ;
//!                                      ^^^ ^^^ ^^^ ^
//! ```
//!
//! ## Source
//! Hsieh et al.: RULER, 2024, arXiv 2404.06654, task `vt` (1 chain, 4 hops, names of 5 letters, numbers of 5 digits,
//! the answer in any order). Theirs is English for trained language models; here words, names and numbers are tokens,
//! so that a small model learns the task from nothing, and the order is the chain's.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generated, Generator, one_of_orders};
use crate::haystack::{FILLER_TOKENS, Filler, filler_text, hide};
use crate::random::{below, distinct, shuffle};
use crate::task::{check_range, check_setting, invalid};
use crate::{Headline, Sample, Split, TaskError, TaskMeta, TokenSlice};

/// What is true of variable tracking whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "variable-tracking",
    label: "Variable tracking",
    version: 1,
    headline: Headline::ExactMatch,
    len_unit: "tokens",
    summary: "Name all variables that a value was handed on to.",
    source: "Hsieh et al. 2024 (RULER), arXiv 2404.06654",
    takes_path: false,
};

const SPLITS: &[Split] = &[Split {
    name: "uniform",
    in_distribution: true,
    about: "The statements at uniform places of the filler.",
}];

const ASK: u32 = FILLER_TOKENS;
const EQUALS: u32 = FILLER_TOKENS + 1;
const END: u32 = FILLER_TOKENS + 2;
const NAME: u32 = FILLER_TOKENS + 3;

/// Settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VariableTrackingConfig {
    /// How many chains, 1 to `values`.
    pub chains: u32,
    /// How often a value is handed on in each, 1 to 1024.
    pub hops: u32,
    /// How many names there are, 2 to 65536; all chains together need `chains * (hops + 1)`.
    pub names: u32,
    /// How many values there are, 1 to 65536.
    pub values: u32,
    /// What stands around the statements.
    pub filler: Filler,
}

impl Default for VariableTrackingConfig {
    fn default() -> Self {
        Self { chains: 1, hops: 2, names: 64, values: 64, filler: Filler::Sentences }
    }
}

impl VariableTrackingConfig {
    /// Checks the settings and makes the task.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] for a setting out of range.
    pub fn build(&self) -> Result<Generated<VariableTracking>, TaskError> {
        check_setting(&META, "values", self.values, &(1..=1 << 16))?;
        check_setting(&META, "hops", self.hops, &(1..=1024))?;
        if !(1..=self.values).contains(&self.chains) {
            let expected = format!("between 1 and {}, the setting values", self.values);
            return Err(invalid(&META, "chains", &self.chains, expected));
        }
        let needed = u64::from(self.chains) * u64::from(self.hops + 1);
        if !(needed..=1 << 16).contains(&self.names.into()) {
            let expected = format!(
                "between {needed}, which {} chains with {} hops need, and 65536",
                self.chains, self.hops
            );
            return Err(invalid(&META, "names", &self.names, expected));
        }
        Ok(Generated(VariableTracking { settings: self.clone() }))
    }
}

/// The variable tracking task. Token ids: the filler's words, `?`, `=`, `;`, the names, the values.
#[derive(Debug, Clone)]
pub struct VariableTracking {
    settings: VariableTrackingConfig,
}

impl VariableTracking {
    /// Names of one chain.
    fn links(&self) -> usize {
        self.settings.hops as usize + 1
    }

    /// All statements, the question and its answer.
    fn own_tokens(&self) -> usize {
        let statements = self.settings.chains as usize * self.links();
        3 * statements + 2 + self.links() + 1
    }

    fn first_value(&self) -> u32 {
        NAME + self.settings.names
    }
}

impl Generator for VariableTracking {
    const META: &'static TaskMeta = &META;

    fn splits(&self) -> &'static [Split] {
        SPLITS
    }

    fn vocab_size(&self) -> usize {
        (self.first_value() + self.settings.values) as usize
    }

    fn token_text(&self, token: u32) -> String {
        match token {
            ASK => "?".to_owned(),
            EQUALS => "=".to_owned(),
            END => ";".to_owned(),
            _ if token as usize >= self.vocab_size() => "?".to_owned(),
            _ if token >= self.first_value() => (token - self.first_value()).to_string(),
            _ => filler_text(token).unwrap_or_else(|| format!("x{}", token - NAME)),
        }
    }

    fn max_tokens(&self, len: usize) -> usize {
        len
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(&META, len, self.own_tokens(), "the statements and the question without filler")
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let VariableTrackingConfig { chains, names, values, filler, .. } = self.settings;
        let links = self.links();
        let mut drawn = distinct(rng, chains as usize * links, names);
        for name in &mut drawn {
            *name += NAME;
        }
        let values = distinct(rng, chains as usize, values);
        // Whose turn it is, statement by statement.
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
        Some(one_of_orders(self.links(), self.settings.names))
    }
}

#[cfg(test)]
pub(crate) mod tests;

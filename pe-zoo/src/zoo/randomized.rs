//! # Randomized: random positions under any encoding that reads them
//!
//! ## What it does
//! Gives the tokens of each training pass random positions, in order, from a range much longer than
//! any training sequence. The encodings in brackets use them instead of 0, 1, 2 and so on, so that
//! large positions and distances also occur in training.
//!
//! ## Formula
//! `p[0] < p[1] < … < p[N-1]`, drawn without replacement from `0..longest`, all subsets equally
//! likely.
//!
//! ## Shapes
//! `positions`: one position per token.
//!
//! ## Settings
//! `longest` (2048, as in the authors' code): positions are drawn from `0..longest`. It must hold
//! the longest sequence of the run. Encodings in the brackets are built for it:
//! tables have that many rows.
//! `evaluation`: `{ type = "sampled", seed = s }` (default, seed 0; as in training, one draw for
//! each number of tokens), `{ type = "spread" }` (evenly over the range, `floor(i longest / N)`), or
//! `{ type = "contiguous" }` (0, 1, 2 and so on).
//!
//! Written as `randomized(rope)`; without brackets it acts on RoPE. Decoding requests positions at
//! every step: with `sampled` and `spread` they change as the sequence grows, with `contiguous`
//! they do not.
//!
//! ## Deviations
//! The authors also draw new positions for every evaluation pass; here evaluation is deterministic.
//! Their relative encoding draws from `1..longest`; here every encoding sees the same positions.
//!
//! ## References
//! Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of Transformers",
//! arXiv 2305.16843; authors' code `google-deepmind/randomized_positional_encodings` at e8c64749d8.

use burn::module::Module;
use burn::tensor::Device;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use crate::card::{Card, Composition};
use crate::encoding::PositionRequest;
use crate::reference::ScalarReference;
use crate::{Cost, Dims, PeError, PositionEncoding, Positions};

/// Positions of tokens in evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Evaluation {
    /// Positions 0, 1, 2 and so on.
    Contiguous {},
    /// Random positions, the same for the same number of tokens.
    Sampled {
        /// Seed of the random positions.
        seed: u64,
    },
    /// Positions spaced evenly over the range.
    Spread {},
}

/// Settings of randomized positions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomizedConfig {
    /// Upper end of the range: positions are drawn from `0..longest`.
    pub longest: usize,
    /// Positions of tokens in evaluation.
    pub evaluation: Evaluation,
}

impl Default for RandomizedConfig {
    fn default() -> Self {
        Self { longest: 2048, evaluation: Evaluation::Sampled { seed: 0 } }
    }
}

/// Random positions for the encodings in the brackets.
#[derive(Module, Debug)]
pub struct Randomized {
    #[module(skip)]
    longest: usize,
    #[module(skip)]
    evaluation: Evaluation,
}

impl Randomized {
    /// Draws `tokens` positions so that every subset is equally likely: in ascending order, each
    /// candidate is taken with probability (positions still needed) / (candidates left).
    fn sample(&self, tokens: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        let mut chosen = Vec::with_capacity(tokens);
        for position in 0..self.longest {
            let (needed, left) = (tokens - chosen.len(), self.longest - position);
            if rng.random_range(0..left) < needed {
                chosen.push(position);
            }
        }
        chosen
    }
}

impl PositionEncoding for Randomized {
    type Settings = RandomizedConfig;

    const CARD: Card = Card {
        id: "randomized",
        label: "Randomized",
        summary: "Gives tokens random positions, in order, from a range longer than any sequence.",
        parameters: "0",
        paper: "Ruoss et al. 2023",
        url: "https://arxiv.org/abs/2305.16843",
    };

    fn composition(_settings: &RandomizedConfig) -> Composition {
        Composition::Over { default: "rope" }
    }

    fn dims_beside(settings: &RandomizedConfig, dims: &Dims) -> Dims {
        let [train_len, max_len] =
            [dims.train_len, dims.max_len].map(|len| len.max(settings.longest));
        Dims { train_len, max_len, ..*dims }
    }

    fn check(settings: &RandomizedConfig, dims: &Dims) -> Result<(), PeError> {
        let longest = settings.longest;
        let expected = format!("at least {}, the longest sequence of the run", dims.max_len);
        PeError::require(longest >= dims.max_len, Self::CARD.id, "longest", longest, expected)
    }

    fn build(
        settings: &RandomizedConfig,
        _dims: &Dims,
        _rng: &mut ChaCha8Rng,
        _device: &Device,
    ) -> Result<Self, PeError> {
        Ok(Randomized { longest: settings.longest, evaluation: settings.evaluation })
    }

    fn cost(_: &RandomizedConfig, _: &Dims, _: usize) -> Option<Cost> {
        Some(Cost::none())
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
        let PositionRequest { cached_tokens, new_tokens, training_rng } = request;
        let tokens = cached_tokens + new_tokens;
        if tokens > self.longest {
            return Err(PeError::Positions {
                reason: format!(
                    "{tokens} tokens, expected at most {}, from which {} draws; raise its `longest`",
                    self.longest,
                    Randomized::CARD.id
                ),
            });
        }
        let cols = match (training_rng, self.evaluation) {
            (Some(rng), _) => self.sample(tokens, rng),
            (None, Evaluation::Contiguous {}) => (0..tokens).collect(),
            (None, Evaluation::Sampled { seed }) => {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                // Sequences of different lengths use different random streams.
                rng.set_stream(tokens as u64);
                self.sample(tokens, &mut rng)
            }
            (None, Evaluation::Spread {}) => {
                (0..tokens).map(|token| token * self.longest / tokens).collect()
            }
        };
        Positions::new(cols, cached_tokens)
    }
}

impl ScalarReference for Randomized {}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Combination;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on query, key, positions; shift invariant",
        texts: &[
            "randomized",
            "randomized{longest=99,evaluation={type=spread}}",
            "randomized{longest=70,evaluation={type=contiguous}}",
        ],
    }];

    fn randomized(longest: usize, evaluation: Evaluation) -> Randomized {
        Randomized { longest, evaluation }
    }

    fn ask(pe: &Randomized, tokens: usize, rng: Option<&mut ChaCha8Rng>) -> Vec<usize> {
        let request = PositionRequest { cached_tokens: 0, new_tokens: tokens, training_rng: rng };
        pe.positions(request).unwrap().cols().to_vec()
    }

    #[test]
    fn a_range_as_long_as_the_sequence_leaves_the_encoding_beneath_as_it_is() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for evaluation in
            [Evaluation::Contiguous {}, Evaluation::Sampled { seed: 3 }, Evaluation::Spread {}]
        {
            let pe = randomized(11, evaluation);
            let plain = (0..11).collect::<Vec<_>>();
            assert_eq!(ask(&pe, 11, None), plain);
            assert_eq!(ask(&pe, 11, Some(&mut rng)), plain);
        }
    }

    #[test]
    fn every_position_is_as_likely_as_every_other_and_draws_are_fresh() {
        let pe = randomized(20, Evaluation::Contiguous {});
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut counts = [0_u32; 20];
        let draws = (0..4000).map(|_| ask(&pe, 5, Some(&mut rng))).collect::<Vec<_>>();
        for draw in &draws {
            assert!(draw.len() == 5 && draw.is_sorted_by(|a, b| a < b), "{draw:?}");
            for position in draw {
                counts[*position] += 1;
            }
        }
        assert_ne!(draws[0], draws[1]);
        // The expected count is 1000 each, the standard deviation 27.
        assert!(counts.iter().all(|count| count.abs_diff(1000) < 140), "{counts:?}");
    }

    #[test]
    fn evaluation_follows_its_rule_and_repeats() {
        let sampled = randomized(50, Evaluation::Sampled { seed: 1 });
        assert_eq!(ask(&sampled, 9, None), ask(&sampled, 9, None));
        let other = randomized(50, Evaluation::Sampled { seed: 2 });
        assert_ne!(ask(&sampled, 9, None), ask(&other, 9, None));
        assert_eq!(ask(&randomized(50, Evaluation::Spread {}), 4, None), [0, 12, 25, 37]);
        assert_eq!(ask(&randomized(50, Evaluation::Contiguous {}), 3, None), [0, 1, 2]);
    }

    #[test]
    fn tables_beneath_have_rows_for_the_whole_range() {
        let dims = Dims { layers: 1, heads: 1, head_dim: 4, train_len: 8, max_len: 16 };
        let pe = Combination::parse("randomized{longest=100}(learned-absolute)").unwrap();
        assert_eq!(pe.param_count(&dims), Some(100 * 4));
        let short = Combination::parse("randomized{longest=10}(rope)").unwrap();
        let error = short.check(&dims).unwrap_err().to_string();
        assert!(error.contains("longest is 10") && error.contains("at least 16"), "{error}");
        let request = PositionRequest { cached_tokens: 0, new_tokens: 51, training_rng: None };
        let error = randomized(50, Evaluation::Spread {}).positions(request).unwrap_err();
        assert!(error.to_string().contains("raise its `longest`"), "{error}");
    }
}

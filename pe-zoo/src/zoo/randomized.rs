//! # Randomized: random positions under any encoding that reads them
//!
//! ## What it does
//! Gives the tokens of each training pass random positions, in order, from a range much longer than
//! any training sequence. The encodings in brackets use them instead of 0, 1, 2 and so on, so that
//! large positions and distances also occur in training.
//!
//! ## Formula
//! `p[0] < p[1] < … < p[N-1]`, drawn without replacement from `0..longest`, all subsets equally
//! likely. Real positions: `N` different numbers of the grid `0, 1/steps, 2/steps, …` below `longest`, in ascending order.
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
//! `positions`: `{ type = "whole" }` (default) or `{ type = "real", steps = 1024 }`, positions of real value (random float
//! sampling), on a grid of `steps` numbers per unit. Under `spread` they are `i longest / N`. RoPE and ALiBi read them, and
//! encodings that ignore positions; others are refused.
//!
//! Written as `randomized(rope)`; without brackets it acts on RoPE. Decoding requests positions at
//! every step: with `sampled` and `spread` they change as the sequence grows, with `contiguous`
//! they do not.
//!
//! ## Deviations
//! The authors also draw new positions for every evaluation pass; here evaluation is deterministic. Their relative
//! encoding draws from `1..longest`; here every encoding sees the same positions. Random float sampling draws real
//! numbers; here they are on a fine grid, and no two tokens share a number.
//!
//! ## References
//! Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of Transformers",
//! arXiv 2305.16843; authors' code `google-deepmind/randomized_positional_encodings` at e8c64749d8. Real positions: Shimizu et al.
//! 2026, "Position Encoding with Random Float Sampling Enhances Length Generalization of Transformers", arXiv 2602.14050.

use std::collections::BTreeSet;

use burn::module::Module;
use burn::tensor::Device;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use crate::card::{Card, Composition};
use crate::encoding::PositionRequest;
use crate::reference::ScalarReference;
use crate::settings::{check_size, is_default};
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

/// Numbers from which positions are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PositionGrid {
    /// Whole numbers, each a position.
    #[default]
    Whole,
    /// Real numbers on a fine grid.
    Real {
        /// Numbers per unit of position.
        #[serde(default = "fine")]
        steps: usize,
    },
}

fn fine() -> usize {
    1024
}

impl PositionGrid {
    fn steps(self) -> usize {
        match self {
            Self::Whole => 1,
            Self::Real { steps } => steps,
        }
    }
}

/// Largest number of the grid: differences of two are exact in f32.
const LARGEST_NUMBER: usize = 1 << 24;

/// Settings of randomized positions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomizedConfig {
    /// Upper end of the range: positions are drawn from `0..longest`.
    pub longest: usize,
    /// Positions of tokens in evaluation.
    pub evaluation: Evaluation,
    /// Numbers from which positions are drawn.
    #[serde(skip_serializing_if = "is_default")]
    pub positions: PositionGrid,
}

impl Default for RandomizedConfig {
    fn default() -> Self {
        let evaluation = Evaluation::Sampled { seed: 0 };
        Self { longest: 2048, evaluation, positions: PositionGrid::Whole }
    }
}

/// Random positions for the encodings in the brackets.
#[derive(Module, Debug)]
pub struct Randomized {
    #[module(skip)]
    longest: usize,
    #[module(skip)]
    evaluation: Evaluation,
    #[module(skip)]
    grid: PositionGrid,
}

impl Randomized {
    /// Draws `tokens` numbers of the grid.
    fn draw(&self, tokens: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        match self.grid {
            PositionGrid::Whole => self.sample(tokens, rng),
            PositionGrid::Real { steps } => {
                let mut chosen = BTreeSet::new();
                while chosen.len() < tokens {
                    chosen.insert(rng.random_range(0..self.longest * steps));
                }
                chosen.into_iter().collect()
            }
        }
    }

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
        summary: "Gives tokens random positions, in ascending order, from a range longer than any sequence.",
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
        let (pe, longest, steps) = (Self::CARD.id, settings.longest, settings.positions.steps());
        check_size(pe, "positions.steps", steps)?;
        let expected = format!("at least {}, the longest sequence of the run", dims.max_len);
        PeError::require(longest >= dims.max_len, pe, "longest", longest, expected)?;
        let expected = format!(
            "at most {}, because `longest` is {longest} and f32 distinguishes only {LARGEST_NUMBER} positions",
            LARGEST_NUMBER / longest.max(1)
        );
        let fits = longest.saturating_mul(steps) <= LARGEST_NUMBER || steps == 1;
        PeError::require(fits, pe, "positions.steps", steps, expected)
    }

    fn build(
        settings: &RandomizedConfig,
        _dims: &Dims,
        _rng: &mut ChaCha8Rng,
        _device: &Device,
    ) -> Result<Self, PeError> {
        let RandomizedConfig { longest, evaluation, positions } = *settings;
        Ok(Randomized { longest, evaluation, grid: positions })
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
                    "{tokens} tokens, expected at most {}, the number of positions from which {} draws; raise its \
                     `longest`",
                    self.longest,
                    Randomized::CARD.id
                ),
            });
        }
        let steps = self.grid.steps();
        let cols = match (training_rng, self.evaluation) {
            (Some(rng), _) => self.draw(tokens, rng),
            (None, Evaluation::Contiguous {}) => (0..tokens).map(|token| token * steps).collect(),
            (None, Evaluation::Sampled { seed }) => {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                // Sequences of different lengths use different random streams.
                rng.set_stream(tokens as u64);
                self.draw(tokens, &mut rng)
            }
            (None, Evaluation::Spread {}) => {
                (0..tokens).map(|token| token * self.longest * steps / tokens).collect()
            }
        };
        Ok(Positions::new(cols, cached_tokens)?.in_steps(steps))
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
            "randomized{longest=99,positions={type=real,steps=64}}",
            "randomized{longest=99,positions={type=real,steps=3},evaluation={type=spread}}",
        ],
    }];

    fn randomized(longest: usize, evaluation: Evaluation) -> Randomized {
        Randomized { longest, evaluation, grid: PositionGrid::Whole }
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

    /// Draws of real positions: all over the range, at distances that are not whole.
    #[test]
    fn real_positions_are_fresh_numbers_of_the_grid() {
        let grid = PositionGrid::Real { steps: 1000 };
        let pe = Randomized { longest: 20, evaluation: Evaluation::Spread {}, grid };
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let mut sum = 0;
        for _ in 0..2000 {
            let draw = ask(&pe, 5, Some(&mut rng));
            assert!(draw.len() == 5 && draw.is_sorted_by(|a, b| a < b) && draw[4] < 20_000);
            sum += draw.iter().sum::<usize>();
        }
        // Expected: 10 each; the standard deviation of the mean of 10,000 draws is 0.06.
        assert!((sum as f64 / 10_000.0 / 1000.0 - 10.0).abs() < 0.3, "{sum}");
        assert_eq!(ask(&pe, 3, None), [0, 6666, 13_333]);
        let request = PositionRequest { cached_tokens: 0, new_tokens: 3, training_rng: None };
        assert_eq!(pe.positions(request).unwrap().steps(), 1000);
    }

    #[test]
    fn encodings_that_read_whole_positions_are_refused_beneath_real_ones() {
        let parse = |inner: &str| {
            Combination::parse(&format!("randomized{{positions={{type=real}}}}({inner})"))
        };
        for inner in
            ["rope", "alibi", "rope+fox", "alibi/rope", "rope{far={type=constant,window=3}}"]
        {
            parse(inner).unwrap();
        }
        for inner in ["t5-bias", "learned-absolute", "kerple", "rope+temperature", "rope/fire"] {
            let error = parse(inner).unwrap_err().to_string();
            assert!(error.contains("fractional"), "{inner}: {error}");
        }
        let fine =
            Combination::parse("randomized{positions={type=real,steps=9000}}(rope)").unwrap();
        let dims = Dims { layers: 1, width: 4, heads: 1, head_dim: 4, train_len: 8, max_len: 16 };
        let error = fine.check(&dims).unwrap_err().to_string();
        assert!(error.contains("positions.steps is 9000, expected at most 8192"), "{error}");
    }

    #[test]
    fn tables_beneath_have_rows_for_the_whole_range() {
        let dims = Dims { layers: 1, width: 4, heads: 1, head_dim: 4, train_len: 8, max_len: 16 };
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

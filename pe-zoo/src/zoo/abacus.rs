//! # Abacus: digits numbered within their number
//!
//! ## What it does
//! Counts the digits of each number from its first one and adds a learned vector for that count. If
//! numbers are written backwards, the count is the place value of the digit. In training all counts
//! are shifted by one random offset, so that later rows of the table are learned too.
//!
//! ## Formula
//! `index[n] = 0` for a token that is not a digit; `1, 2, 3, … + k` from the first to the last of
//! each run of digits, at most `size - 1`; `x[n] += table[index[n]]`; `k` uniform on
//! `0..=max_offset` for each training batch, 0 in evaluation.
//!
//! ## Shapes
//! `embed: [B, T, C] -> [B, T, C]`; table `[size, C]`.
//!
//! ## Settings
//! `size` (1024, the authors'): rows of the table.
//! `digits` (`[0, 9]`, those of the task `addition`): first and last id of the ten digits in the vocabulary of the task
//! or the tokenizer.
//! `max_offset` (99, the authors').
//! `beyond`: `last-row` (default) or `refuse`: the treatment of a run that is longer than the table.
//! `std` (default `C^(-1/2)`, the deviation of the model's own token embeddings).
//!
//! ## Initial values
//! Table: normal with deviation `std`. The authors' tables of digits and tokens both have deviation 1; here both have
//! `C^(-1/2)`.
//!
//! ## Deviations
//! The offset is the position of the first column: `positions` draws it, so that an attention
//! encoding combined with it is shifted as well and any positions can be requested. The authors'
//! code fails at a run that is longer than the table; here its digits share the last row, or, with
//! `refuse`, a sequence long enough to contain such a run is an error before anything is computed.
//! The authors' table is initialised with standard deviation 1, like their token embeddings.
//!
//! ## References
//! McLeish et al. 2024, "Transformers Can Do Arithmetic with the Right Embeddings", arXiv 2405.17399;
//! authors' code `mcleish7/arithmetic` `abacus.py` at 86022a57d3.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::{EmbedContext, PositionRequest};
use crate::reference::{ScalarReference, Tokens, absolute, table_f64};
use crate::settings::check_not_below_zero;
use crate::{Cost, Dims, PeError, PositionEncoding, Positions, init};

/// Treatment of a run of digits that is longer than the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LongNumber {
    /// The digits past the end of the table share its last row.
    #[default]
    LastRow,
    /// Sequences long enough to hold such a run are refused.
    Refuse,
}

crate::settings! {
    /// Settings of Abacus embeddings.
    pub struct AbacusConfig {
        /// Number of rows of the table; row 0 is for every token that is not a digit.
        pub size: usize = 1024,
        /// First and last id of the digits, both included.
        pub digits: [usize; 2] = [0, 9],
        /// Largest offset drawn in training.
        pub max_offset: usize = 99,
        /// Treatment of a run of digits that is longer than the table.
        pub beyond: LongNumber = LongNumber::LastRow,
        /// Standard deviation of the initial table; `None`: `C^(-1/2)`.
        pub std: Option<f64> = None,
    }
}

/// Table of learned vectors, indexed by the place of each digit in its run.
#[derive(Module, Debug)]
pub struct Abacus {
    /// Learned vectors of the places, `[size, C]`.
    pub table: Param<Tensor<2>>,
    #[module(skip)]
    config: AbacusConfig,
}

impl Abacus {
    /// Number that is added to digit indices: the first position, as far as offsets are trained. Other encodings may choose
    /// positions far beyond.
    fn offset(&self, positions: &[usize]) -> usize {
        positions.first().map_or(0, |first| *first.min(&self.config.max_offset))
    }

    /// Row of the table for each token, `[B, S]`.
    fn indices(&self, tokens: &Tensor<2, Int>, offset: usize) -> Tensor<2, Int> {
        let [_batch, columns] = tokens.dims();
        let [size, _width] = self.table.val().dims();
        let [first, last] = self.config.digits.map(|id| id as i64);
        let digit = tokens
            .clone()
            .greater_equal_elem(first)
            .bool_and(tokens.clone().lower_equal_elem(last))
            .int();
        let place = Tensor::arange(1..columns as i64 + 1, &tokens.device()).unsqueeze::<2>();
        // Index of the last token that is not a digit; 0 before the first one.
        let before = (place.clone() * (digit.clone().neg() + 1)).cummax(1);
        let within = place - before;
        ((within + offset as i64).clamp_max(size as i64 - 1)) * digit
    }
}

impl PositionEncoding for Abacus {
    type Settings = AbacusConfig;

    const CARD: Card = Card {
        id: "abacus",
        label: "Abacus",
        summary: "Adds to each digit a learned vector for its place within the number.",
        parameters: "size C",
        paper: "McLeish et al. 2024",
        url: "https://arxiv.org/abs/2405.17399",
    };

    fn check(settings: &AbacusConfig, dims: &Dims) -> Result<(), PeError> {
        let pe = Self::CARD.id;
        let [first, last] = settings.digits;
        let expected = "the first and the last id, in this order";
        PeError::require(first <= last, pe, "digits", format!("{first}, {last}"), expected)?;
        let (rows, of) = match settings.beyond {
            LongNumber::LastRow => (settings.max_offset + 2, "one digit at the largest offset"),
            LongNumber::Refuse => (
                (dims.train_len + settings.max_offset).max(dims.max_len) + 1,
                "a number as long as the longest sequence, offset included",
            ),
        };
        let expected = format!("at least {rows}, for row 0 and {of}");
        PeError::require(settings.size >= rows, pe, "size", settings.size, expected)?;
        check_not_below_zero(pe, "std", settings.std)
    }

    fn build(
        settings: &AbacusConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let std = settings.std.unwrap_or((dims.width as f64).powf(-0.5));
        let table = init::normal(std, [settings.size, dims.width], rng, device);
        Ok(Abacus { table, config: settings.clone() })
    }

    fn param_count(settings: &AbacusConfig, dims: &Dims) -> Option<usize> {
        Some(settings.size * dims.width)
    }

    fn cost(_settings: &AbacusConfig, dims: &Dims, len: usize) -> Option<Cost> {
        Some(Cost::none().elementwise("sum with embeddings", len * dims.width))
    }

    fn dims_beside(settings: &AbacusConfig, dims: &Dims) -> Dims {
        Dims { max_len: dims.max_len.max(dims.train_len + settings.max_offset), ..*dims }
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
        let at = request.contiguous()?;
        Ok(match request.training_rng {
            Some(rng) => at.shifted(rng.random_range(0..=self.config.max_offset)),
            None => at,
        })
    }

    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
        let [batch, rows, width] = x.dims();
        let [_batch, columns] = ctx.tokens.dims();
        let offset = self.offset(ctx.at.cols());
        let indices = self
            .indices(ctx.tokens, offset)
            .slice_dim(1, columns - rows..columns)
            .reshape([batch * rows]);
        x + self.table.val().select(0, indices).reshape([batch, rows, width])
    }

    fn max_len(&self) -> Option<usize> {
        let [size, _width] = self.table.val().dims();
        match self.config.beyond {
            LongNumber::LastRow => None,
            // A run over all columns up to position `p` ends at row `p + 1`.
            LongNumber::Refuse => Some(size - 1),
        }
    }
}

impl ScalarReference for Abacus {
    fn scalar_embed(&self, x: &Tokens, ids: &[usize], positions: &[usize]) -> Tokens {
        let table = table_f64(&self.table);
        let indices = absolute::abacus_indices(
            ids,
            self.config.digits,
            self.offset(positions),
            table.len() - 1,
        );
        absolute::learned(x, &indices, &table)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::erased::positions;
    use crate::zoo::tests::Examples;
    use burn::tensor::TensorData;
    use rand_chacha::rand_core::SeedableRng;

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples {
            facts: "acts on embedding, positions; content dependent",
            texts: &["abacus", "abacus{digits=[1,9],max_offset=1,size=3,std=1.0}"],
        },
        Examples {
            facts: "acts on embedding, positions; content dependent, limited length",
            texts: &["abacus{beyond=refuse,max_offset=30,size=66}"],
        },
    ];

    const DIMS: Dims =
        Dims { layers: 1, width: 4, heads: 1, head_dim: 4, train_len: 12, max_len: 40 };

    fn abacus(config: &AbacusConfig) -> Abacus {
        Abacus::build(config, &DIMS, &mut ChaCha8Rng::seed_from_u64(0), &Device::flex()).unwrap()
    }

    fn indices(config: &AbacusConfig, ids: &[i64], offset: usize) -> Vec<i64> {
        let tokens = TensorData::new(ids.to_vec(), [1, ids.len()]);
        let tokens = Tensor::from_data(tokens, &Device::flex());
        let indices = abacus(config).indices(&tokens, offset);
        indices.into_data().convert::<i64>().try_into_vec::<i64>().unwrap()
    }

    #[test]
    fn digits_are_counted_within_each_run_and_the_rest_is_zero() {
        // Two numbers, one at the start, separated by a sign, and a single digit at the end.
        let ids = [5, 13, 4, 14, 4, 4, 17, 3, 9];
        let config = AbacusConfig { digits: [4, 13], ..AbacusConfig::default() };
        assert_eq!(indices(&config, &ids, 0), [1, 2, 3, 0, 1, 2, 0, 0, 1]);
        assert_eq!(indices(&config, &ids, 7), [8, 9, 10, 0, 8, 9, 0, 0, 8]);
        let naive = super::absolute::abacus_indices(&ids.map(|id| id as usize), [4, 13], 7, 1023);
        assert_eq!(naive, [8, 9, 10, 0, 8, 9, 0, 0, 8]);
    }

    #[test]
    fn a_run_longer_than_the_table_stays_in_its_last_row() {
        let config = AbacusConfig { size: 4, max_offset: 2, ..AbacusConfig::default() };
        assert_eq!(indices(&config, &[4; 6], 0), [1, 2, 3, 3, 3, 3]);
        assert_eq!(indices(&config, &[4; 3], 2), [3, 3, 3]);
    }

    #[test]
    fn refusing_gives_an_error_before_a_run_can_leave_the_table() {
        let config = AbacusConfig {
            size: 50,
            max_offset: 9,
            beyond: LongNumber::Refuse,
            ..AbacusConfig::default()
        };
        let pe = abacus(&config);
        let ask = |new_tokens| {
            let request = PositionRequest { cached_tokens: 0, new_tokens, training_rng: None };
            positions(&pe, Abacus::CARD.id, request)
        };
        let longest = ask(49).unwrap();
        assert_eq!(*longest.cols().last().unwrap() + 1, 49);
        let error = ask(50).unwrap_err().to_string();
        assert!(error.contains("abacus: position 49"), "{error}");
        let error = Abacus::check(&AbacusConfig { size: 40, ..config.clone() }, &DIMS)
            .unwrap_err()
            .to_string();
        assert!(error.contains("size is 40, expected at least 41,"), "{error}");
        let error =
            Abacus::check(&AbacusConfig { size: 21, ..config }, &Dims { max_len: 12, ..DIMS })
                .unwrap_err();
        assert!(error.to_string().contains("size is 21, expected at least 22,"), "{error}");
    }

    #[test]
    fn offsets_are_drawn_in_training_only_and_fill_their_range() {
        let pe = abacus(&AbacusConfig { max_offset: 9, ..AbacusConfig::default() });
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut seen = [0; 10];
        for _ in 0..1000 {
            let training_rng = Some(&mut rng);
            let request = PositionRequest { cached_tokens: 0, new_tokens: 5, training_rng };
            let at = pe.positions(request).unwrap();
            let offset = at.cols()[0];
            assert_eq!(at, Positions::contiguous(0, 5).shifted(offset));
            seen[offset] += 1;
        }
        assert!(seen.iter().all(|count| (50..150).contains(count)), "{seen:?}");
        let request = PositionRequest { cached_tokens: 3, new_tokens: 2, training_rng: None };
        assert_eq!(pe.positions(request).unwrap(), Positions::contiguous(3, 2));
    }

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        for (config, expected) in [
            (AbacusConfig { digits: [9, 4], ..AbacusConfig::default() }, "digits is 9, 4"),
            (
                AbacusConfig { size: 100, ..AbacusConfig::default() },
                "size is 100, expected at least 101,",
            ),
            (AbacusConfig { std: Some(-1.0), ..AbacusConfig::default() }, "std is -1"),
        ] {
            let error = Abacus::check(&config, &DIMS).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

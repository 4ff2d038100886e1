//! # T5 bias: a learned number per head and bucket of distances
//!
//! ## What it does
//! Adds a learned number to each logit, looked up by head and by bucket of the distance. Short
//! distances have a bucket each, longer ones share buckets of growing width, and all distances
//! beyond the longest share the last.
//!
//! ## Formula
//! `logit[h, i, j] = q_i . k_j / sqrt(D) + table[bucket(i - j), h]`; with `E = num_buckets / 2`,
//! `bucket(n) = n` below `E`, else
//! `min(num_buckets - 1, E + floor(ln(n / E) / ln(max_distance / E) * (num_buckets - E)))`
//!
//! ## Shapes
//! `score: Distance([H, N])`, `N` one more than the first distance of the last bucket (114 at the
//! defaults); table `[num_buckets, H]`.
//!
//! ## Settings
//! `num_buckets` (32) and `max_distance` (128), T5's.
//! `buckets`: `causal` (default, as in T5's decoder) or `bidirectional` (as in its encoder and, by its default, in
//! x-transformers): the first half of the table is for earlier keys, with `num_buckets / 2` in place of `num_buckets` in
//! the formula, the second half for later ones, which a decoder never reads.
//! `std` (default `C^(-1/2)`, as in HuggingFace's T5): standard deviation of the initial table.
//! `sharing`: `all-layers` (default, as in T5) or `per-layer` (as in TAPE's baseline).
//!
//! ## Initial values
//! Table: normal with deviation `C^(-1/2)`, as in HuggingFace's T5. The paper states no initial values.
//!
//! ## Deviations
//! T5 does not divide `q . k` by `sqrt(D)`; here every encoding does, as in TAPE's baseline.
//! Buckets are computed in f64 and a distance exactly on an edge belongs to the bucket above it; in
//! f32, as in the authors' code, rounding decides (no such distance exists at the defaults).
//!
//! ## References
//! Raffel et al. 2020, "Exploring the Limits of Transfer Learning", arXiv 1910.10683, section 2.1;
//! buckets as in `google-research/text-to-text-transfer-transformer`; initial values as in `T5PreTrainedModel` of
//! `huggingface/transformers`.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::math::buckets;
use crate::reference::{Heads, ScalarInput, ScalarReference, distance, table_f64};
use crate::score::Beyond;
use crate::settings::{Sharing, check_not_below_zero, is_default, of_layer};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};

/// Directions of the distances that the buckets divide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BucketSides {
    /// All buckets are for earlier keys.
    #[default]
    Causal,
    /// Half of the buckets are for earlier keys, half for later ones.
    Bidirectional,
}

crate::settings! {
    /// Settings of the T5 bias.
    pub struct T5BiasConfig {
        /// Number of buckets: rows of the table.
        pub num_buckets: usize = 32,
        /// Distance from which on all distances share the last bucket.
        pub max_distance: usize = 128,
        /// Directions of the distances that the buckets divide.
        #[serde(skip_serializing_if = "is_default")]
        pub buckets: BucketSides = BucketSides::Causal,
        /// Standard deviation of the initial table; `None`: `C^(-1/2)`.
        pub std: Option<f64> = None,
        /// Which layers share a table.
        pub sharing: Sharing = Sharing::AllLayers,
    }
}

impl T5BiasConfig {
    /// Number of buckets for earlier keys.
    pub fn earlier_buckets(&self) -> usize {
        match self.buckets {
            BucketSides::Causal => self.num_buckets,
            BucketSides::Bidirectional => self.num_buckets / 2,
        }
    }
}

/// Table of learned biases, one per bucket of distances and head.
#[derive(Module, Debug)]
pub struct T5Bias {
    /// Learned biases, `[num_buckets, H]` each: one tensor, or one per layer.
    pub tables: Vec<Param<Tensor<2>>>,
    /// Bucket of each distance; the last entry holds for all greater distances.
    #[module(skip)]
    buckets: Vec<usize>,
    #[module(skip)]
    max_distance: usize,
    /// Number of buckets for earlier keys, at the start of the table.
    #[module(skip)]
    earlier: usize,
}

impl PositionEncoding for T5Bias {
    type Settings = T5BiasConfig;

    const CARD: Card = Card {
        id: "t5-bias",
        label: "T5 bias",
        summary: "Adds to the logits a learned number per head and bucket of distances.",
        parameters: "H num_buckets",
        paper: "Raffel et al. 2020",
        url: "https://arxiv.org/abs/1910.10683",
    };

    fn card(settings: &T5BiasConfig) -> Card {
        match settings.sharing {
            Sharing::AllLayers => Self::CARD,
            Sharing::PerLayer => Card { parameters: "L H num_buckets", ..Self::CARD },
        }
    }

    fn check(settings: &T5BiasConfig, _dims: &Dims) -> Result<(), PeError> {
        /// Largest accepted `max_distance`.
        const LONGEST: usize = 1_000_000;
        let (pe, buckets, distance) = (Self::CARD.id, settings.num_buckets, settings.max_distance);
        let (least, divisor, even) = match settings.buckets {
            BucketSides::Causal => (2, 2, true),
            BucketSides::Bidirectional => (4, 4, buckets.is_multiple_of(2)),
        };
        let expected = format!("at least {least}");
        PeError::require(buckets >= least, pe, "num_buckets", buckets, expected)?;
        let expected = "an even number, half for earlier keys and half for later ones";
        PeError::require(even, pe, "num_buckets", buckets, expected)?;
        let half = settings.earlier_buckets() / 2;
        let usable = distance > half && distance <= LONGEST;
        let expected =
            format!("above num_buckets / {divisor}, that is {half}, and at most {LONGEST}");
        PeError::require(usable, pe, "max_distance", distance, expected)?;
        check_not_below_zero(pe, "std", settings.std)
    }

    fn build(
        settings: &T5BiasConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let std = settings.std.unwrap_or((dims.width as f64).powf(-0.5));
        let tables = (0..settings.sharing.sets(dims.layers))
            .map(|_| init::normal(std, [settings.num_buckets, dims.heads], rng, device))
            .collect();
        let earlier = settings.earlier_buckets();
        let buckets = buckets::causal(earlier, settings.max_distance);
        Ok(T5Bias { tables, buckets, max_distance: settings.max_distance, earlier })
    }

    fn param_count(settings: &T5BiasConfig, dims: &Dims) -> Option<usize> {
        Some(settings.sharing.sets(dims.layers) * settings.num_buckets * dims.heads)
    }

    fn cost(_settings: &T5BiasConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let pairs = dims.layers * len * len * dims.heads;
        Some(Cost::none().pair_elementwise("sum of logits", pairs))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let device = ctx.q.device();
        let table = of_layer(&self.tables, ctx.layer.layer).val();
        let key = format!("t5-buckets {} {}", self.earlier, self.max_distance);
        let buckets = ctx.layer.at.memo(&key, &device, || {
            let buckets = self.buckets.iter().map(|bucket| *bucket as i64).collect::<Vec<_>>();
            Tensor::<1, Int>::from_data(buckets.as_slice(), &device)
        });
        ScoreMod::Distance { table: table.select(0, buckets).transpose(), beyond: Beyond::Last }
    }
}

impl ScalarReference for T5Bias {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let mut table = table_f64(of_layer(&self.tables, input.layer));
        table.truncate(self.earlier);
        input.biased(&distance::t5(input, &table, self.max_distance))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits; shift invariant; biases tables",
        texts: &[
            "t5-bias",
            "t5-bias{sharing=per-layer}",
            "t5-bias{num_buckets=7,max_distance=20,std=1.0}",
            "t5-bias{buckets=bidirectional,num_buckets=8,max_distance=20}",
        ],
    }];

    const DIMS: Dims =
        Dims { layers: 3, width: 8, heads: 2, head_dim: 4, train_len: 8, max_len: 8 };

    #[test]
    fn a_longest_distance_within_the_exact_buckets_is_refused() {
        let config = T5BiasConfig { max_distance: 16, ..T5BiasConfig::default() };
        let error = T5Bias::check(&config, &DIMS).unwrap_err().to_string();
        assert!(error.contains("max_distance is 16") && error.contains("that is 16"), "{error}");
        assert!(
            T5Bias::check(&T5BiasConfig { num_buckets: 1, ..T5BiasConfig::default() }, &DIMS)
                .is_err()
        );
        assert!(
            T5Bias::check(&T5BiasConfig { std: Some(f64::NAN), ..T5BiasConfig::default() }, &DIMS)
                .is_err()
        );
    }

    #[test]
    fn a_bidirectional_table_needs_two_equal_halves() {
        for (num_buckets, expected) in [(7, "an even number"), (2, "at least 4")] {
            let buckets = BucketSides::Bidirectional;
            let config = T5BiasConfig { num_buckets, buckets, ..T5BiasConfig::default() };
            let error = T5Bias::check(&config, &DIMS).unwrap_err().to_string();
            assert!(error.contains("num_buckets") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn tape_counts_a_table_per_layer() {
        // TAPE's Table 3: 4 608 parameters with 12 layers of 12 heads.
        let dims = Dims {
            layers: 12,
            width: 768,
            heads: 12,
            head_dim: 64,
            train_len: 1024,
            max_len: 1024,
        };
        let config = T5BiasConfig { sharing: Sharing::PerLayer, ..T5BiasConfig::default() };
        assert_eq!(T5Bias::param_count(&config, &dims), Some(4608));
    }
}

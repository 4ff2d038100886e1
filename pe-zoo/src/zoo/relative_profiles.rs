//! # Relative profiles: each token mixes learned functions of the distance
//!
//! ## What it does
//! Each layer learns a few functions of the distance (profiles), which its heads share. Each token computes from its
//! content how much of each profile a head adds to the logits of the token's row. One token can thus prefer its
//! neighbours and another one tokens far away. Distances past the end of the profiles add nothing.
//!
//! ## Formula
//! `logit[h, i, j] = q_i . k_j / sqrt(D) + sum over r of w[h, i, r] P[r, i - j]`;
//! `u[h, i] = s_h * (W x_i)_h`, `w[h, i] = u[h, i] min(1, limit / |u[h, i]|)`, `x` the layer's input.
//!
//! ## Shapes
//! `state: [B, H, T, profiles]`, the weights `w`; `score: RowDistance` of the weights and `P`, `[profiles, max_distance]`.
//!
//! ## Settings
//! `profiles` (16): number of profiles of a layer.
//! `max_distance`: entries of a profile, distances `0..max_distance` (default: 1024, or the training length if that is
//! shorter).
//! `limit` (8): largest norm of the weights of a token in a head; longer weights are scaled down to it.
//!
//! `relative-profiles+window{size=1024}/relative-profiles+window{size=1024}/relative-profiles` is a pattern of layers with
//! windows and one that sees all tokens.
//!
//! ## Initial values
//! `W` and `P`: normal with standard deviation 0.02, as in `transformers`; `s`: 1.
//!
//! ## Deviations
//! `transformers` adds `1e-6` to the norm, which changes weights of the norm `limit` by a rounding error. In layers that
//! see all tokens, Inkling 2 multiplies the weights, like the queries, by a factor that grows with the logarithm of the
//! position beyond 128,000; `temperature` scales only the queries. The layers of Inkling 2 also normalise queries and
//! keys, and compute sinks from the tokens.
//!
//! ## References
//! Thinking Machines Lab 2026, "Inkling 2", as `Inkling2RelativePositionBias` in `modeling_inkling2.py` of `transformers`
//! 5.24.0.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use crate::card::Card;
use crate::encoding::{ScoreContext, StateContext};
use crate::ops::linear;
use crate::parts::by_head;
use crate::reference::relative::{self as scalar, ScalarProfiles};
use crate::reference::{Heads, ScalarInput, ScalarReference, table_f64};
use crate::score::Beyond;
use crate::settings::check_size;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, TokenState, init};

/// Standard deviation of the initial weights.
const STD: f64 = 0.02;

/// Length of the profiles in Inkling 2.
const LONGEST: usize = 1024;

crate::settings! {
    /// Settings of relative profiles.
    pub struct RelativeProfilesConfig {
        /// Number of profiles of a layer.
        pub profiles: usize = 16,
        /// Number of entries of a profile; `None`: 1024, or the training length if that is shorter.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub max_distance: Option<usize> = None,
        /// Largest norm of the weights of a token in a head.
        pub limit: f64 = 8.0,
    }
}

impl RelativeProfilesConfig {
    fn distances(&self, dims: &Dims) -> usize {
        self.max_distance.unwrap_or(dims.train_len.min(LONGEST))
    }
}

/// Profiles of one layer, and the map from tokens to their weights.
#[derive(Module, Debug)]
pub struct LayerProfiles {
    /// Map from tokens to the weights of the profiles, `[C, H profiles]`.
    pub weight: Param<Tensor<2>>,
    /// Factors of the weights, `[H, profiles]`.
    pub scale: Param<Tensor<2>>,
    /// Learned functions of the distance, `[profiles, max_distance]`.
    pub profiles: Param<Tensor<2>>,
}

/// Functions of the distance that each token mixes.
#[derive(Module, Debug)]
pub struct RelativeProfiles {
    /// Profiles, one set per layer.
    pub layers: Vec<LayerProfiles>,
    #[module(skip)]
    limit: f64,
}

/// Scales vectors down to a norm if they are longer.
fn shortened(vectors: Tensor<4>, limit: f64) -> Tensor<4> {
    // A vector of zeros has a gradient: its norm is not computed.
    let square = vectors.clone().powi_scalar(2).sum_dim(3).clamp_min(limit * limit);
    vectors * (square / (limit * limit)).sqrt().recip()
}

impl PositionEncoding for RelativeProfiles {
    type Settings = RelativeProfilesConfig;

    const CARD: Card = Card {
        id: "relative-profiles",
        label: "Relative profiles",
        summary: "Adds to the logits learned functions of the distance, weighted by each query token.",
        parameters: "L profiles (C H + H + max_distance)",
        paper: "Thinking Machines Lab 2026",
        url: "https://github.com/huggingface/transformers",
    };

    fn check(settings: &RelativeProfilesConfig, dims: &Dims) -> Result<(), PeError> {
        let (pe, limit) = (Self::CARD.id, settings.limit);
        check_size(pe, "profiles", settings.profiles)?;
        check_size(pe, "max_distance", settings.distances(dims))?;
        PeError::require(
            limit.is_finite() && limit > 0.0,
            pe,
            "limit",
            limit,
            "a finite number above 0",
        )
    }

    fn build(
        settings: &RelativeProfilesConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let RelativeProfilesConfig { profiles, limit, .. } = *settings;
        let layer = |_| LayerProfiles {
            weight: init::normal(STD, [dims.width, dims.heads * profiles], rng, device),
            scale: init::constant(1.0, [dims.heads, profiles], device),
            profiles: init::normal(STD, [profiles, settings.distances(dims)], rng, device),
        };
        Ok(Self { layers: (0..dims.layers).map(layer).collect(), limit })
    }

    fn param_count(settings: &RelativeProfilesConfig, dims: &Dims) -> Option<usize> {
        let Dims { layers, width, heads, .. } = *dims;
        let of_profile = width * heads + heads + settings.distances(dims);
        Some(layers * settings.profiles * of_profile)
    }

    fn cost(settings: &RelativeProfilesConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let Dims { layers, width, heads, .. } = *dims;
        let weights = layers * len * heads * settings.profiles;
        Some(
            Cost::none()
                .product("weights of profiles", weights * width)
                .elementwise("scale and norm of weights", 4 * weights)
                .product("weights with the profiles", weights * settings.distances(dims))
                .pair_elementwise("sum of logits", layers * heads * len * len),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let LayerProfiles { weight, scale, .. } = &self.layers[ctx.layer];
        let [heads, profiles] = scale.val().dims();
        let weights = by_head(linear(ctx.x.clone(), weight.val(), None), heads);
        let scaled = weights * scale.val().reshape([1, heads, 1, profiles]);
        TokenState { tensors: vec![shortened(scaled, self.limit)] }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::RowDistance {
            vectors: ctx.layer.rows.tensors[0].clone(),
            table: self.layers[ctx.layer.layer].profiles.val(),
            beyond: Beyond::Zero,
        }
    }
}

impl ScalarReference for RelativeProfiles {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let LayerProfiles { weight, scale, profiles } = &self.layers[input.layer];
        let learned = ScalarProfiles {
            weight: table_f64(weight),
            scale: table_f64(scale),
            profiles: table_f64(profiles),
            limit: self.limit,
        };
        input.biased(&scalar::profiles(input, &learned))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testkit::close::numbers;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits, state; content dependent, shift invariant",
        texts: &[
            "relative-profiles",
            "relative-profiles{profiles=3,max_distance=5}",
            "relative-profiles{limit=1000.0}",
        ],
    }];

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let dims = Dims { layers: 1, width: 8, heads: 2, head_dim: 4, train_len: 8, max_len: 8 };
        let default = RelativeProfilesConfig::default();
        for (config, expected) in [
            (RelativeProfilesConfig { profiles: 0, ..default.clone() }, "profiles is 0"),
            (
                RelativeProfilesConfig { max_distance: Some(0), ..default.clone() },
                "max_distance is 0",
            ),
            (RelativeProfilesConfig { limit: 0.0, ..default.clone() }, "limit is 0"),
            (RelativeProfilesConfig { limit: f64::INFINITY, ..default.clone() }, "limit is inf"),
        ] {
            let error = RelativeProfiles::check(&config, &dims).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(default.distances(&dims), 8);
        assert_eq!(default.distances(&Dims { train_len: 4096, ..dims }), 1024);
    }

    /// A token of zeros is possible: PyTorch's gradient of its norm is 0.
    #[test]
    fn only_long_weights_are_shortened_and_zeros_have_a_gradient() {
        let device = Device::flex().autodiff();
        let vectors = Tensor::<1>::from_floats([0.0, 0.0, 3.0, 4.0, 0.3, 0.4], &device);
        let vectors = vectors.reshape([1, 1, 3, 2]).require_grad();
        let short = shortened(vectors.clone(), 2.0);
        let gradients = short.clone().sum().backward();
        let of_zeros = &numbers(vectors.grad(&gradients).unwrap())[..2];
        assert!(of_zeros.iter().all(|slope| (slope - 1.0).abs() < 1e-6), "{of_zeros:?}");
        let expected = [0.0, 0.0, 1.2, 1.6, 0.3, 0.4];
        for (found, expected) in numbers(short).into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }
}

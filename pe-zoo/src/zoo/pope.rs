//! # PoPE: content as magnitude, position as angle
//!
//! ## What it does
//! Uses each channel of a query or key as a magnitude: a softplus makes it positive, and its angle
//! depends on the position alone. Content and position are thereby separated.
//!
//! ## Formula
//! `logit = sum over c of mu(q_c) mu(k_c) cos((j - i) theta_c + delta[h, c]) / sqrt(D)`,
//! `mu = softplus`, `theta_c = base^(-c / D)` for all `D` channels, `delta` learned and clamped to
//! `-2 pi ..= 0`. With a `rotary_fraction` below 1, `c` runs over the first `R` channels, `theta_c = base^(-c / R)`, and
//! the plain product of the other channels is added to the sum.
//!
//! ## Shapes
//! `transform_qk: [B, H, T, D], [B, H, S, D] -> [B, H, T, 2 D], [B, H, S, 2 D]` (cosine and sine
//! parts of `R` channels, then the other channels and as many zeros); `delta` `[H, R]` per layer;
//! `R = floor(rotary_fraction D)`, `D` by default.
//!
//! ## Settings
//! `base` (10000): twice as many frequencies as RoPE's between the same ends.
//! `rotary_fraction` (1): fraction of the channels, from the first, that are magnitudes with an angle; the others are
//! used unchanged, as in PoPE-pytorch with fewer frequencies than channels.
//! `initial_phase`: `zero` (default) or `uniform` (in the clamp's range): initial value of `delta`.
//!
//! ## Initial values
//! `delta`: 0, as in PoPE-pytorch.
//!
//! ## Deviations
//! None.
//!
//! ## References
//! Gopalakrishnan et al. 2025, "Decoupling the 'What' and 'Where' With Polar Coordinate Positional
//! Embeddings", arXiv 2509.10534; the form is that of `lucidrains/PoPE-pytorch` at ee11cab0dd.

use std::f64::consts::TAU;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::LayerContext;
use crate::math::frequencies::check_base;
use crate::ops::polar;
use crate::reference::{Heads, ScalarInput, ScalarReference, rope, table_f64};
use crate::{Cost, Dims, PeError, PositionEncoding, Positions, init};

/// Initial values of the learned phases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialPhase {
    /// All phases start at 0.
    #[default]
    Zero,
    /// Phases are drawn uniformly from `-2 pi ..= 0`.
    Uniform,
}

crate::settings! {
    /// Settings of the PoPE encoding.
    pub struct PopeConfig {
        /// Base of the frequencies: the slowest channel completes a turn in about `2 pi base`
        /// positions.
        pub base: f64 = 10_000.0,
        /// Fraction of the channels, from the first, that have an angle; above 0, up to 1.
        #[serde(skip_serializing_if = "is_whole")]
        pub rotary_fraction: f64 = 1.0,
        /// Initial values of the learned phases.
        pub initial_phase: InitialPhase = InitialPhase::Zero,
    }
}

/// Whether a fraction is 1.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_whole(fraction: &f64) -> bool {
    fraction.to_bits() == 1f64.to_bits()
}

impl PopeConfig {
    /// Number of channels that have an angle.
    fn turning(&self, head_dim: usize) -> usize {
        (self.rotary_fraction * head_dim as f64) as usize
    }
}

/// Rotation in polar coordinates: magnitudes from queries and keys, angles from positions.
#[derive(Module, Debug)]
pub struct Pope {
    /// Learned phases `delta` of each layer, `[H, R]`.
    pub phases: Vec<Param<Tensor<2>>>,
    #[module(skip)]
    base: f64,
    /// Cache key of everything besides positions on which the tables depend.
    #[module(skip)]
    key: String,
}

impl Pope {
    /// Computes cosines and sines of the columns' angles, `[1, 1, S, 2 R]`.
    fn waves(&self, at: &Positions, turning: usize, device: &Device) -> Tensor<4> {
        at.memo(&self.key, device, || {
            let mut values = Vec::with_capacity(at.cols().len() * 2 * turning);
            for n in at.cols() {
                for wave in [f64::cos, f64::sin] {
                    values.extend((0..turning).map(|c| {
                        let frequency = self.base.powf(-(c as f64) / turning as f64);
                        wave(*n as f64 * frequency) as f32
                    }));
                }
            }
            let shape = [1, 1, at.cols().len(), 2 * turning];
            Tensor::from_data(TensorData::new(values, shape), device)
        })
    }
}

impl PositionEncoding for Pope {
    type Settings = PopeConfig;

    const CARD: Card = Card {
        id: "pope",
        label: "PoPE",
        summary: "Uses a softplus of each channel as a magnitude, with an angle given by the position.",
        parameters: "L C",
        paper: "Gopalakrishnan et al. 2025",
        url: "https://arxiv.org/abs/2509.10534",
    };

    fn card(settings: &PopeConfig) -> Card {
        let parameters = if is_whole(&settings.rotary_fraction) { "L C" } else { "L H R" };
        Card { parameters, ..Self::CARD }
    }

    fn check(settings: &PopeConfig, dims: &Dims) -> Result<(), PeError> {
        let (pe, fraction) = (Self::CARD.id, settings.rotary_fraction);
        let usable = fraction <= 1.0 && settings.turning(dims.head_dim) > 0;
        let expected = format!(
            "a fraction up to 1 that rotates at least one of the {} channels",
            dims.head_dim
        );
        PeError::require(usable, pe, "rotary_fraction", fraction, expected)?;
        check_base(pe, "base", settings.base)
    }

    fn build(
        settings: &PopeConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let turning = settings.turning(dims.head_dim);
        let shape = [dims.heads, turning];
        let phases = (0..dims.layers)
            .map(|_| match settings.initial_phase {
                InitialPhase::Zero => init::zeros(shape, device),
                InitialPhase::Uniform => init::uniform_between(-TAU..0.0, shape, rng, device),
            })
            .collect();
        let key = format!("pope {turning} {:?}", settings.base);
        Ok(Pope { phases, base: settings.base, key })
    }

    fn param_count(settings: &PopeConfig, dims: &Dims) -> Option<usize> {
        Some(dims.layers * dims.heads * settings.turning(dims.head_dim))
    }

    fn cost(settings: &PopeConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let Dims { layers, heads, .. } = *dims;
        let turning = heads * settings.turning(dims.head_dim);
        Some(
            Cost::none()
                .elementwise("softplus, rotation of queries and keys", 12 * layers * len * turning)
                .pair_product(
                    "dot products over twice as many channels",
                    layers * len * len * dims.heads_width(),
                ),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        let [_batch, _heads, _columns, head_dim] = k.dims();
        let phase = self.phases[ctx.layer].val().clamp(-TAU, 0.0);
        let [heads, turning] = phase.dims();
        let waves = self.waves(ctx.at, turning, &k.device());
        let rows = waves.clone().slice_dim(2, ctx.at.first_row()..ctx.at.cols().len());
        let phase = phase.reshape([1, heads, 1, turning]);
        let (phase_cos, phase_sin) = (phase.clone().cos(), phase.sin());
        let (cos, sin) =
            (waves.clone().slice_dim(3, 0..turning), waves.slice_dim(3, turning..2 * turning));
        let key_cos = cos.clone() * phase_cos.clone() - sin.clone() * phase_sin.clone();
        let key_sin = sin * phase_cos + cos * phase_sin;
        let in_polar_form = |u: Tensor<4>, waves: Tensor<4>| {
            let turned = polar(u.clone().slice_dim(3, 0..turning), waves);
            if turning == head_dim {
                return turned;
            }
            let rest = u.slice_dim(3, turning..head_dim);
            let zeros = rest.zeros_like();
            Tensor::cat(vec![turned, rest, zeros], 3)
        };
        (in_polar_form(q, rows), in_polar_form(k, Tensor::cat(vec![key_cos, key_sin], 3)))
    }
}

impl ScalarReference for Pope {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        rope::pope(input, self.base, &table_f64(&self.phases[input.layer]))
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        rope::pope_logits(input, self.base, &table_f64(&self.phases[input.layer]))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testkit::close::numbers;
    use crate::zoo::tests::Examples;
    use rand_chacha::rand_core::SeedableRng;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on query, key; content dependent, shift invariant, widens queries",
        texts: &[
            "pope",
            "pope{base=50.0,initial_phase=uniform}",
            "pope{rotary_fraction=0.67,initial_phase=uniform}",
        ],
    }];

    #[test]
    fn fractions_without_a_channel_are_refused() {
        let dims = Dims { layers: 1, width: 8, heads: 1, head_dim: 8, train_len: 8, max_len: 8 };
        for rotary_fraction in [0.0, 0.12, 1.5, f64::NAN] {
            let config = PopeConfig { rotary_fraction, ..PopeConfig::default() };
            let error = Pope::check(&config, &dims).unwrap_err().to_string();
            assert!(error.contains("rotary_fraction is") && error.contains("of the 8"), "{error}");
        }
    }

    #[test]
    fn uniform_phases_start_within_the_clamp_and_fill_it() {
        let dims = Dims { layers: 3, width: 128, heads: 8, head_dim: 16, train_len: 8, max_len: 8 };
        let config = PopeConfig { initial_phase: InitialPhase::Uniform, ..PopeConfig::default() };
        let pope = Pope::build(&config, &dims, &mut ChaCha8Rng::seed_from_u64(2), &Device::flex())
            .unwrap();
        let phases = pope.phases.iter().flat_map(|p| numbers(p.val())).collect::<Vec<_>>();
        assert!(phases.iter().all(|phase| (-TAU..=0.0).contains(phase)));
        let mean = phases.iter().sum::<f64>() / phases.len() as f64;
        assert!((mean + TAU / 2.0).abs() < 0.3, "{mean}");
        let ends = [f64::min, f64::max].map(|pick| phases.iter().copied().reduce(pick).unwrap());
        assert!(ends[0] < -0.95 * TAU && ends[1] > -0.05 * TAU, "{ends:?}");
    }
}

//! # FoPE: each pair turned by a mixture of waves
//!
//! ## What it does
//! Takes the frequencies of RoPE that complete a turn within the training length, drops the slower
//! ones, and rotates each pair of channels by a fixed random mixture of the remaining waves, so
//! that a channel no longer depends on a single frequency.
//!
//! ## Formula
//! `f_d = base^(-2d / D)` for those `d` with `f_d >= 2 pi / L`, `L` the training length: `K` of them;
//! `cos'[h, n, m] = sum over d of cos(n f_d) A[h, d, m]`, `sin'[h, n, m] = sum over d of sin(n f_d)
//! B[h, d, m]` for `m < M = min(K, floor(D / 4))`; `cos' = 1` and `sin' = padding` for the other of
//! the `D / 2` pairs `(m, m + D/2)`; `(a, b) -> (a cos' - b sin', b cos' + a sin')`.
//!
//! ## Shapes
//! `transform_qk: [B, H, T, D], [B, H, S, D]` unchanged; `D` even; `A`, `B` `[H, K, M]` per layer,
//! drawn once and never trained.
//!
//! ## Settings
//! `base` (10000).
//! `gain` (0.3; the authors take 0.3, 0.4 or 0.6 by size of the model): `A` and `B` are ones at `(m
//! ceil(K / M), m)` plus normal numbers with standard deviation `gain sqrt(2 / (fan_in +
//! fan_out))`.
//! `padding`: `code` (default: 1, as in the authors' code) or `zero` (0, the value for a frequency of
//! zero).
//!
//! ## Deviations
//! `A` and `B` are constants and not parameters: they are drawn from the seed when the encoding is
//! built, and checkpoints and Burn's records do not contain them. `constants` returns them, and `Fope::with_mixtures` sets
//! those of another model. The fans of a `[H, K, M]` tensor are `K M` and `H M`, as PyTorch defines them
//! for the authors' initialisation.
//!
//! ## References
//! Hua et al. 2024, "Fourier Position Embedding", arXiv 2412.17739; authors' code
//! `TsinghuaC3I/Fourier-Position-Embedding` `olmo/model.py` at bd94b20d82.

use std::f64::consts::TAU;
use std::hash::{DefaultHasher, Hash, Hasher};

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::count::CountedMatmul;
use crate::encoding::{Constant, LayerContext};
use crate::init::standard_normal;
use crate::math::frequencies::{check_base, inverse_frequencies};
use crate::probe::close::numbers;
use crate::reference::{Heads, ScalarInput, ScalarReference, rope};
use crate::rotary::Rotation;
use crate::settings::check_not_below_zero;
use crate::{Cost, Dims, PeError, PositionEncoding, Positions};

/// Value in place of the sine of pairs that no mixture rotates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// The value 1, as in the authors' code: such a pair is rotated by 45 degrees and scaled by
    /// `sqrt(2)`.
    #[default]
    Code,
    /// The value 0: such a pair stays unchanged.
    Zero,
}

impl Padding {
    fn sine(self) -> f64 {
        match self {
            Self::Code => 1.0,
            Self::Zero => 0.0,
        }
    }
}

crate::settings! {
    /// Settings of the FoPE encoding.
    pub struct FopeConfig {
        /// Base of the frequencies, as in RoPE.
        pub base: f64 = 10_000.0,
        /// Scale of the random part of the mixtures; at 0 each mixture is a single wave.
        pub gain: f64 = 0.3,
        /// Value in place of the sine of pairs that no mixture rotates.
        pub padding: Padding = Padding::Code,
    }
}

/// Rotation by mixtures of waves. The mixtures are constants: they are neither optimised nor part
/// of the module's record.
#[derive(Module, Debug)]
pub struct Fope {
    layers: Vec<Mixtures>,
    #[module(skip)]
    frequencies: Vec<f64>,
    #[module(skip)]
    padding: Padding,
}

/// Constant mixtures of one layer, each `[H, K, M]`.
#[derive(Module, Debug)]
struct Mixtures {
    cos: Tensor<3>,
    sin: Tensor<3>,
    /// Hash of the values of both tensors, for the cache of rotations.
    #[module(skip)]
    digest: u64,
}

impl Mixtures {
    fn new(cos: Tensor<3>, sin: Tensor<3>) -> Self {
        let mut hasher = DefaultHasher::new();
        for tensor in [&cos, &sin] {
            tensor.dims().hash(&mut hasher);
            for value in numbers(tensor.clone()) {
                value.to_bits().hash(&mut hasher);
            }
        }
        Self { cos, sin, digest: hasher.finish() }
    }
}

impl FopeConfig {
    /// Frequencies that complete a turn within the training length.
    fn frequencies(&self, dims: &Dims) -> Vec<f64> {
        let slowest = TAU / dims.train_len as f64;
        inverse_frequencies(self.base, dims.head_dim)
            .into_iter()
            .filter(|f| *f >= slowest)
            .collect()
    }

    /// Shape `[H, K, M]` of the mixtures of one layer.
    fn shape(&self, dims: &Dims) -> [usize; 3] {
        let kept = self.frequencies(dims).len();
        [dims.heads, kept, kept.min(dims.head_dim / 4)]
    }

    fn mixture(&self, dims: &Dims, rng: &mut ChaCha8Rng, device: &Device) -> Tensor<3> {
        let [heads, kept, mixed] = self.shape(dims);
        let std = self.gain * (2.0 / ((kept * mixed + heads * mixed) as f64)).sqrt();
        let step = kept.div_ceil(mixed);
        let values = (0..heads * kept * mixed)
            .map(|at| {
                let (d, m) = (at / mixed % kept, at % mixed);
                let own = if d == m * step { 1.0 } else { 0.0 };
                (own + std * standard_normal(rng)) as f32
            })
            .collect::<Vec<_>>();
        Tensor::from_data(TensorData::new(values, [heads, kept, mixed]), device)
    }
}

impl Fope {
    /// Mixtures of the cosines and of the sines of a layer, each `[H, K, M]`.
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn mixtures(&self, layer: usize) -> [&Tensor<3>; 2] {
        let Mixtures { cos, sin, .. } = &self.layers[layer];
        [cos, sin]
    }

    /// Replaces the mixtures of a layer, `[H, K, M]` as [`mixtures`](Self::mixtures), by those of
    /// another model.
    ///
    /// # Errors
    /// [`PeError::InvalidSetting`] if a tensor has another shape.
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn with_mixtures(
        mut self,
        layer: usize,
        cos: Tensor<3>,
        sin: Tensor<3>,
    ) -> Result<Self, PeError> {
        let expected = self.layers[layer].cos.dims();
        for (field, tensor) in [("cosine mixtures", &cos), ("sine mixtures", &sin)] {
            let (found, same) = (format!("{:?}", tensor.dims()), tensor.dims() == expected);
            let expected = format!("a tensor of shape {expected:?}");
            PeError::require(same, Fope::CARD.id, field, found, expected)?;
        }
        self.layers[layer] = Mixtures::new(cos, sin);
        Ok(self)
    }

    fn rotation(&self, layer: usize, at: &Positions, head_dim: usize, device: &Device) -> Rotation {
        let Mixtures { cos, sin, digest } = &self.layers[layer];
        let key =
            format!("fope {digest:016x} {head_dim} {:?} {:?}", self.padding, self.frequencies);
        at.memo(&key, device, || {
            let columns = at.cols().len();
            let mixed = |wave: fn(f64) -> f64, mixture: &Tensor<3>, padding: f64| {
                let values = at
                    .cols()
                    .iter()
                    .flat_map(|n| self.frequencies.iter().map(move |f| wave(*n as f64 * f) as f32))
                    .collect::<Vec<_>>();
                let shape = [1, columns, self.frequencies.len()];
                let waves = Tensor::<3>::from_data(TensorData::new(values, shape), device);
                let mixed = waves.counted_matmul(mixture.clone());
                let [heads, _columns, outputs] = mixed.dims();
                let rest = head_dim / 2 - outputs;
                let padding = Tensor::full([heads, columns, rest], padding, device);
                Tensor::cat(vec![mixed, padding], 2).swap_dims(0, 1)
            };
            Rotation::of_heads(mixed(f64::cos, cos, 1.0), mixed(f64::sin, sin, self.padding.sine()))
        })
    }
}

impl PositionEncoding for Fope {
    type Settings = FopeConfig;

    const CARD: Card = Card {
        id: "fope",
        label: "FoPE",
        summary: "Rotates queries and keys by fixed mixtures of the frequencies that training covers.",
        parameters: "0",
        paper: "Hua et al. 2024",
        url: "https://arxiv.org/abs/2412.17739",
    };

    fn check(settings: &FopeConfig, dims: &Dims) -> Result<(), PeError> {
        let (pe, head_dim) = (Self::CARD.id, dims.head_dim);
        let expected = "an even number of at least 4; a quarter of the channels is mixed";
        let usable = head_dim.is_multiple_of(2) && head_dim >= 4;
        PeError::require(usable, pe, "model.head_dim", head_dim, expected)?;
        check_base(pe, "base", settings.base)?;
        check_not_below_zero(pe, "gain", Some(settings.gain))?;
        let waves = !settings.frequencies(dims).is_empty();
        let expected = "at least 7 tokens, so that the fastest wave completes a turn";
        PeError::require(waves, pe, "train.len", dims.train_len, expected)
    }

    fn build(
        settings: &FopeConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let mut draw =
            || (0..dims.layers).map(|_| settings.mixture(dims, rng, device)).collect::<Vec<_>>();
        let (cos_mixtures, sin_mixtures) = (draw(), draw());
        // Encodings that are built after this one draw from the same stream as in committed records.
        let _unused = rng.random::<u64>();
        let layers = cos_mixtures.into_iter().zip(sin_mixtures);
        Ok(Fope {
            layers: layers.map(|(cos, sin)| Mixtures::new(cos, sin)).collect(),
            frequencies: settings.frequencies(dims),
            padding: settings.padding,
        })
    }

    fn cost(settings: &FopeConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let [heads, kept, mixed] = settings.shape(dims);
        Some(
            Cost::none()
                .product("waves mixed, per layer", dims.layers * 2 * heads * len * kept * mixed)
                .elementwise(
                    "rotation of queries and keys",
                    6 * dims.layers * len * dims.heads_width(),
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
        let rotation = self.rotation(ctx.layer, ctx.at, head_dim, &k.device());
        rotation.turn_both(q, k, ctx.at)
    }

    /// `cos.0`, `cos.1` and so on, one per layer, and the same for `sin`.
    fn constants(&self) -> Vec<Constant> {
        let of = |name: &'static str, mixture: fn(&Mixtures) -> &Tensor<3>| {
            self.layers.iter().map(mixture).enumerate().map(move |(layer, mixture)| Constant {
                name: format!("{name}.{layer}"),
                shape: mixture.dims().to_vec(),
                values: numbers(mixture.clone()).into_iter().map(|value| value as f32).collect(),
            })
        };
        of("cos", |layer| &layer.cos).chain(of("sin", |layer| &layer.sin)).collect()
    }
}

impl ScalarReference for Fope {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        let [cos, sin] = self.mixtures(input.layer);
        let weights = |mixture: &Tensor<3>| {
            let [_heads, kept, mixed] = mixture.dims();
            let values = numbers(mixture.clone());
            let rows = values.chunks(mixed).map(<[f64]>::to_vec).collect::<Vec<_>>();
            rows.chunks(kept).map(<[Vec<f64>]>::to_vec).collect()
        };
        let mixture = rope::ScalarMixture {
            cos: weights(cos),
            sin: weights(sin),
            padded_sin: self.padding.sine(),
        };
        rope::fope(input, &self.frequencies, &mixture)
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        self.scalar_transformed(input).plain()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::TokenState;
    use crate::zoo::tests::Examples;
    use rand_chacha::rand_core::SeedableRng;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on query, key",
        texts: &["fope", "fope{base=3.0}", "fope{base=1.5,gain=0.6,padding=zero}"],
    }];

    const DIMS: Dims =
        Dims { layers: 2, width: 192, heads: 3, head_dim: 64, train_len: 512, max_len: 512 };

    fn fope(config: &FopeConfig, device: &Device) -> Fope {
        Fope::build(config, &DIMS, &mut ChaCha8Rng::seed_from_u64(4), device).unwrap()
    }

    /// Numbers of kept frequencies from FoPE's definition.
    #[test]
    fn the_numbers_of_frequencies_kept_are_those_of_the_specification() {
        for (head_dim, train_len, kept) in
            [(64, 128, 11), (64, 512, 16), (64, 1024, 18), (128, 512, 31)]
        {
            let dims = Dims { width: DIMS.heads * head_dim, head_dim, train_len, ..DIMS };
            assert_eq!(
                FopeConfig::default().frequencies(&dims).len(),
                kept,
                "{head_dim} {train_len}"
            );
        }
    }

    #[test]
    fn mixtures_are_carried_by_the_module_and_are_no_parameters() {
        let device = Device::flex();
        let there = fope(&FopeConfig::default(), &device.clone().autodiff());
        assert_eq!(there.num_params(), 0);
        let drawn = fope(&FopeConfig::default(), &device);
        let values = |fope: &Fope| {
            (0..DIMS.layers)
                .flat_map(|layer| fope.mixtures(layer).map(|mixture| numbers(mixture.clone())))
                .collect::<Vec<_>>()
        };
        assert_eq!(values(&there.valid()), values(&drawn));
        let [first_cos, first_sin, second_cos, _second_sin] = &values(&drawn)[..] else {
            panic!("two layers have four mixtures")
        };
        assert!(first_cos != second_cos && first_cos != first_sin);
    }

    #[test]
    fn changed_mixtures_change_the_rotation_at_the_same_positions() {
        let device = Device::flex();
        let at = Positions::contiguous(0, 9);
        let state = TokenState::default();
        let ctx = LayerContext { layer: 1, at: &at, rows: &state, cols: &state };
        let x = Tensor::<4>::ones([1, DIMS.heads, 9, DIMS.head_dim], &device);
        let turned = |fope: &Fope| numbers(fope.transform_qk(x.clone(), x.clone(), &ctx).0);
        let drawn = fope(&FopeConfig::default(), &device);
        let before = turned(&drawn);
        let [cos, sin] = drawn.mixtures(1).map(|mixture| mixture.clone() * 2.0);
        let changed = drawn.clone().with_mixtures(1, cos, sin).unwrap();
        assert_ne!(turned(&changed), before);
        // The order of calls plays no part.
        assert_eq!(turned(&drawn), before);
        let alone = LayerContext { at: &Positions::contiguous(0, 9), ..ctx };
        assert_eq!(turned(&changed), numbers(changed.transform_qk(x.clone(), x.clone(), &alone).0));
    }

    #[test]
    fn mixtures_of_another_shape_are_refused() {
        let drawn = fope(&FopeConfig::default(), &Device::flex());
        let [cos, sin] = drawn.mixtures(0).map(Tensor::clone);
        let error = drawn.with_mixtures(0, cos, sin.slice_dim(1, 0..3)).unwrap_err().to_string();
        assert!(error.contains("sine mixtures is [3, 3, 16]"), "{error}");
    }

    #[test]
    fn without_gain_a_mixture_is_every_so_manieth_wave_and_the_rest_is_normal() {
        let device = Device::flex();
        let plain = fope(&FopeConfig { gain: 0.0, ..FopeConfig::default() }, &device);
        let ones = numbers(plain.mixtures(0)[0].clone());
        // 16 frequencies are kept and 16 are mixed: the identity for each head.
        for (at, value) in ones.iter().enumerate() {
            let expected = if at / 16 % 16 == at % 16 { 1.0 } else { 0.0 };
            assert!((value - expected).abs() < 1e-12, "{at}");
        }
        let drawn = numbers(fope(&FopeConfig::default(), &device).mixtures(0)[0].clone());
        let deviation = ones.iter().zip(&drawn).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let deviation = (deviation / ones.len() as f64).sqrt();
        let expected = 0.3 * (2.0f64 / (16.0 * 16.0 + 3.0 * 16.0)).sqrt();
        assert!((deviation / expected - 1.0).abs() < 0.1, "{deviation} {expected}");
    }

    #[test]
    fn a_training_length_without_a_whole_turn_is_refused() {
        let error =
            Fope::check(&FopeConfig::default(), &Dims { train_len: 6, ..DIMS }).unwrap_err();
        assert!(error.to_string().contains("train.len is 6"), "{error}");
    }
}

//! # xPos: RoPE whose pairs fade with the distance
//!
//! ## What it does
//! Rotates queries and keys as RoPE does, and multiplies queries and divides keys by a factor that
//! depends on position, so that far keys have less weight. Fast pairs decay sooner than slow ones.
//!
//! ## Formula
//! `q[n] -> zeta_m^((n - c) / S) R(n f_m) q`, `k[n] -> zeta_m^(-(n - c) / S) R(n f_m) k`, `zeta_m =
//! (2m + 0.4 D) / (1.4 D)`, `f_m = base^(-2m / D)`; their product contains `zeta_m^((i - j) / S)`,
//! which does not depend on the centre `c`.
//!
//! ## Shapes
//! `transform_qk: [B, H, T, D], [B, H, S, D]` unchanged; `D` even.
//!
//! ## Settings
//! `layout`: `interleaved` (default, as torchscale) or `half-split` (as TAPE's baseline).
//! `base` (10000).
//! `scale_base` (512, as torchscale; TAPE's baseline and NeMo have 2048): `S`, in positions. RoPE is
//! the limit of a large one.
//! `centre`: `middle` (default; the middle between first and last column, so that both factors stay near 1),
//! `torchscale` (half the last position plus one, rounded up) or `{ given = 1024 }` (TAPE's baseline: half of the longest
//! length; 0: the paper's equation). The logits depend on it through rounding only.
//!
//! ## Deviations
//! The default centre is not that of the authors' code. A `scale_base` is refused if it is so small that a factor would
//! leave the range of f32 within the longest sequence of the run. If a factor would leave the range before eight times
//! that length, positions from there on are refused; otherwise xPos counts as unlimited.
//!
//! ## References
//! Sun et al. 2022, "A Length-Extrapolatable Transformer", arXiv 2212.10554; authors' code
//! `microsoft/torchscale` at 4d1e0e82e5.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::LayerContext;
use crate::math::frequencies::{check_base, inverse_frequencies};
use crate::reference::{Heads, ScalarInput, ScalarReference, rope, rope_scaling};
use crate::rotary::{Pairs, Rotation, check_pairs};
use crate::settings::is_default;
use crate::{Cost, Dims, PeError, PositionEncoding, Positions};

/// Natural logarithm of the largest factor whose square does not overflow f32.
const LARGEST_LOG: f64 = 40.0;

/// Lengths of more than this many times the longest sequence of the run have no limit.
const UNLIMITED: usize = 8;

/// Position at which queries and keys are not scaled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Centre {
    /// Middle between the first and the last column.
    #[default]
    Middle,
    /// Half the last position plus one, rounded up, as in torchscale.
    Torchscale,
    /// The same position at every length.
    Given(f64),
}

impl Centre {
    /// Centre of columns at these positions.
    pub fn of(self, cols: &[usize]) -> f64 {
        let (Some(first), Some(last)) = (cols.first(), cols.last()) else { return 0.0 };
        match self {
            Self::Middle => (first + last) as f64 / 2.0,
            Self::Torchscale => (last + 1).div_ceil(2) as f64,
            Self::Given(centre) => centre,
        }
    }
}

crate::settings! {
    /// Settings of the xPos encoding.
    pub struct XposConfig {
        /// Which channels form a pair.
        pub layout: Pairs = Pairs::Interleaved,
        /// Base of the frequencies, as in RoPE.
        pub base: f64 = 10_000.0,
        /// Number of positions over which a pair decays by the factor `zeta`.
        pub scale_base: f64 = 512.0,
        /// Position at which queries and keys are not scaled.
        #[serde(skip_serializing_if = "is_default")]
        pub centre: Centre = Centre::Middle,
    }
}

/// Rotation of queries and keys with exponential decay.
#[derive(Module, Debug)]
pub struct Xpos {
    #[module(skip)]
    config: XposConfig,
    #[module(skip)]
    head_dim: usize,
    /// Number of positions before a factor may leave the range of f32.
    #[module(skip)]
    max_len: Option<usize>,
    /// Cache key of everything that the tables depend on besides positions.
    #[module(skip)]
    key: String,
}

/// Logarithm of the decay `zeta` of each pair; at most 0.
fn fading(head_dim: usize) -> Vec<f64> {
    let width = head_dim as f64;
    (0..head_dim / 2).map(|m| ((2.0 * m as f64 + 0.4 * width) / (1.4 * width)).ln()).collect()
}

/// Negative logarithm of the strongest decay `zeta`.
fn steepest(head_dim: usize) -> f64 {
    fading(head_dim).first().map_or(0.0, |log| -log)
}

/// Number of positions before a factor may leave the range of f32, for settings that `check` accepts; `None` if it is
/// [`UNLIMITED`] times that of the run or more.
fn max_len(settings: &XposConfig, dims: &Dims) -> Option<usize> {
    let farthest = LARGEST_LOG * settings.scale_base / steepest(dims.head_dim);
    let longest = match settings.centre {
        Centre::Middle | Centre::Torchscale => 2.0 * farthest,
        Centre::Given(centre) => centre + farthest,
    };
    let longest = (longest as usize).max(dims.max_len);
    (longest < dims.max_len.saturating_mul(UNLIMITED)).then_some(longest)
}

impl Xpos {
    /// Rotations of queries and of keys.
    fn rotations(&self, at: &Positions, device: &Device) -> (Rotation, Rotation) {
        at.memo(&self.key, device, || {
            let XposConfig { layout, base, scale_base, centre } = self.config;
            let (frequencies, fading) =
                (inverse_frequencies(base, self.head_dim), fading(self.head_dim));
            let centre = centre.of(at.cols());
            let table = |sign: f64| {
                Rotation::tabulate(at, layout, frequencies.len(), device, |position, m| {
                    let n = position as f64;
                    let stretch = (sign * (n - centre) / scale_base * fading[m]).exp();
                    (n * frequencies[m], stretch)
                })
            };
            (table(1.0), table(-1.0))
        })
    }
}

impl PositionEncoding for Xpos {
    type Settings = XposConfig;

    const CARD: Card = Card {
        id: "xpos",
        label: "xPos",
        summary: "Rotates queries and keys, and lets each pair of channels decay with the distance.",
        parameters: "0",
        paper: "Sun et al. 2022",
        url: "https://arxiv.org/abs/2212.10554",
    };

    fn check(settings: &XposConfig, dims: &Dims) -> Result<(), PeError> {
        let (pe, scale_base) = (Self::CARD.id, settings.scale_base);
        check_pairs(pe, dims.head_dim)?;
        check_base(pe, "base", settings.base)?;
        let longest = dims.max_len as f64;
        let farthest = match settings.centre {
            Centre::Middle | Centre::Torchscale => longest / 2.0,
            Centre::Given(centre) => {
                let usable = centre.is_finite() && centre >= 0.0;
                let expected = "a position, a number of at least 0";
                PeError::require(usable, pe, "centre.given", centre, expected)?;
                centre.max(longest - centre)
            }
        };
        let least = steepest(dims.head_dim) * farthest / LARGEST_LOG;
        let usable = scale_base.is_finite() && scale_base > least;
        let expected = format!("more than {least:.3}, for sequences of {} tokens", dims.max_len);
        PeError::require(usable, pe, "scale_base", scale_base, expected)
    }

    fn build(
        settings: &XposConfig,
        dims: &Dims,
        _rng: &mut ChaCha8Rng,
        _device: &Device,
    ) -> Result<Self, PeError> {
        let key = format!("xpos {} {settings:?}", dims.head_dim);
        let max_len = max_len(settings, dims);
        Ok(Xpos { config: settings.clone(), head_dim: dims.head_dim, max_len, key })
    }

    fn cost(_settings: &XposConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let channels = 2 * dims.layers * len * dims.heads_width();
        Some(Cost::none().elementwise("rotation of queries and keys", 3 * channels))
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
        let (of_queries, of_keys) = self.rotations(ctx.at, &q.device());
        (of_queries.rows(ctx.at).turn(q), of_keys.turn(k))
    }

    fn max_len(&self) -> Option<usize> {
        self.max_len
    }
}

impl ScalarReference for Xpos {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        let XposConfig { layout, base, scale_base, centre } = self.config;
        let centre = centre.of(&input.positions);
        let dim = self.head_dim;
        let frequencies = (0..dim / 2)
            .map(|m| rope_scaling::plain(rope_scaling::ScalarPair { base, dim, m }))
            .collect::<Vec<_>>();
        rope::xpos(input, &frequencies, scale_base, centre, layout == Pairs::Interleaved)
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        self.scalar_transformed(input).plain()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::encoding::PositionRequest;
    use crate::erased::positions;
    use crate::testkit::close::numbers;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples {
            facts: "acts on query, key; shift invariant, stretches queries",
            texts: &[
                "xpos",
                "xpos{layout=half-split,scale_base=20.0,base=50.0}",
                "xpos{centre=torchscale}",
            ],
        },
        Examples {
            facts: "acts on query, key; shift invariant",
            texts: &["xpos{centre={given=0.0}}"],
        },
    ];

    /// Expected values for D 64 and 100 positions at a scale base of 512.
    #[test]
    fn fading_is_that_of_the_specification() {
        let fading = fading(64);
        for (m, zeta, hundred) in
            [(0, 0.285_714, 0.782_955), (16, 0.642_857, 0.917_323), (31, 0.977_679, 0.995_601)]
        {
            assert!((fading[m].exp() - zeta).abs() < 5e-7, "{m}");
            assert!(((fading[m] * 100.0 / 512.0).exp() - hundred).abs() < 5e-7, "{m}");
        }
        assert!((fading[1].exp() - 0.308_036).abs() < 5e-7);
    }

    /// From `2 * 40 scale_base / ln 3.5` tokens on, factors might overflow.
    #[test]
    fn lengths_beyond_those_of_the_run_are_refused_where_factors_would_overflow() {
        let dims =
            Dims { layers: 1, width: 64, heads: 1, head_dim: 64, train_len: 64, max_len: 64 };
        let xpos = |scale_base| {
            let settings = XposConfig { scale_base, ..XposConfig::default() };
            Xpos::check(&settings, &dims).unwrap();
            let mut rng = ChaCha8Rng::seed_from_u64(0);
            Xpos::build(&settings, &dims, &mut rng, &Device::flex()).unwrap()
        };
        let steep = xpos(1.1);
        assert_eq!(steep.max_len, Some(70));
        let ask = |new_tokens| {
            let request = PositionRequest { cached_tokens: 0, new_tokens, training_rng: None };
            positions(&steep, Xpos::CARD.id, request)
        };
        assert!(matches!(ask(71), Err(PeError::TooLong { .. })));
        let at = ask(70).unwrap();
        let (of_queries, of_keys) = steep.rotations(&at, &Device::flex());
        let turned = [of_queries, of_keys].map(|rotation| {
            numbers(rotation.turn(Tensor::<4>::ones([1, 1, 70, 64], &Device::flex())))
        });
        // So that products with columns that a row does not see are finite too.
        assert!(turned.concat().iter().all(|x| x.is_finite() && (x * x) < f64::from(f32::MAX)));
        assert_eq!(xpos(512.0).max_len, None);
    }

    #[test]
    fn a_scale_base_that_would_overflow_is_refused() {
        let dims =
            Dims { layers: 1, width: 8, heads: 1, head_dim: 8, train_len: 8, max_len: 100_000 };
        let error = Xpos::check(&XposConfig::default(), &dims).unwrap_err().to_string();
        assert!(error.contains("scale_base is 512, expected more than 1565"), "{error}");
        Xpos::check(&XposConfig { scale_base: 2048.0, ..XposConfig::default() }, &dims).unwrap();
        let at_start =
            XposConfig { centre: Centre::Given(0.0), scale_base: 2048.0, ..XposConfig::default() };
        let error = Xpos::check(&at_start, &dims).unwrap_err().to_string();
        assert!(error.contains("expected more than 3131"), "{error}");
        let nowhere = XposConfig { centre: Centre::Given(f64::NAN), ..XposConfig::default() };
        let error = Xpos::check(&nowhere, &dims).unwrap_err().to_string();
        assert!(error.contains("centre.given is NaN"), "{error}");
    }
}

//! # RoPE: queries and keys turned by their position
//!
//! ## What it does
//! Rotates pairs of channels of each query and key by an angle proportional to its position, so
//! that their dot product depends only on the difference of positions. Slow pairs resolve long
//! distances, fast pairs short ones.
//!
//! ## Formula
//! `angle[n, m] = n * f_m`, `f_m = base^(-2m / R)`, `R = floor(rotary_fraction D)`;
//! `(a, b) -> (a cos - b sin, b cos + a sin)` for each pair `(a, b)` of the first `R` channels.
//!
//! ## Shapes
//! `transform_qk: [B, H, T, D], [B, H, S, D]` unchanged; `R` even.
//!
//! ## Settings
//! `layout`: `half-split` (default; pairs `(m, m + R/2)`, as Llama and TAPE) or `interleaved`
//! (pairs `(2m, 2m+1)`, as RoFormer). The same weights give different numbers under the two.
//! `base` (10000, the paper's).
//! `rotary_fraction` (1): fraction of the channels that are rotated; GPT-NeoX rotates a quarter.
//! `scaling`: an object as HuggingFace's `rope_scaling`, `{ rope_type = "default" }` (default),
//! `linear`, `dynamic`, `yarn`, `longrope`, `llama3`, `proportional` (p-RoPE), and `ntk`, `part-ntk` and
//! `composed` (`parts`, a list of scalings that apply one after the other), which have no name there; see
//! [`Scaling`]. `type` is accepted in place of `rope_type`. The default of `original_max_position_embeddings` is the
//! training length.
//!
//! ## Deviations
//! `dynamic` and `longrope` depend on the length of the sequence. Their cache holds keys before
//! rotation, so all of them are rotated again in every pass, and a decoding step of one layer equals
//! the full pass of its own length. Keys and values of deeper layers are those of the passes in which
//! their tokens were read. HuggingFace caches the keys as first rotated, as is done here with all
//! other scalings. LongRoPE's multiplier comes from `factor`, not from Phi-3's quotient of two
//! lengths, which are not part of the object.
//! YaRN's ramp runs over pairs, as in its code, not over wavelengths, as in its paper. Settings of
//! which HuggingFace only warns (unknown keys, factors below 1) are refused, and so are settings of
//! YaRN that it would ignore.
//!
//! ## References
//! Su et al. 2021, "RoFormer", arXiv 2104.09864. Scalings: Chen et al. 2023, arXiv 2306.15595
//! (linear); Peng et al. 2023, "YaRN", arXiv 2309.00071 (NTK-aware, dynamic, YaRN); Ding et al. 2024,
//! "LongRoPE", arXiv 2402.13753; Llama 3.1; Barbero et al. 2024, arXiv 2410.06205 (p-RoPE); all in
//! the form of HuggingFace transformers' modeling_rope_utils.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::LayerContext;
use crate::math::frequencies::check_base;
use crate::reference::{Heads, ScalarInput, ScalarReference, rope, rope_scaling};
pub use crate::rotary::{Pairs, Scaling};
use crate::rotary::{Rotation, check_pairs};
use crate::{Cost, Dims, PeError, PositionEncoding, Positions};

/// Settings of the RoPE encoding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RopeConfig {
    /// Pairing of the channels that are rotated together.
    pub layout: Pairs,
    /// Base of the frequencies: the slowest pair completes a turn in about `2 pi base` positions.
    pub base: f64,
    /// Fraction of the channels, from the first, that are rotated; from 0 to 1.
    pub rotary_fraction: f64,
    /// Scaling of the frequencies for sequences longer than in training.
    pub scaling: Scaling,
}

impl Default for RopeConfig {
    fn default() -> Self {
        Self {
            layout: Pairs::HalfSplit,
            base: 10_000.0,
            rotary_fraction: 1.0,
            scaling: Scaling::None,
        }
    }
}

/// Rotation of queries and keys by angles proportional to position.
#[derive(Module, Debug)]
pub struct Rope {
    #[module(skip)]
    config: RopeConfig,
    /// Number of channels that are rotated.
    #[module(skip)]
    turning: usize,
    #[module(skip)]
    train_len: usize,
    /// Cache key of everything besides positions on which the tables depend; built once, looked up
    /// in every layer.
    #[module(skip)]
    key: String,
}

impl RopeConfig {
    /// Number of channels that are rotated.
    fn turning(&self, head_dim: usize) -> usize {
        (self.rotary_fraction * head_dim as f64) as usize
    }
}

impl Rope {
    fn rotation(&self, at: &Positions, device: &Device) -> Rotation {
        at.memo(&self.key, device, || {
            let RopeConfig { layout, base, scaling, .. } = &self.config;
            let len = at.cols().last().map_or(0, |last| last + 1);
            let spectrum = scaling.spectrum(*base, self.turning, self.train_len, len);
            Rotation::tabulate(at, *layout, self.turning / 2, device, |position, m| {
                (position as f64 * spectrum.frequencies[m], spectrum.attention_factor)
            })
        })
    }

    /// Computes frequencies and attention factor at a length by each source's equation.
    fn equations(&self, len: usize) -> (Vec<f64>, f64) {
        use rope_scaling as eq;
        let (base, dim) = (self.config.base, self.turning);
        let original = |given: Option<usize>| given.unwrap_or(self.train_len);
        let each = |frequency: &dyn Fn(eq::ScalarPair) -> f64| {
            (0..dim / 2).map(|m| frequency(eq::ScalarPair { base, dim, m })).collect()
        };
        let plain = 1.0;
        match &self.config.scaling {
            Scaling::None => (each(&eq::plain), plain),
            Scaling::Linear { factor } => (each(&|pair| eq::linear(pair, *factor)), plain),
            Scaling::Ntk { factor } => (each(&|pair| eq::ntk(pair, *factor)), plain),
            Scaling::Dynamic { factor, original_max_position_embeddings } => {
                let original = original(*original_max_position_embeddings);
                (each(&|pair| eq::dynamic(pair, *factor, len, original)), plain)
            }
            Scaling::Yarn(yarn) => {
                let ramp = eq::ScalarRamp {
                    fast: yarn.beta_fast,
                    slow: yarn.beta_slow,
                    original: original(yarn.original_max_position_embeddings),
                    truncate: yarn.truncate,
                };
                let extrapolation = yarn.extrapolation_factor.unwrap_or(1.0);
                let frequency = |pair| eq::yarn(pair, yarn.factor(), extrapolation, ramp);
                let mscales = yarn.mscale.zip(yarn.mscale_all_dim).map(|(a, b)| [a, b]);
                let attention = yarn
                    .attention_factor
                    .unwrap_or_else(|| eq::yarn_attention(yarn.factor(), mscales));
                (each(&frequency), attention)
            }
            Scaling::PartNtk(part) => {
                let original = original(part.original_max_position_embeddings);
                let frequency = |pair| {
                    eq::part_ntk(
                        pair,
                        part.factor,
                        part.ntk_factor,
                        part.extrapolation_factor,
                        original,
                    )
                };
                (each(&frequency), plain)
            }
            // A sequence of scalings has no equation of its own; `fixtures/options.json` has numbers of it.
            Scaling::Composed { .. } => {
                let spectrum = self.config.scaling.spectrum(base, dim, self.train_len, len);
                (spectrum.frequencies, spectrum.attention_factor)
            }
            Scaling::LongRope(long) => {
                let original = original(long.original_max_position_embeddings);
                let divisors = if len > original { &long.long_factor } else { &long.short_factor };
                let attention = long.attention_factor.unwrap_or_else(|| {
                    eq::longrope_attention(long.factor.unwrap_or(1.0), original)
                });
                (each(&|pair| eq::longrope(pair, divisors)), attention)
            }
            Scaling::Llama3(llama) => {
                let original = llama.original_max_position_embeddings;
                let (low, high) = (llama.low_freq_factor, llama.high_freq_factor);
                (each(&|pair| eq::llama3(pair, llama.factor, low, high, original)), plain)
            }
            Scaling::Proportional { partial_rotary_factor, factor } => {
                (each(&|pair| eq::proportional(pair, *partial_rotary_factor, *factor)), plain)
            }
        }
    }
}

impl PositionEncoding for Rope {
    type Settings = RopeConfig;

    const CARD: Card = Card {
        id: "rope",
        label: "RoPE",
        summary: "Rotates queries and keys by angles proportional to their positions.",
        parameters: "0",
        paper: "Su et al. 2021",
        url: "https://arxiv.org/abs/2104.09864",
    };

    fn check(settings: &RopeConfig, dims: &Dims) -> Result<(), PeError> {
        let (pe, whole) = (Self::CARD.id, settings.rotary_fraction);
        let require = |holds: bool, expected: &str| {
            PeError::require(holds, pe, "rotary_fraction", whole, expected)
        };
        require((0.0..=1.0).contains(&whole), "a fraction from 0 to 1")?;
        let turning = settings.turning(dims.head_dim);
        if turning == dims.head_dim {
            check_pairs(pe, dims.head_dim)?;
        }
        let expected = format!(
            "a share that rotates an even number of the {} channels, not {turning}",
            dims.head_dim
        );
        require(turning.is_multiple_of(2), &expected)?;
        require(
            turning > 0 || settings.scaling == Scaling::None,
            "a share that rotates at least two channels, because a scaling is given",
        )?;
        check_base(pe, "base", settings.base)?;
        settings.scaling.check(pe, turning, dims.train_len)
    }

    fn build(
        settings: &RopeConfig,
        dims: &Dims,
        _rng: &mut ChaCha8Rng,
        _device: &Device,
    ) -> Result<Self, PeError> {
        let config = RopeConfig { scaling: settings.scaling.resolved(dims), ..settings.clone() };
        Ok(Rope {
            turning: settings.turning(dims.head_dim),
            train_len: dims.train_len,
            key: format!("rope {} {} {config:?}", dims.head_dim, dims.train_len),
            config,
        })
    }

    fn cost(_settings: &RopeConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let channels = 2 * dims.layers * len * dims.width();
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
        if self.turning == 0 {
            return (q, k);
        }
        let rotation = self.rotation(ctx.at, &q.device());
        rotation.turn_both(q, k, ctx.at)
    }

    fn fixed_keys(&self) -> bool {
        !self.config.scaling.depends_on_length()
    }
}

impl ScalarReference for Rope {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        let len = input.positions.last().map_or(0, |last| last + 1);
        let (frequencies, attention) = self.equations(len);
        let interleaved = self.config.layout == Pairs::Interleaved;
        rope::transformed(input, &frequencies, attention, interleaved)
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        self.scalar_transformed(input).plain()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;
    use proptest::prelude::*;
    use rand_chacha::rand_core::SeedableRng;
    use serde_json::json;

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples {
            facts: "acts on query, key; shift invariant",
            texts: &[
                "rope",
                "rope{layout=interleaved}",
                "rope{scaling={type=linear,factor=2.0}}",
                "rope{scaling={type=ntk,factor=4.0},base=500.0}",
                "rope{rotary_fraction=0.67,base=50.0}",
                "rope{rotary_fraction=0.67,layout=interleaved}",
                "rope{scaling={rope_type=ntk,factor=4.0},base=500.0}",
                "rope{base=50.0,scaling={rope_type=yarn,factor=4.0,beta_fast=2.0,beta_slow=0.5}}",
                "rope{scaling={rope_type=yarn,factor=4.0,truncate=false,mscale=1.0,mscale_all_dim=0.5}}",
                "rope{scaling={rope_type=yarn,factor=4.0,extrapolation_factor=0.5}}",
                "rope{base=50.0,scaling={rope_type=part-ntk,factor=4.0,ntk_factor=0.5,original_max_position_embeddings=16}}",
                "rope{scaling={rope_type=longrope,attention_factor=1.2,short_factor=[1.0,1.5,2.0],long_factor=[1.0,1.5,2.0]}}",
                "rope{base=50.0,scaling={rope_type=llama3,factor=8.0,low_freq_factor=0.5,high_freq_factor=2.0,original_max_position_embeddings=16}}",
                "rope{scaling={rope_type=proportional,factor=2.0,partial_rotary_factor=0.7}}",
            ],
        },
        Examples {
            facts: "acts on query, key; depends on length",
            texts: &[
                "rope{scaling={rope_type=dynamic,factor=2.0}}",
                "rope{base=50.0,scaling={rope_type=dynamic,factor=1.0,original_max_position_embeddings=6}}",
                "rope{base=50.0,scaling={rope_type=composed,parts=[{rope_type=llama3,factor=8.0,low_freq_factor=0.5,high_freq_factor=2.0,original_max_position_embeddings=16},{rope_type=dynamic,factor=1.0,original_max_position_embeddings=6}]}}",
                "rope{scaling={rope_type=longrope,factor=2.0,short_factor=[1.0,1.5,2.0],long_factor=[1.0,3.0,9.0]}}",
            ],
        },
    ];

    const DIMS: Dims = Dims { layers: 1, heads: 1, head_dim: 8, train_len: 8, max_len: 8 };

    fn config(settings: serde_json::Value) -> RopeConfig {
        serde_json::from_value(settings).unwrap()
    }

    #[test]
    fn an_odd_head_dimension_is_refused_by_name() {
        let dims = Dims { head_dim: 15, ..DIMS };
        let error = Rope::check(&RopeConfig::default(), &dims).unwrap_err().to_string();
        assert!(error.contains("model.head_dim is 15") && error.contains("even"), "{error}");
    }

    #[test]
    fn shares_that_cannot_turn_pairs_are_refused() {
        for (share, expected) in [(0.4, "even number of the 8"), (1.5, "0 to 1"), (-0.1, "0 to 1")]
        {
            let error =
                Rope::check(&config(json!({ "rotary_fraction": share })), &DIMS).unwrap_err();
            let error = error.to_string();
            assert!(error.contains("rotary_fraction") && error.contains(expected), "{error}");
        }
        Rope::check(&config(json!({ "rotary_fraction": 0.5 })), &DIMS).unwrap();
    }

    #[test]
    fn a_factor_below_one_is_refused() {
        let error =
            Rope::check(&config(json!({ "scaling": { "type": "linear", "factor": 0.5 } })), &DIMS);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("rope: scaling.factor is 0.5"), "{error}");
    }

    fn rope(settings: serde_json::Value, dims: &Dims) -> Rope {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        Rope::build(&config(settings), dims, &mut rng, &Device::flex()).unwrap()
    }

    proptest! {
        /// Compares the tensors' frequencies with the equations for the settings of all kinds.
        #[test]
        fn frequencies_are_those_of_the_equations(
            half in 2usize..40, base in 2.0f64..1e6, factor in 1.0f64..64.0,
            original in 2usize..5000, len in 1usize..20_000, slow in 0.5f64..8.0,
            more in 0.1f64..60.0, share in 0.0f64..1.0, truncate: bool,
        ) {
            let dims = Dims { head_dim: 2 * half, train_len: original, ..DIMS };
            let divisors = |step: f64| (0..half).map(|m| 1.0 + step * m as f64).collect::<Vec<_>>();
            let all = [
                json!({ "rope_type": "default" }),
                json!({ "rope_type": "linear", "factor": factor }),
                json!({ "rope_type": "ntk", "factor": factor }),
                json!({ "rope_type": "dynamic", "factor": factor }),
                json!({ "rope_type": "yarn", "factor": factor, "beta_slow": slow,
                    "beta_fast": slow + more, "truncate": truncate }),
                json!({ "rope_type": "yarn", "factor": factor, "mscale": share + 0.1,
                    "mscale_all_dim": 0.5 }),
                json!({ "rope_type": "yarn", "factor": factor, "extrapolation_factor": share }),
                json!({ "rope_type": "part-ntk", "factor": factor, "ntk_factor": share,
                    "extrapolation_factor": 1.0 - share }),
                json!({ "rope_type": "longrope", "factor": factor, "short_factor": divisors(0.1),
                    "long_factor": divisors(0.7) }),
                json!({ "rope_type": "llama3", "factor": factor, "low_freq_factor": slow,
                    "high_freq_factor": slow + more, "original_max_position_embeddings": original }),
                json!({ "rope_type": "proportional", "partial_rotary_factor": share,
                    "factor": factor }),
            ];
            for scaling in all {
                let rope = rope(json!({ "base": base, "scaling": scaling }), &dims);
                let (frequencies, attention) = rope.equations(len);
                let spectrum = rope.config.scaling.spectrum(base, 2 * half, original, len);
                prop_assert!((spectrum.attention_factor - attention).abs() < 1e-12, "{scaling}");
                for (a, b) in spectrum.frequencies.iter().zip(&frequencies) {
                    prop_assert!((a - b).abs() <= 1e-9 * b, "{scaling}: {a} {b}");
                }
                prop_assert_eq!(spectrum.frequencies.len(), frequencies.len());
                prop_assert!(frequencies.iter().all(|f| (0.0..=1.0).contains(f)), "{}", scaling);
            }
        }
    }
}

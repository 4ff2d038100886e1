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
//! `transform_qk: [B, H, T, D], [B, H, S, D]` unchanged; `R` even. With `far`, `score: FarProducts`.
//!
//! ## Settings
//! `layout`: `half-split` (default; pairs `(m, m + R/2)`, as Llama and TAPE) or `interleaved`
//! (pairs `(2m, 2m+1)`, as RoFormer). The same weights give different numbers under the two.
//! `base` (10000, the paper's).
//! `rotary_fraction` (1): fraction of the channels that are rotated; GPT-NeoX rotates a quarter.
//! `scaling`: an object as HuggingFace's `rope_scaling`, `{ rope_type = "default" }` (default), `linear`, `dynamic`,
//! `yarn`, `longrope`, `llama3`, `proportional` (p-RoPE), and `ntk`, `part-ntk` and `composed` (`parts`, a list of
//! scalings that apply one after the other), which have no name there; see [`Scaling`]. Two more without a name there
//! are `clipped` (clipped RoPE, which its authors call CoPE: the `pairs` slowest frequencies, at most 20 by default as in its code, of 64 in the paper,
//! times `(1 + cos t) / 2`, `t` from 0 to pi; with `hard` times 0) and `high-frequency` (HoPE: pairs without a whole
//! turn within the trained length do not turn). `type` is accepted in place of `rope_type`. The default of
//! `original_max_position_embeddings` is the training length.
//! `learning` (`fixed`): with `all-layers` or `per-layer` frequencies are `f_m exp(alpha_m)` after the scaling, `alpha` learned
//! (LeRoPE of Mistral Large 4, which has one set for all layers).
//! `imaginary` (false): each second head has query and key of the head before it, and the imaginary part of their products in
//! place of the real part: its query is turned by a quarter less, `angle - pi / 2` (RoPE++, "equal heads"). The last of an odd number
//! of heads has the real part.
//! `far`: `{ type = "none" }` (default); `{ type = "grouped", window, group }` (SelfExtend: from the distance `window` on, the
//! distance is `floor(i / group) - floor(j / group) + window - floor(window / group)`), `{ type = "constant", window }`
//! (ReRoPE: from there on, the distance is `window`), or `{ type = "chunks", chunk, window }` (dual chunk attention: keys have their
//! position within their chunk; for those of other chunks queries have the position `chunk + window - 1`, except that the first
//! `window` queries of a chunk have exact distances to the chunk before). None needs training.
//!
//! ## Initial values
//! `alpha`: 0, so that learned frequencies start at those of RoPE, as in Mistral Large 4.
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
//! An imaginary head has values of its own, and projections to queries and keys that nothing reads; in RoPE++ it has no
//! projections, and values of the head before it. A head that kept its own query and key would learn the same as one of RoPE,
//! because a quarter turn of the query is a turn of its projection.
//! Dual chunk attention has the form of its paper: the far query is at the last position of its chunks. The authors' ChunkLlama puts
//! it one further, and its `chunk_size` includes the local window.
//!
//! ## References
//! Su et al. 2021, "RoFormer", arXiv 2104.09864. Scalings: Chen et al. 2023, arXiv 2306.15595
//! (linear); Peng et al. 2023, "YaRN", arXiv 2309.00071 (NTK-aware, dynamic, YaRN); Ding et al. 2024,
//! "LongRoPE", arXiv 2402.13753; Llama 3.1; Barbero et al. 2024, arXiv 2410.06205 (p-RoPE); all in
//! the form of HuggingFace transformers' modeling_rope_utils. Li et al. 2026, arXiv 2602.05258 (clipped RoPE), authors' code
//! `hrlics/CoPE` `modeling_cope.py`; Chen et al. 2024, arXiv 2410.21216 (HoPE). LeRoPE: `modeling_mistral_large4.py` of
//! transformers 5.24.0. Liu et al. 2025, arXiv 2512.07525 (RoPE++), authors' code `OpenMOSS/rope_pp` (`imag1`). Jin et al. 2024,
//! arXiv 2401.01325 (SelfExtend), authors' code `datamllab/LongLM`; Su 2023, `bojone/rerope` (ReRoPE); An et al. 2024,
//! arXiv 2402.17463 (dual chunk attention).

mod equations;
mod far;

use std::borrow::Cow;
use std::f64::consts::FRAC_PI_2;

pub use far::Far;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use crate::card::Card;
use crate::encoding::{LayerContext, ScoreContext};
use crate::math::frequencies::check_base;
use crate::reference::ScalarReference;
pub use crate::rotary::{Pairs, Scaling};
use crate::rotary::{Rotation, check_pairs};
use crate::score::FarProducts;
use crate::settings::{Learning, is_default, learned};
use crate::{Cost, Dims, PeError, PositionEncoding, Positions, ScoreMod, card, init};

crate::settings! {
    /// Settings of the RoPE encoding.
    pub struct RopeConfig {
        /// Pairing of the channels that are rotated together.
        pub layout: Pairs = Pairs::HalfSplit,
        /// Base of the frequencies: the slowest pair completes a turn in about `2 pi base` positions.
        pub base: f64 = 10_000.0,
        /// Fraction of the channels, from the first, that are rotated; from 0 to 1.
        pub rotary_fraction: f64 = 1.0,
        /// Scaling of the frequencies for sequences longer than in training.
        pub scaling: Scaling = Scaling::None,
        /// Whether factors of the frequencies are learned, and which layers share them.
        #[serde(skip_serializing_if = "is_default")]
        pub learning: Learning = Learning::Fixed,
        /// Whether each second head has the imaginary part of the products of the head before it.
        #[serde(skip_serializing_if = "is_default")]
        pub imaginary: bool = false,
        /// Distances that count beyond a window.
        #[serde(skip_serializing_if = "is_default")]
        pub far: Far = Far::default(),
    }
}

/// Rotation of queries and keys by angles proportional to position.
#[derive(Module, Debug)]
pub struct Rope {
    /// Logarithms of learned factors of the frequencies, `[R / 2]` each: no tensor, one, or one per layer.
    pub log_factors: Vec<Param<Tensor<1>>>,
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

/// Vectors that a rotation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turned {
    /// Queries and keys, by the angles of their positions.
    Own,
    /// Queries of imaginary heads, by a quarter less.
    Quarter,
    /// Rotated queries, on to their positions for far keys.
    FarQuery,
    /// Rotated keys, on to their positions for far queries.
    FarKey,
}

impl Rope {
    /// Positions by which vectors are turned.
    fn turn_of(&self, turned: Turned, position: f64) -> f64 {
        match turned {
            Turned::Own | Turned::Quarter => position,
            Turned::FarQuery => self.config.far.of_query(position) - position,
            Turned::FarKey => self.config.far.of_key(position) - position,
        }
    }

    fn rotation(&self, turned: Turned, ctx: &LayerContext<'_>, device: &Device) -> Rotation {
        let RopeConfig { layout, base, scaling, .. } = &self.config;
        let at = ctx.at;
        let key = match turned {
            Turned::Own => Cow::Borrowed(&self.key),
            other => Cow::Owned(format!("{} {other:?}", self.key)),
        };
        let phase = if turned == Turned::Quarter { FRAC_PI_2 } else { 0.0 };
        let spectrum = || scaling.spectrum(*base, self.turning, self.train_len, at.len());
        let turn_of = |number: usize| self.turn_of(turned, number as f64 * at.unit());
        let Some(logs) = learned(&self.log_factors, ctx.layer) else {
            return at.memo(&key, device, || {
                let spectrum = spectrum();
                let further = matches!(turned, Turned::FarQuery | Turned::FarKey);
                let factor = if further { 1.0 } else { spectrum.attention_factor };
                Rotation::tabulate(at, *layout, self.turning / 2, device, |number, m| {
                    (turn_of(number) * spectrum.frequencies[m] - phase, factor)
                })
            });
        };
        let pairs = self.turning / 2;
        let (turns, frequencies) = at.memo(&key, device, || {
            let tensor = |values: Vec<f64>, shape: [usize; 4]| {
                let values = values.into_iter().map(|x| x as f32).collect::<Vec<_>>();
                Tensor::<4>::from_data(TensorData::new(values, shape), device)
            };
            let turns = at.cols().iter().map(|number| turn_of(*number)).collect::<Vec<_>>();
            let shape = [1, 1, turns.len(), 1];
            (tensor(turns, shape), tensor(spectrum().frequencies, [1, 1, 1, pairs]))
        });
        let angles = turns * (frequencies * logs.val().exp().reshape([1, 1, 1, pairs]));
        Rotation::of_pairs_by_angles(angles - phase, *layout)
    }

    /// Multiplies rotated channels by the attention factor of the scaling, which angles that are learned do not contain.
    fn magnified(&self, u: Tensor<4>, at: &Positions) -> Tensor<4> {
        let RopeConfig { base, scaling, learning, .. } = &self.config;
        let factor = match learning {
            Learning::Fixed => 1.0,
            Learning::AllLayers | Learning::PerLayer => {
                scaling.spectrum(*base, self.turning, self.train_len, at.len()).attention_factor
            }
        };
        let [_batch, _heads, _tokens, channels] = u.dims();
        if is_one(factor) {
            u
        } else if channels == self.turning {
            u * factor
        } else {
            let turning = u.clone().slice_dim(3, 0..self.turning) * factor;
            Tensor::cat(vec![turning, u.slice_dim(3, self.turning..channels)], 3)
        }
    }
}

fn is_one(factor: f64) -> bool {
    (factor - 1.0).abs() < f64::EPSILON
}

/// Vectors of heads in twos.
struct Twos {
    /// First head of each two, `[B, H / 2, T, D]`.
    first: Tensor<4>,
    /// Last of an odd number of heads, `[B, 1, T, D]`.
    last: Option<Tensor<4>>,
}

impl Twos {
    fn of(u: Tensor<4>) -> Self {
        let [batch, heads, tokens, channels] = u.dims();
        let twos = heads / 2;
        let last = (heads > 2 * twos).then(|| u.clone().slice_dim(1, 2 * twos..heads));
        let first = u.slice_dim(1, 0..2 * twos).reshape([batch, twos, 2, tokens, channels]);
        let first = first.slice_dim(2, 0..1).reshape([batch, twos, tokens, channels]);
        Self { first, last }
    }

    /// All heads, `[B, H, T, D]`, where these are the second ones.
    fn with(self, second: Tensor<4>) -> Tensor<4> {
        let [batch, twos, tokens, channels] = second.dims();
        let both = Tensor::stack::<5>(vec![self.first, second], 2);
        let both = both.reshape([batch, 2 * twos, tokens, channels]);
        match self.last {
            Some(last) => Tensor::cat(vec![both, last], 1),
            None => both,
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

    fn card(settings: &RopeConfig) -> Card {
        let RopeConfig { rotary_fraction, learning, imaginary, .. } = *settings;
        let channels = if is_one(rotary_fraction) { "D / 2" } else { "rotary_fraction D / 2" };
        let parameters = match learning {
            Learning::Fixed => Self::CARD.parameters,
            Learning::AllLayers => channels,
            Learning::PerLayer => card::text(format!("L {channels}")),
        };
        if imaginary {
            return Card {
                label: "RoPE++",
                summary: "Rotates queries and keys by their positions; half of the heads use the imaginary part of \
                     the product.",
                parameters,
                paper: "Liu et al. 2025",
                url: "https://arxiv.org/abs/2512.07525",
                ..Self::CARD
            };
        }
        Card { parameters, ..Self::CARD }
    }

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
        let RopeConfig { scaling, learning, imaginary, far, .. } = settings;
        let unused =
            *scaling == Scaling::None && is_default(learning) && !imaginary && is_default(far);
        require(
            turning > 0 || unused,
            "a share that rotates at least two channels, because a scaling or another change of the rotation is given",
        )?;
        let expected =
            "at least 2, because each second head has the imaginary part of the one before it";
        let two = !imaginary || dims.heads > 1;
        PeError::require(two, pe, "model.heads", dims.heads, expected)?;
        far.check(pe)?;
        check_base(pe, "base", settings.base)?;
        settings.scaling.check(pe, turning, dims.train_len)
    }

    fn build(
        settings: &RopeConfig,
        dims: &Dims,
        _rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let turning = settings.turning(dims.head_dim);
        let sets = settings.learning.sets(dims.layers);
        let config = RopeConfig { scaling: settings.scaling.resolved(dims), ..settings.clone() };
        Ok(Rope {
            log_factors: (0..sets).map(|_| init::zeros([turning / 2], device)).collect(),
            turning,
            train_len: dims.train_len,
            key: format!("rope {} {} {config:?}", dims.head_dim, dims.train_len),
            config,
        })
    }

    fn param_count(settings: &RopeConfig, dims: &Dims) -> Option<usize> {
        Some(settings.learning.sets(dims.layers) * (settings.turning(dims.head_dim) / 2))
    }

    fn cost(settings: &RopeConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let tokens = dims.layers * len;
        let channels = 2 * tokens * dims.heads_width();
        let mut cost = Cost::none().elementwise("rotation of queries and keys", 3 * channels);
        if settings.learning != Learning::Fixed {
            cost = cost.elementwise("angles", 3 * tokens * (settings.turning(dims.head_dim) / 2));
        }
        if settings.far != Far::default() {
            cost = cost
                .elementwise("rotation for far pairs", 3 * channels)
                .pair_product("products of far pairs", tokens * len * dims.heads_width());
        }
        Some(cost)
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
        let (at, device) = (ctx.at, q.device());
        let own = self.rotation(Turned::Own, ctx, &device);
        let (q, k) = if self.config.imaginary {
            let quarter = self.rotation(Turned::Quarter, ctx, &device);
            let imaginary = quarter.rows(at).turn(Twos::of(q.clone()).first);
            let (q, k) = own.turn_both(q, k, at);
            let k = Twos::of(k);
            let shared = k.first.clone();
            (Twos::of(q).with(imaginary), k.with(shared))
        } else {
            own.turn_both(q, k, at)
        };
        (self.magnified(q, at), self.magnified(k, at))
    }

    fn fixed_keys(&self) -> bool {
        let RopeConfig { scaling, imaginary, far, .. } = &self.config;
        !scaling.depends_on_length() && !imaginary && is_default(far)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let (at, device) = (ctx.layer.at, ctx.q.device());
        let Some(pairs) = self.config.far.pairs(at.steps()) else { return ScoreMod::None };
        let queries = self.rotation(Turned::FarQuery, ctx.layer, &device).rows(at);
        let keys = self.rotation(Turned::FarKey, ctx.layer, &device);
        ScoreMod::FarProducts(FarProducts {
            queries: queries.turn(ctx.q.clone()),
            keys: keys.turn(ctx.k.clone()),
            pairs,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;

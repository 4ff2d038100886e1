//! # RoPE: queries and keys turned by their position
//!
//! ## What it does
//! Rotates pairs of channels of each query and key by an angle proportional to its position, so that
//! their dot product feels only the difference. Slow pairs see far, fast pairs near.
//!
//! ## Formula
//! `angle[n, m] = n * f_m`, `f_m = base^(-2m / D)`;
//! `(a, b) -> (a cos - b sin, b cos + a sin)` for each pair `(a, b)` of channels.
//!
//! ## Shapes
//! `transform_qk: [B, H, T, D], [B, H, S, D]` unchanged; `D` even.
//!
//! ## Settings
//! `layout`: `half-split` (default; pairs `(m, m + D/2)`, as Llama and TAPE) or `interleaved` (pairs
//! `(2m, 2m+1)`, as RoFormer). The same weights give different numbers under the two.
//! `base` (10000, the paper's).
//! `scaling`: `{ type = "none" }` (default), `{ type = "linear", factor = s }` (positions divided by
//! `s`), `{ type = "ntk", factor = s }` (base multiplied by `s^(D / (D - 2))`).
//!
//! ## Deviations
//! None.
//!
//! ## References
//! Su et al. 2021, "RoFormer", arXiv 2104.09864; linear scaling: Chen et al. 2023, arXiv 2306.15595;
//! NTK-aware base: as in HuggingFace transformers' modeling_rope_utils.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::encoding::LayerContext;
use crate::math::frequencies::{inverse_frequencies, ntk_base};
use crate::meta::{Claims, PeMeta, Site};
use crate::reference::{Heads, ScalarInput, ScalarReference, rope};
use crate::{Cost, Dims, EncodingConfig, PeError, PositionEncoding, Positions};

/// The facts.
pub const META: PeMeta = PeMeta {
    id: "rope",
    label: "RoPE",
    summary: "Rotates queries and keys by angles proportional to their positions.",
    sites: &[Site::QueryKey],
    claims: Claims { shift_invariant: true, content_dependent: false, limited_length: false },
    parameters: "0",
    paper: "Su et al. 2021",
    url: "https://arxiv.org/abs/2104.09864",
};

/// Which channels form a pair.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// `(m, m + D/2)`: HuggingFace Llama, TAPE, YaRN.
    #[default]
    HalfSplit,
    /// `(2m, 2m + 1)`: RoFormer, xPos.
    Interleaved,
}

/// How angles are changed for lengths beyond training.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Scaling {
    /// Not at all.
    #[default]
    None,
    /// Positions are divided by `factor`.
    Linear {
        /// At least 1.
        factor: f64,
    },
    /// The base is multiplied by `factor^(D / (D - 2))`.
    Ntk {
        /// At least 1.
        factor: f64,
    },
}

impl Scaling {
    /// Frequencies of the `head_dim / 2` pairs, in radians per position.
    pub fn frequencies(self, base: f64, head_dim: usize) -> Vec<f64> {
        match self {
            Self::None => inverse_frequencies(base, head_dim),
            Self::Linear { factor } => {
                inverse_frequencies(base, head_dim).into_iter().map(|f| f / factor).collect()
            }
            Self::Ntk { factor } => inverse_frequencies(ntk_base(base, factor, head_dim), head_dim),
        }
    }

    fn check(self, head_dim: usize) -> Result<(), PeError> {
        let (Self::Linear { factor } | Self::Ntk { factor }) = self else { return Ok(()) };
        if !(factor.is_finite() && factor >= 1.0) {
            return Err(PeError::invalid(META.id, "scaling.factor", factor, "at least 1"));
        }
        if matches!(self, Self::Ntk { .. }) && head_dim < 4 {
            let expected = "at least 4 for ntk scaling";
            return Err(PeError::invalid(META.id, "model.head_dim", head_dim, expected));
        }
        Ok(())
    }
}

/// Settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which channels form a pair.
    pub layout: Layout,
    /// The slowest pair turns about once in `2 pi base` positions.
    pub base: f64,
    /// How angles are changed for longer sequences.
    pub scaling: Scaling,
}

impl Default for Config {
    fn default() -> Self {
        Self { layout: Layout::HalfSplit, base: 10_000.0, scaling: Scaling::None }
    }
}

/// Rotation of queries and keys.
#[derive(Module, Debug)]
pub struct Rope {
    #[module(skip)]
    layout: Layout,
    #[module(skip)]
    frequencies: Vec<f64>,
}

impl EncodingConfig for Config {
    type Encoding = Rope;

    fn meta(&self) -> &'static PeMeta {
        &META
    }

    fn check(&self, dims: &Dims) -> Result<(), PeError> {
        if !dims.head_dim.is_multiple_of(2) {
            let expected = "an even number; channels turn in pairs (head_dim = width / heads)";
            return Err(PeError::invalid(META.id, "model.head_dim", dims.head_dim, expected));
        }
        if !(self.base.is_finite() && self.base > 1.0) {
            return Err(PeError::invalid(META.id, "base", self.base, "a number above 1"));
        }
        self.scaling.check(dims.head_dim)
    }

    fn init(&self, dims: &Dims, _rng: &mut ChaCha8Rng, _device: &Device) -> Result<Rope, PeError> {
        self.check(dims)?;
        let frequencies = self.scaling.frequencies(self.base, dims.head_dim);
        Ok(Rope { layout: self.layout, frequencies })
    }

    fn cost(&self, dims: &Dims, len: usize) -> Cost {
        let channels = 2 * dims.layers * len * dims.width();
        Cost::none().elementwise("rotation of queries and keys", 3 * channels)
    }
}

impl Rope {
    /// Cosines and sines of the columns' angles, each `[1, 1, S, D]`; sines carry the sign that
    /// their channel needs.
    fn tables(&self, at: &Positions, device: &Device) -> (Tensor<4>, Tensor<4>) {
        at.memo(&format!("rope {:?} {:?}", self.layout, self.frequencies), device, || {
            let pairs = self.frequencies.len();
            let columns = at.cols().len();
            let mut cos = vec![0.0f32; columns * 2 * pairs];
            let mut sin = cos.clone();
            for (column, position) in at.cols().iter().enumerate() {
                for (m, frequency) in self.frequencies.iter().enumerate() {
                    let angle = *position as f64 * frequency;
                    let (first, second) = self.layout.pair(m, pairs);
                    let row = column * 2 * pairs;
                    cos[row + first] = angle.cos() as f32;
                    cos[row + second] = angle.cos() as f32;
                    sin[row + first] = -angle.sin() as f32;
                    sin[row + second] = angle.sin() as f32;
                }
            }
            let shape = [1, 1, columns, 2 * pairs];
            (
                Tensor::from_data(TensorData::new(cos, shape), device),
                Tensor::from_data(TensorData::new(sin, shape), device),
            )
        })
    }

    fn rotate(&self, u: Tensor<4>, cos: Tensor<4>, sin: Tensor<4>) -> Tensor<4> {
        u.clone() * cos + self.layout.swap_pairs(u) * sin
    }
}

impl Layout {
    /// Channels of pair `m` of `pairs`.
    pub fn pair(self, m: usize, pairs: usize) -> (usize, usize) {
        match self {
            Self::HalfSplit => (m, m + pairs),
            Self::Interleaved => (2 * m, 2 * m + 1),
        }
    }

    /// Exchanges the two channels of every pair.
    fn swap_pairs(self, u: Tensor<4>) -> Tensor<4> {
        let [batch, heads, tokens, head_dim] = u.dims();
        match self {
            Self::HalfSplit => {
                let half = head_dim / 2;
                let first = u.clone().slice_dim(3, 0..half);
                Tensor::cat(vec![u.slice_dim(3, half..head_dim), first], 3)
            }
            Self::Interleaved => u
                .reshape([batch, heads, tokens * head_dim / 2, 2])
                .flip([3])
                .reshape([batch, heads, tokens, head_dim]),
        }
    }
}

impl PositionEncoding for Rope {
    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        let (cos, sin) = self.tables(ctx.at, &q.device());
        let columns = ctx.at.cols().len();
        let rows = ctx.at.first_row()..columns;
        let (row_cos, row_sin) = if ctx.at.first_row() == 0 {
            (cos.clone(), sin.clone())
        } else {
            (cos.clone().slice_dim(2, rows.clone()), sin.clone().slice_dim(2, rows))
        };
        (self.rotate(q, row_cos, row_sin), self.rotate(k, cos, sin))
    }
}

impl ScalarReference for Rope {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        rope::transformed(input, &self.frequencies, self.layout == Layout::Interleaved)
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        rope::logits(input, &self.frequencies, self.layout == Layout::Interleaved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_head_dimension_is_refused_by_name() {
        let dims = Dims { layers: 1, heads: 1, head_dim: 15, train_len: 8, max_len: 8 };
        let error = Config::default().check(&dims).unwrap_err().to_string();
        assert!(error.contains("model.head_dim is 15") && error.contains("even"), "{error}");
    }

    #[test]
    fn a_factor_below_one_is_refused() {
        let dims = Dims { layers: 1, heads: 1, head_dim: 8, train_len: 8, max_len: 8 };
        let scaling = Scaling::Linear { factor: 0.5 };
        let error = Config { scaling, ..Config::default() }.check(&dims).unwrap_err();
        assert!(error.to_string().contains("scaling.factor is 0.5"), "{error}");
    }
}

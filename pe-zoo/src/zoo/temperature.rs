//! # Temperature: logits that sharpen with the position
//!
//! ## What it does
//! Multiplies each query by a factor that grows with its position. A row that sees many tokens spreads its weights over
//! all of them; larger logits keep the weights on a few tokens. Alone, `temperature` gives a model without a position
//! encoding; together with other encodings it scales the products of queries and keys.
//!
//! ## Formula
//! `q'_i = factor_h(i) q_i` for the query at position `i`, counted from 0.
//!
//! | growth | factor |
//! | --- | --- |
//! | `ssmax` | `slope_h ln(i + 1)` |
//! | `log` | `slope_h ln(i + 1) + offset_h` |
//! | `llama4` | `1 + scale ln(1 + floor((i + 1) / every))` |
//! | `ministral3` | `1 + scale ln(1 + floor(i / every))` |
//!
//! ## Shapes
//! `transform_qk: q [B, H, T, D]` times `[1, 1 or H, T, 1]`.
//!
//! ## Settings
//! `growth`: `{ type = "ssmax", slope = 0.43 }` (default; the initial slope, learned for each layer and head),
//! `{ type = "log", slope = 0.0, offset = 1.0 }` (both initial values, learned for each layer and head),
//! `{ type = "llama4", scale = 0.1, every = 8192 }` or `{ type = "ministral3", scale = 0.1, every = 16384 }` (not learned).
//!
//! `rope/rope/rope/temperature{growth={type=llama4}}` is the pattern of Llama 4: three layers with RoPE, then one without a position
//! encoding whose queries are scaled.
//!
//! ## Initial values
//! Slopes of `ssmax` start at 0.43, the value of the paper's figure 1. Slopes of `log` start at 0 and offsets at 1, so that training
//! starts from plain attention; these are this project's. Constants of `llama4` and `ministral3` are the defaults of `transformers`.
//!
//! ## Deviations
//! The factor multiplies the products of queries and keys after all other transforms, and tables that are multiplied with
//! queries; biases of other encodings are added unscaled. Scalable softmax counts the columns that a row sees, which is `i + 1` at positions
//! without gaps.
//!
//! ## References
//! Nakanishi 2025, "Scalable-Softmax Is Superior for Attention", arXiv 2501.19399; `llama4`, `ministral3` and `log` as in
//! `modeling_llama4.py`, `modeling_ministral3.py` and `modeling_mistral_large4.py` of `transformers` 5.24.0.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::LayerContext;
use crate::reference::{Heads, ScalarInput, ScalarReference, values_f64};
use crate::settings::{check_not_below_zero, check_size};
use crate::{Cost, Dims, PeError, PositionEncoding, init};

/// Factor of the queries as a function of their position.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Growth {
    /// Learned slope times the logarithm of the number of positions up to the query.
    Ssmax {
        /// Initial slope.
        #[serde(default = "ssmax_slope")]
        slope: f64,
    },
    /// As `Ssmax`, with a learned offset.
    Log {
        /// Initial slope.
        #[serde(default)]
        slope: f64,
        /// Initial offset.
        #[serde(default = "one")]
        offset: f64,
    },
    /// Grows with the logarithm of the number of whole blocks up to the query, its own position included.
    #[serde(rename = "llama4")]
    Llama4 {
        /// Factor of the logarithm.
        #[serde(default = "scale")]
        scale: f64,
        /// Positions of a block.
        #[serde(default = "llama4_block")]
        every: usize,
    },
    /// Grows with the logarithm of the number of whole blocks before the query.
    #[serde(rename = "ministral3")]
    Ministral3 {
        /// Factor of the logarithm.
        #[serde(default = "scale")]
        scale: f64,
        /// Positions of a block.
        #[serde(default = "ministral3_block")]
        every: usize,
    },
}

fn ssmax_slope() -> f64 {
    0.43
}

fn one() -> f64 {
    1.0
}

fn scale() -> f64 {
    0.1
}

fn llama4_block() -> usize {
    8192
}

fn ministral3_block() -> usize {
    16_384
}

impl Default for Growth {
    fn default() -> Self {
        Self::Ssmax { slope: ssmax_slope() }
    }
}

impl Growth {
    /// Fixed logarithm at a position, which slopes multiply.
    fn logarithm(self, position: usize) -> f64 {
        match self {
            Self::Ssmax { .. } | Self::Log { .. } => (position as f64 + 1.0).ln(),
            Self::Llama4 { every, .. } => (1.0 + ((position + 1) / every) as f64).ln(),
            Self::Ministral3 { every, .. } => (1.0 + (position / every) as f64).ln(),
        }
    }
}

/// Settings of the temperature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TemperatureConfig {
    /// Factor of the queries as a function of their position.
    pub growth: Growth,
}

/// Factors of queries that grow with the position.
#[derive(Module, Debug)]
pub struct RowTemperature {
    /// Learned slopes, `[H]` for each layer; empty if they are fixed.
    slopes: Vec<Param<Tensor<1>>>,
    /// Learned offsets, `[H]` for each layer; empty if they are fixed.
    offsets: Vec<Param<Tensor<1>>>,
    #[module(skip)]
    growth: Growth,
}

/// Slope and offset of a head.
#[derive(Debug, Clone, Copy)]
struct HeadLine {
    slope: f64,
    offset: f64,
}

impl RowTemperature {
    /// Slope and offset that are not learned.
    fn fixed(&self) -> HeadLine {
        match self.growth {
            Growth::Ssmax { slope } => HeadLine { slope, offset: 0.0 },
            Growth::Log { slope, offset } => HeadLine { slope, offset },
            Growth::Llama4 { scale, .. } | Growth::Ministral3 { scale, .. } => {
                HeadLine { slope: scale, offset: 1.0 }
            }
        }
    }

    /// Slope and offset of a head in scalar f64.
    fn scalar_line(&self, layer: usize, head: usize) -> HeadLine {
        let of = |sets: &[Param<Tensor<1>>], fixed| {
            sets.get(layer).map_or(fixed, |set| values_f64(set)[head])
        };
        let fixed = self.fixed();
        HeadLine { slope: of(&self.slopes, fixed.slope), offset: of(&self.offsets, fixed.offset) }
    }

    /// Factors of the rows, `[1, 1 or H, T, 1]`.
    fn factors(&self, ctx: &LayerContext<'_>, device: &Device) -> Tensor<4> {
        let logarithms = ctx.at.memo(&format!("temperature {:?}", self.growth), device, || {
            let rows = ctx.at.rows();
            let values = rows.iter().map(|row| self.growth.logarithm(*row) as f32);
            let values = TensorData::new(values.collect::<Vec<_>>(), [1, 1, rows.len(), 1]);
            Tensor::<4>::from_data(values, device)
        });
        let of_heads = |set: &Param<Tensor<1>>| {
            let [heads] = set.dims();
            set.val().reshape([1, heads, 1, 1])
        };
        let fixed = self.fixed();
        let scaled = match self.slopes.get(ctx.layer) {
            Some(slopes) => logarithms * of_heads(slopes),
            None => logarithms * fixed.slope,
        };
        match self.offsets.get(ctx.layer) {
            Some(offsets) => scaled + of_heads(offsets),
            None => scaled + fixed.offset,
        }
    }
}

impl PositionEncoding for RowTemperature {
    type Settings = TemperatureConfig;

    const CARD: Card = Card {
        id: "temperature",
        label: "Temperature",
        summary: "Multiplies each query by a factor that grows with its position.",
        parameters: "L H",
        paper: "Nakanishi 2025",
        url: "https://arxiv.org/abs/2501.19399",
    };

    fn card(settings: &TemperatureConfig) -> Card {
        let parameters = match settings.growth {
            Growth::Ssmax { .. } => "L H",
            Growth::Log { .. } => "2 L H",
            Growth::Llama4 { .. } | Growth::Ministral3 { .. } => "0",
        };
        Card { parameters, ..Self::CARD }
    }

    fn check(settings: &TemperatureConfig, _: &Dims) -> Result<(), PeError> {
        match settings.growth {
            Growth::Ssmax { .. } | Growth::Log { .. } => Ok(()),
            Growth::Llama4 { scale, every } | Growth::Ministral3 { scale, every } => {
                check_not_below_zero(Self::CARD.id, "growth.scale", Some(scale))?;
                check_size(Self::CARD.id, "growth.every", every)
            }
        }
    }

    fn build(
        settings: &TemperatureConfig,
        dims: &Dims,
        _: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let sets = |value: Option<f64>| match value {
            Some(value) => (0..dims.layers)
                .map(|_| init::constant(value as f32, [dims.heads], device))
                .collect(),
            None => Vec::new(),
        };
        let (slope, offset) = match settings.growth {
            Growth::Ssmax { slope } => (Some(slope), None),
            Growth::Log { slope, offset } => (Some(slope), Some(offset)),
            Growth::Llama4 { .. } | Growth::Ministral3 { .. } => (None, None),
        };
        Ok(Self { slopes: sets(slope), offsets: sets(offset), growth: settings.growth })
    }

    fn param_count(settings: &TemperatureConfig, dims: &Dims) -> Option<usize> {
        let sets = match settings.growth {
            Growth::Ssmax { .. } => 1,
            Growth::Log { .. } => 2,
            Growth::Llama4 { .. } | Growth::Ministral3 { .. } => 0,
        };
        Some(sets * dims.layers * dims.heads)
    }

    fn cost(_: &TemperatureConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let rows = dims.layers * len;
        let factors = Cost::none().elementwise("factors of queries", 2 * rows * dims.heads);
        Some(factors.elementwise("scaling of queries", rows * dims.heads_width()))
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
        let factors = self.factors(ctx, &q.device());
        (q * factors, k)
    }

    fn fixed_keys(&self) -> bool {
        true
    }
}

impl ScalarReference for RowTemperature {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        let scaled = |head: usize, query: &[f64], column: usize| {
            let HeadLine { slope, offset } = self.scalar_line(input.layer, head);
            let factor = slope * self.growth.logarithm(input.positions[column]) + offset;
            query.iter().map(|x| x * factor).collect()
        };
        input.changed(scaled, |_, key, _| key.to_vec())
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        self.scalar_transformed(input).plain()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on query, key; scales rows",
        texts: &[
            "temperature",
            "temperature{growth={type=log}}",
            "temperature{growth={type=log,slope=0.2,offset=0.5}}",
            "temperature{growth={type=llama4,every=4}}",
            "temperature{growth={type=ministral3,scale=0.5,every=3}}",
        ],
    }];

    /// Values of `get_attn_scale` (Llama 4) and `_get_llama_4_attn_scale` (Ministral 3) at their borders.
    #[test]
    fn factors_of_models_grow_at_the_borders_of_blocks() {
        let llama4 = Growth::Llama4 { scale: 0.1, every: 8192 };
        let ministral3 = Growth::Ministral3 { scale: 0.1, every: 8192 };
        for (position, of_llama4, of_ministral3) in [
            (0, 1.0, 1.0),
            (8190, 1.0, 1.0),
            (8191, 1.0 + 0.1 * 2_f64.ln(), 1.0),
            (8192, 1.0 + 0.1 * 2_f64.ln(), 1.0 + 0.1 * 2_f64.ln()),
        ] {
            let factor = |growth: Growth| 1.0 + 0.1 * growth.logarithm(position);
            assert!((factor(llama4) - of_llama4).abs() < 1e-15, "{position}");
            assert!((factor(ministral3) - of_ministral3).abs() < 1e-15, "{position}");
        }
        assert!(Growth::default().logarithm(0).abs() < 1e-15);
        assert!((Growth::default().logarithm(9) - 10_f64.ln()).abs() < 1e-15);
    }
}

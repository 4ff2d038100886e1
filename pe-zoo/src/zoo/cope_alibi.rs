//! # CoPE-ALiBi: a slope per head on positions that gates count
//!
//! ## What it does
//! Counts positions with gates as CoPE does and, as ALiBi does with distances, adds them to the
//! logits times a slope per head. Nothing else encodes position.
//!
//! ## Formula
//! `p[i, j] = sum of sigma(q_i . k_m / sqrt(D)) for m in j..=i`,
//! `logit[h, i, j] = q_i . k_j / sqrt(D) - slope_h * p[i, j]`
//!
//! ## Shapes
//! `score: Contextual` with slopes `[H]`.
//!
//! ## Settings
//! `slopes`: `from-1`, `from-1/4` (default, the best on flip-flop in the paper) or `from-1/16`: the
//! first head's slope, halved from head to head; or `learned`, per head and layer, from 0.
//! `sign`: `minus` (default: a penalty on far tokens, as in ALiBi) or `plus`, as eq. 10 is printed.
//! `convention`: `listing` (default), `code` or `equation` (as eq. 10 is printed, without any
//! division), as in CoPE.
//!
//! ## Initial values
//! Learned slopes: 0, as in the paper.
//!
//! ## Deviations
//! The paper gives slopes for four heads; for more heads the halving continues. Its first set is
//! misprinted and is read as 1, 1/2, 1/4, 1/8. Counts are not clamped: eq. 10 has no table.
//!
//! ## References
//! Golovneva et al. 2024, "Contextual Position Encoding", arXiv 2405.18719, eq. 10. Not in the
//! authors' code.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference, cope, values_f64};
use crate::score::{Contextual, ContextualFunction, GateSource, LogitScaling};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};

/// First slope of the heads, halved from head to head, or learned slopes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FirstSlope {
    /// Slopes 1, 1/2, 1/4 and so on.
    #[serde(rename = "from-1")]
    FromOne,
    /// Slopes 1/4, 1/8, 1/16 and so on.
    #[default]
    #[serde(rename = "from-1/4")]
    FromQuarter,
    /// Slopes 1/16, 1/32, 1/64 and so on.
    #[serde(rename = "from-1/16")]
    FromSixteenth,
    /// Slopes learned per head and layer, initially 0.
    #[serde(rename = "learned")]
    Learned,
}

impl FirstSlope {
    /// Returns the slopes of `heads` heads; the initial values if slopes are learned.
    pub fn values(self, heads: usize) -> Vec<f64> {
        let first = match self {
            Self::FromOne => 0,
            Self::FromQuarter => 2,
            Self::FromSixteenth => 4,
            Self::Learned => return vec![0.0; heads],
        };
        (first..first + heads).map(|halvings| (-(halvings as f64)).exp2()).collect()
    }
}

/// Sign of the slopes: a penalty or a bonus on contextual positions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// The bias is subtracted from the logits.
    #[default]
    Minus,
    /// The bias is added to the logits.
    Plus,
}

impl Sign {
    fn factor(self) -> f64 {
        match self {
            Self::Minus => -1.0,
            Self::Plus => 1.0,
        }
    }
}

/// Settings of ALiBi on contextual positions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CopeAlibiConfig {
    /// First slope of the heads, or learned slopes.
    pub slopes: FirstSlope,
    /// Sign with which the bias enters the logits.
    pub sign: Sign,
    /// Placement of the division by `sqrt(D)`.
    pub convention: LogitScaling,
}

/// Bias of one slope per head times the contextual position.
#[derive(Module, Debug)]
pub struct CopeAlibi {
    /// Learned slopes, `[H]` per layer; empty if slopes are fixed.
    pub learned: Vec<Param<Tensor<1>>>,
    #[module(skip)]
    fixed: Vec<f64>,
    #[module(skip)]
    config: CopeAlibiConfig,
}

impl PositionEncoding for CopeAlibi {
    type Settings = CopeAlibiConfig;

    const CARD: Card = Card {
        id: "cope-alibi",
        label: "CoPE-ALiBi",
        summary: "Subtracts from the logits a slope per head times a position counted by gates.",
        parameters: "0 (learned slopes: L H)",
        paper: "Golovneva et al. 2024",
        url: "https://arxiv.org/abs/2405.18719",
    };

    fn card(settings: &CopeAlibiConfig) -> Card {
        match settings.slopes {
            FirstSlope::Learned => Card { parameters: "L H", ..Self::CARD },
            _ => Self::CARD,
        }
    }

    fn build(
        settings: &CopeAlibiConfig,
        dims: &Dims,
        _rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let layers = if settings.slopes == FirstSlope::Learned { dims.layers } else { 0 };
        let learned = (0..layers).map(|_| init::zeros([dims.heads], device)).collect();
        let fixed = settings.slopes.values(dims.heads);
        Ok(CopeAlibi { learned, fixed, config: settings.clone() })
    }

    fn param_count(settings: &CopeAlibiConfig, dims: &Dims) -> Option<usize> {
        Some(if settings.slopes == FirstSlope::Learned { dims.layers * dims.heads } else { 0 })
    }

    fn cost(_settings: &CopeAlibiConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let pairs = dims.layers * dims.heads * len * len;
        Some(
            Cost::none()
                .pair_product_kept("queries with keys", pairs * dims.head_dim)
                .pair_activation("gates", pairs, 3)
                .pair_elementwise("running sum, slope, sum of logits", 3 * pairs),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let fixed = || init::fixed(&self.fixed, &ctx.q.device());
        let slopes = self.learned.get(ctx.layer.layer).map_or_else(fixed, Param::val);
        ScoreMod::Contextual(Contextual {
            gates: GateSource::QueryKey,
            max_position: f64::INFINITY,
            function: ContextualFunction::Slope(slopes * self.config.sign.factor()),
            convention: self.config.convention,
        })
    }
}

impl ScalarReference for CopeAlibi {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let slopes = match self.learned.get(input.layer) {
            Some(slopes) => values_f64(slopes),
            None => self.fixed.clone(),
        };
        let convention = self.config.convention;
        let p = cope::positions(input, f64::INFINITY, convention, cope::GateSide::Keys);
        cope::combine(input, &p, convention, |h, _row, p| match self.config.sign {
            Sign::Minus => -slopes[h] * p,
            Sign::Plus => slopes[h] * p,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples {
            facts: "acts on logits; content dependent, ignores positions, shift invariant",
            texts: &[
                "cope-alibi",
                "cope-alibi{slopes=from-1,sign=plus}",
                r#"cope-alibi{slopes="from-1/16",convention=code}"#,
            ],
        },
        Examples {
            facts: "acts on logits; content dependent, ignores positions, shift invariant, undivided",
            texts: &["cope-alibi{slopes=learned,convention=equation}"],
        },
    ];

    /// Sets of slopes for four heads from Golovneva et al. 2024 (the first as interpreted under
    /// "Deviations").
    #[test]
    fn the_papers_three_sets_for_four_heads() {
        assert_eq!(FirstSlope::FromOne.values(4), [1.0, 0.5, 0.25, 0.125]);
        assert_eq!(FirstSlope::FromQuarter.values(4), [0.25, 0.125, 0.0625, 0.03125]);
        assert_eq!(FirstSlope::FromSixteenth.values(4), [0.0625, 0.03125, 0.015_625, 0.007_812_5]);
    }
}

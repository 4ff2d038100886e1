//! # ALiBi: a penalty on the logits that grows with distance
//!
//! ## What it does
//! Subtracts from each logit the distance times a slope. Each head has its own fixed slope, so that
//! some heads attend to near tokens and others to far ones.
//!
//! ## Formula
//! `logit[h, i, j] = q_i . k_j / sqrt(D) - slope_h * (i - j)`, `slope_h = 2^(-8 (h+1) / H)`
//!
//! ## Shapes
//! `score: Slope([H])`.
//!
//! ## Settings
//! `slopes`: `authors` (default), `paper`, or `{ given = [..] }`, one per head. The first two
//! differ only if the number of heads is not a power of two.
//! `learning`: `fixed` (default; `slopes` are constants), `all-layers` (learned with initial values
//! `slopes`, one set for the model) or `per-layer`.
//!
//! ## Initial values
//! Learned slopes start at the fixed ones.
//!
//! ## Deviations
//! The authors' code adds `slope * j` instead; a constant per row cancels in the softmax. Learned
//! slopes are kept as their logarithms, as in McGill-NLP's code, so that a head never prefers far
//! tokens; the paper tried learned slopes and does not state how they were parametrised.
//!
//! ## References
//! Press et al. 2021, "Train Short, Test Long", arXiv 2108.12409; slopes as in
//! `ofirpress/attention_with_linear_biases` at 4b92f28a00.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference, distance, values_f64};
use crate::settings::learned;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};
pub use crate::{math::slopes::Slopes, settings::Learning};

/// Settings of the ALiBi encoding.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AlibiConfig {
    /// Slopes of the heads; initial values if the slopes are learned.
    pub slopes: Slopes,
    /// Whether slopes are learned, and which layers share them.
    pub learning: Learning,
}

/// Linear penalty on distance with one slope per head.
#[derive(Module, Debug)]
pub struct Alibi {
    /// Logarithms of learned slopes, `[H]` each: no tensor, one, or one per layer.
    pub log_slopes: Vec<Param<Tensor<1>>>,
    #[module(skip)]
    slopes: Vec<f64>,
}

impl Alibi {
    /// Computes the bias of every pair in scalar f64.
    pub(super) fn scalar_bias(&self, input: &ScalarInput) -> Heads {
        distance::alibi(input, &self.scalar_slopes(input.layer))
    }

    fn scalar_slopes(&self, layer: usize) -> Vec<f64> {
        let exp = |logs| values_f64(logs).into_iter().map(f64::exp).collect();
        learned(&self.log_slopes, layer).map_or_else(|| self.slopes.clone(), exp)
    }
}

impl PositionEncoding for Alibi {
    type Settings = AlibiConfig;

    const CARD: Card = Card {
        id: "alibi",
        label: "ALiBi",
        summary: "Subtracts from the logits a fixed slope per head times the distance.",
        parameters: "0",
        paper: "Press et al. 2021",
        url: "https://arxiv.org/abs/2108.12409",
    };

    fn card(settings: &AlibiConfig) -> Card {
        let parameters = match settings.learning {
            Learning::Fixed => "0",
            Learning::AllLayers => "H",
            Learning::PerLayer => "L H",
        };
        Card { parameters, ..Self::CARD }
    }

    fn check(settings: &AlibiConfig, dims: &Dims) -> Result<(), PeError> {
        settings.slopes.check(Self::CARD.id, settings.learning != Learning::Fixed, dims.heads)
    }

    fn build(
        settings: &AlibiConfig,
        dims: &Dims,
        _rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let slopes = settings.slopes.values(dims.heads);
        let logs = || slopes.iter().map(|slope| slope.ln() as f32).collect();
        let log_slopes = (0..settings.learning.sets(dims.layers))
            .map(|_| init::given(logs(), [dims.heads], device))
            .collect();
        Ok(Alibi { log_slopes, slopes })
    }

    fn param_count(settings: &AlibiConfig, dims: &Dims) -> Option<usize> {
        Some(settings.learning.sets(dims.layers) * dims.heads)
    }

    fn cost(_settings: &AlibiConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let pairs = dims.layers * dims.heads * len * len;
        Some(Cost::none().pair_elementwise("slope times distance, sum of logits", 2 * pairs))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let fixed = || init::fixed(&self.slopes, &ctx.q.device());
        let logs = learned(&self.log_slopes, ctx.layer.layer);
        let slopes = logs.map_or_else(fixed, |logs| logs.val().exp());
        // Distances count numbers of the grid of real positions.
        let at = ctx.layer.at;
        ScoreMod::Slope(if at.steps() == 1 { slopes } else { slopes * at.unit() })
    }
}

impl ScalarReference for Alibi {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        distance::alibi_logits(input, &self.scalar_slopes(input.layer))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples {
            facts: "acts on logits; shift invariant",
            texts: &["alibi", "alibi{slopes=paper}", "alibi{slopes={given=[0.5,0.0,-0.125]}}"],
        },
        Examples {
            facts: "acts on logits; shift invariant; biases log_slopes",
            texts: &["alibi{learning=all-layers}", "alibi{slopes=paper,learning=per-layer}"],
        },
    ];

    const DIMS: Dims =
        Dims { layers: 1, width: 8, heads: 2, head_dim: 4, train_len: 8, max_len: 8 };

    fn refusal(slopes: Vec<f64>, learning: Learning) -> String {
        let config = AlibiConfig { slopes: Slopes::Given(slopes), learning };
        Alibi::check(&config, &DIMS).unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_number_of_slopes_is_refused_with_the_number_of_heads() {
        let error = refusal(vec![0.5], Learning::Fixed);
        assert!(
            error.contains("slopes.given is [0.5]") && error.contains("expected 2 numbers"),
            "{error}"
        );
    }

    #[test]
    fn a_learned_slope_must_start_above_zero_and_a_fixed_one_need_not() {
        let error = refusal(vec![0.5, -1.0], Learning::PerLayer);
        assert!(error.contains("slopes.given is -1") && error.contains("above 0"), "{error}");
        let fixed = Slopes::Given(vec![0.5, -1.0]);
        assert!(
            Alibi::check(&AlibiConfig { slopes: fixed, ..AlibiConfig::default() }, &DIMS).is_ok()
        );
        assert!(refusal(vec![0.5, f64::NAN], Learning::Fixed).contains("NaN"));
    }
}

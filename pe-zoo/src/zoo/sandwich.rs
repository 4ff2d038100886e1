//! # Sandwich: what sinusoidal embeddings say about distance, as a bias
//!
//! ## What it does
//! Adds to each logit the dot product of two tokens' sinusoidal embeddings, which depends only on
//! their distance, minus its value at distance 0. Heads differ by a fixed factor.
//!
//! ## Formula
//! `logit[h, i, j] = q_i . k_j / sqrt(D) + (sum over k in 1..=d/2 of cos((i - j) / 10000^(2k/d)) -
//! d/2) / (8 (h + 1) / H)`, `d` being `d_bar`
//!
//! ## Shapes
//! `score: Distance([H, N])`, `N` one more than the longest distance of the pass.
//!
//! ## Settings
//! `d_bar` (default: the head dimension, as in NeMo; even): twice the number of waves.
//!
//! ## Deviations
//! The authors published no code; this is the form of NVIDIA NeMo. The paper's experiments reportedly use `d_bar` 128. The
//! waves run from `k = 1`, so that the fastest has a wavelength above `2 pi`.
//!
//! ## References
//! Chi et al. 2023, "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field
//! Analysis", arXiv 2212.10356; NVIDIA NeMo at 000b931ed0,
//! `sandwich_relative_position_embedding.py`.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::math::frequencies::inverse_frequencies;
use crate::reference::{Heads, ScalarInput, ScalarReference, distance};
use crate::score::Beyond;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod};

/// Settings of the Sandwich encoding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandwichConfig {
    /// Twice the number of waves; `None`: the head dimension.
    pub d_bar: Option<usize>,
}

/// Bias by a fixed function of distance per head.
#[derive(Module, Debug)]
pub struct Sandwich {
    #[module(skip)]
    d_bar: usize,
    #[module(skip)]
    heads: usize,
}

impl Sandwich {
    /// Computes the bias at the first `len` distances, `[head][distance]`.
    fn table(&self, len: usize) -> Vec<f32> {
        // The usual frequencies start at `k = 0`; skipping one makes them start at 1.
        let waves = inverse_frequencies(10_000.0, self.d_bar);
        let step = 10_000f64.powf(-2.0 / self.d_bar as f64);
        let sums = (0..len)
            .map(|n| waves.iter().map(|wave| (n as f64 * wave * step).cos() - 1.0).sum::<f64>())
            .collect::<Vec<_>>();
        (1..=self.heads)
            .flat_map(|h| {
                let factor = self.heads as f64 / (8 * h) as f64;
                sums.iter().map(move |sum| (sum * factor) as f32)
            })
            .collect()
    }
}

impl PositionEncoding for Sandwich {
    type Settings = SandwichConfig;

    const CARD: Card = Card {
        id: "sandwich",
        label: "Sandwich",
        summary: "Adds to the logits a fixed sum of waves of the distance.",
        parameters: "0",
        paper: "Chi et al. 2023",
        url: "https://arxiv.org/abs/2212.10356",
    };

    fn check(settings: &SandwichConfig, dims: &Dims) -> Result<(), PeError> {
        let is_usable = |d_bar: usize| d_bar > 0 && d_bar.is_multiple_of(2);
        let (pe, expected) = (Self::CARD.id, "an even number of at least 2");
        if let Some(d_bar) = settings.d_bar {
            return PeError::require(is_usable(d_bar), pe, "d_bar", d_bar, expected);
        }
        let expected = format!("{expected}, because `d_bar` is the same by default");
        PeError::require(is_usable(dims.head_dim), pe, "model.head_dim", dims.head_dim, expected)
    }

    fn build(
        settings: &SandwichConfig,
        dims: &Dims,
        _: &mut ChaCha8Rng,
        _: &Device,
    ) -> Result<Self, PeError> {
        Ok(Sandwich { d_bar: settings.d_bar.unwrap_or(dims.head_dim), heads: dims.heads })
    }

    fn cost(_settings: &SandwichConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let pairs = dims.layers * len * len * dims.heads;
        Some(Cost::none().pair_elementwise("sum of logits", pairs))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let at = ctx.layer.at;
        let device = ctx.q.device();
        let key = format!("sandwich {} {}", self.d_bar, self.heads);
        let table = at.memo(&key, &device, || {
            let len = at.longest_distance() + 1;
            Tensor::from_data(TensorData::new(self.table(len), [self.heads, len]), &device)
        });
        ScoreMod::Distance { table, beyond: Beyond::Last }
    }
}

impl ScalarReference for Sandwich {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        input.biased(&distance::sandwich(input, self.d_bar))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits; shift invariant",
        texts: &["sandwich", "sandwich{d_bar=32}"],
    }];

    #[test]
    fn an_odd_number_of_half_waves_is_refused() {
        let dims = Dims { layers: 1, width: 5, heads: 1, head_dim: 5, train_len: 8, max_len: 8 };
        let error = Sandwich::check(&SandwichConfig::default(), &dims).unwrap_err().to_string();
        assert!(error.contains("model.head_dim is 5") && error.contains("even"), "{error}");
        let error = Sandwich::check(&SandwichConfig { d_bar: Some(0) }, &dims).unwrap_err();
        assert!(error.to_string().contains("d_bar is 0"), "{error}");
        assert!(Sandwich::check(&SandwichConfig { d_bar: Some(6) }, &dims).is_ok());
    }

    /// Expected values for `d_bar` 64 and 8 heads, printed with six digits.
    #[test]
    fn the_table_holds_the_specification_s_numbers() {
        let sandwich = Sandwich { d_bar: 64, heads: 8 };
        let table = sandwich.table(101);
        for (head, distance, expected) in [
            (0, 0, 0.0),
            (0, 1, -0.623_471),
            (0, 2, -2.279_991),
            (0, 10, -9.1093),
            (0, 100, -13.9877),
            (7, 1, -0.077_934),
            (7, 10, -1.138_663),
            (7, 100, -1.748_463),
        ] {
            let value = f64::from(table[head * 101 + distance]);
            assert!((value - expected).abs() < 5e-5, "{head} {distance}: {value}");
        }
    }
}

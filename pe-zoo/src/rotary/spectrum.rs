//! Frequencies of a rotation after scaling.

use super::scaling::Scaling;
use crate::math::frequencies::{
    dynamic_factor, inverse_frequencies, llama3_kept, ntk_base, ramp, yarn_bounds, yarn_magnitude,
};

/// Frequencies of the pairs of a rotation, and the factor of its cosines and sines.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    /// Frequencies in radians per position, one per pair.
    pub frequencies: Vec<f64>,
    /// Factor of cosines and sines; logits are multiplied by its square.
    pub attention_factor: f64,
}

impl Scaling {
    /// Computes the spectrum of `dim / 2` pairs for a sequence of `len` positions; `train_len` is
    /// used in place of an original length that is not given.
    pub fn spectrum(&self, base: f64, dim: usize, train_len: usize, len: usize) -> Spectrum {
        let plain = || inverse_frequencies(base, dim);
        let unscaled = |frequencies| Spectrum { frequencies, attention_factor: 1.0 };
        let original = |given: &Option<usize>| given.unwrap_or(train_len);
        match self {
            Self::None => unscaled(plain()),
            Self::Linear { factor } => unscaled(plain().iter().map(|f| f / factor).collect()),
            Self::Ntk { factor } => {
                unscaled(inverse_frequencies(ntk_base(base, *factor, dim), dim))
            }
            Self::Dynamic { factor, original_max_position_embeddings } => {
                let original = original(original_max_position_embeddings);
                let factor = dynamic_factor(*factor, len, original);
                unscaled(inverse_frequencies(ntk_base(base, factor, dim), dim))
            }
            Self::Yarn(yarn) => {
                let original = original(&yarn.original_max_position_embeddings);
                let betas = [yarn.beta_fast, yarn.beta_slow];
                let [low, high] = yarn_bounds(betas, base, dim, original, yarn.truncate);
                let frequency = |(m, f): (usize, f64)| {
                    let divided = ramp(low, high, m as f64);
                    f / yarn.factor() * divided + f * (1.0 - divided)
                };
                Spectrum {
                    frequencies: plain().into_iter().enumerate().map(frequency).collect(),
                    attention_factor: yarn.attention(),
                }
            }
            Self::LongRope(long_rope) => {
                let original = original(&long_rope.original_max_position_embeddings);
                let factors =
                    if len > original { &long_rope.long_factor } else { &long_rope.short_factor };
                Spectrum {
                    frequencies: plain()
                        .iter()
                        .zip(factors)
                        .map(|(f, factor)| f / factor)
                        .collect(),
                    attention_factor: long_rope.attention(original),
                }
            }
            Self::Llama3(llama) => {
                let original = llama.original_max_position_embeddings;
                let bounds = [llama.low_freq_factor, llama.high_freq_factor];
                let frequency = |f: f64| {
                    let kept = llama3_kept(f, original, bounds);
                    (1.0 - kept) * f / llama.factor + kept * f
                };
                unscaled(plain().into_iter().map(frequency).collect())
            }
            Self::Proportional { partial_rotary_factor, factor } => {
                let turning = (partial_rotary_factor * dim as f64 / 2.0).floor() as usize;
                let frequency = |(m, f): (usize, f64)| if m < turning { f / factor } else { 0.0 };
                unscaled(plain().into_iter().enumerate().map(frequency).collect())
            }
        }
    }
}

impl super::Yarn {
    /// Factor of the scaling; 1 if neither the settings nor [`Scaling::resolved`] set it.
    pub(crate) fn factor(&self) -> f64 {
        self.factor.unwrap_or(1.0)
    }

    /// Factor of cosines and sines.
    fn attention(&self) -> f64 {
        // HuggingFace treats 0 as a missing setting.
        let given = |mscale: Option<f64>| mscale.filter(|mscale| *mscale > 0.0);
        match (self.attention_factor, given(self.mscale), given(self.mscale_all_dim)) {
            (Some(factor), ..) => factor,
            (None, Some(mscale), Some(all)) => {
                yarn_magnitude(self.factor(), mscale) / yarn_magnitude(self.factor(), all)
            }
            _ => yarn_magnitude(self.factor(), 1.0),
        }
    }
}

impl super::LongRope {
    /// Factor of cosines and sines for the original length `original`.
    fn attention(&self, original: usize) -> f64 {
        match (self.attention_factor, self.factor) {
            (Some(factor), _) => factor,
            (None, Some(factor)) if factor > 1.0 => {
                (1.0 + factor.ln() / (original as f64).ln()).sqrt()
            }
            _ => 1.0,
        }
    }
}

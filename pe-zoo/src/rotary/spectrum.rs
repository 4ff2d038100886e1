//! Frequencies of a rotation after scaling.

use std::f64::consts::{PI, TAU};

use super::scaling::Scaling;
use crate::math::frequencies::{
    dynamic_factor, inverse_frequencies, llama3_kept, nearest_pair, ntk_base, pair_of_rotations,
    ramp, ramp_bounds, yarn_magnitude,
};

/// Frequencies of the pairs of a rotation, and the factor of its cosines and sines.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    /// Frequencies in radians per position, one per pair.
    pub frequencies: Vec<f64>,
    /// Factor of cosines and sines; logits are multiplied by its square.
    pub attention_factor: f64,
}

/// Base and size of a rotation, and the lengths that its scaling depends on.
#[derive(Debug, Clone, Copy)]
struct Setting<'a> {
    base: f64,
    dim: usize,
    train_len: usize,
    len: usize,
    /// Frequencies after earlier scalings; `None`: those of the base.
    scaled: Option<&'a [f64]>,
}

impl Setting<'_> {
    /// Frequencies before this scaling.
    fn frequencies(&self) -> Vec<f64> {
        self.scaled.map_or_else(|| inverse_frequencies(self.base, self.dim), <[f64]>::to_vec)
    }

    /// Frequencies with the base raised by NTK-aware scaling.
    fn ntk(&self, factor: f64) -> Vec<f64> {
        let base = ntk_base(self.base, factor, self.dim);
        let raised = inverse_frequencies(base, self.dim);
        let Some(scaled) = self.scaled else { return raised };
        let plain = inverse_frequencies(self.base, self.dim);
        scaled
            .iter()
            .zip(raised)
            .zip(plain)
            .map(|((scaled, raised), plain)| scaled * raised / plain)
            .collect()
    }

    /// Pairs between which a ramp over pairs with `fast` to `slow` turns within `original` positions runs.
    fn bounds(&self, turns: [f64; 2], original: usize, truncate: bool) -> [f64; 2] {
        let (base, dim) = (self.base, self.dim);
        let [low, high] = match self.scaled {
            None => turns.map(|turns| pair_of_rotations(turns, base, dim, original)),
            Some(scaled) => turns.map(|turns| nearest_pair(scaled, turns, original)),
        };
        ramp_bounds(low, high, dim, truncate)
    }
}

impl Scaling {
    /// Computes the spectrum of `dim / 2` pairs for a sequence of `len` positions; `train_len` is
    /// used in place of an original length that is not given.
    pub fn spectrum(&self, base: f64, dim: usize, train_len: usize, len: usize) -> Spectrum {
        self.applied(Setting { base, dim, train_len, len, scaled: None })
    }

    fn applied(&self, at: Setting<'_>) -> Spectrum {
        let unscaled = |frequencies| Spectrum { frequencies, attention_factor: 1.0 };
        let original = |given: &Option<usize>| given.unwrap_or(at.train_len);
        match self {
            Self::None => unscaled(at.frequencies()),
            Self::Linear { factor } => {
                unscaled(at.frequencies().iter().map(|f| f / factor).collect())
            }
            Self::Ntk { factor } => unscaled(at.ntk(*factor)),
            Self::Dynamic { factor, original_max_position_embeddings } => {
                let original = original(original_max_position_embeddings);
                unscaled(at.ntk(dynamic_factor(*factor, at.len, original)))
            }
            Self::Yarn(yarn) => {
                let original = original(&yarn.original_max_position_embeddings);
                let [low, high] =
                    at.bounds([yarn.beta_fast, yarn.beta_slow], original, yarn.truncate);
                let frequency = |(m, f): (usize, f64)| {
                    let mut divided = ramp(low, high, m as f64);
                    if let Some(factor) = yarn.extrapolation_factor {
                        divided = 1.0 - (1.0 - divided) * factor;
                    }
                    f / yarn.factor() * divided + f * (1.0 - divided)
                };
                Spectrum {
                    frequencies: at.frequencies().into_iter().enumerate().map(frequency).collect(),
                    attention_factor: yarn.attention(),
                }
            }
            Self::PartNtk(part) => unscaled(part.frequencies(at)),
            Self::Composed { parts } => {
                let mut spectrum = None::<Spectrum>;
                for part in parts {
                    let before = spectrum.as_ref();
                    let scaled = before.map(|spectrum| &spectrum.frequencies[..]).or(at.scaled);
                    let next = part.applied(Setting { scaled, ..at });
                    let factor = before.map_or(1.0, |spectrum| spectrum.attention_factor);
                    let attention_factor = factor * next.attention_factor;
                    spectrum = Some(Spectrum { attention_factor, ..next });
                }
                spectrum.unwrap_or_else(|| unscaled(at.frequencies()))
            }
            Self::LongRope(long_rope) => {
                let original = original(&long_rope.original_max_position_embeddings);
                let is_long = at.len > original;
                let factors =
                    if is_long { &long_rope.long_factor } else { &long_rope.short_factor };
                let frequencies = at.frequencies();
                Spectrum {
                    frequencies: frequencies.iter().zip(factors).map(|(f, d)| f / d).collect(),
                    attention_factor: long_rope.attention(original),
                }
            }
            Self::Llama3(llama) => {
                let original = llama.original_max_position_embeddings;
                let frequency = |f: f64| {
                    let unscaled_share =
                        llama3_kept(f, original, llama.low_freq_factor, llama.high_freq_factor);
                    (1.0 - unscaled_share) * f / llama.factor + unscaled_share * f
                };
                unscaled(at.frequencies().into_iter().map(frequency).collect())
            }
            Self::Proportional { partial_rotary_factor, factor } => {
                let turning = (partial_rotary_factor * at.dim as f64 / 2.0).floor() as usize;
                let frequency = |(m, f): (usize, f64)| if m < turning { f / factor } else { 0.0 };
                unscaled(at.frequencies().into_iter().enumerate().map(frequency).collect())
            }
            Self::Clipped { pairs, hard } => {
                let mut frequencies = at.frequencies();
                let pairs = (*pairs).min(frequencies.len());
                let first = frequencies.len() - pairs;
                let last = pairs.saturating_sub(1).max(1) as f64;
                for (n, frequency) in frequencies[first..].iter_mut().enumerate() {
                    let kept = 0.5 * (1.0 + (PI * n as f64 / last).cos());
                    *frequency *= if *hard { 0.0 } else { kept };
                }
                unscaled(frequencies)
            }
            Self::HighFrequency { original_max_position_embeddings } => {
                let slowest = TAU / original(original_max_position_embeddings) as f64;
                let frequency = |f: f64| if f < slowest { 0.0 } else { f };
                unscaled(at.frequencies().into_iter().map(frequency).collect())
            }
        }
    }
}

impl super::PartNtk {
    /// Turns within the original length between which NTK-aware scaling becomes a division by the factor.
    const NTK_TURNS: [f64; 2] = [1.25, 0.75];
    /// Turns within the original length between which pairs cease to keep their frequency.
    const KEPT_TURNS: [f64; 2] = [16.0, 2.0];

    fn frequencies(&self, at: Setting<'_>) -> Vec<f64> {
        let original = self.original_max_position_embeddings.unwrap_or(at.train_len);
        let share = |turns: [f64; 2], factor: f64| {
            let [low, high] = at.bounds(turns, original, true);
            move |m: usize| (1.0 - ramp(low, high, m as f64)) * factor
        };
        let by_ntk = share(Self::NTK_TURNS, self.ntk_factor);
        let unscaled_share = share(Self::KEPT_TURNS, self.extrapolation_factor);
        let frequency = |(m, (own, ntk)): (usize, (f64, f64))| {
            let slow = own / self.factor * (1.0 - by_ntk(m)) + ntk * by_ntk(m);
            slow * (1.0 - unscaled_share(m)) + own * unscaled_share(m)
        };
        let pairs = at.frequencies().into_iter().zip(at.ntk(self.factor));
        pairs.enumerate().map(frequency).collect()
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
        let nonzero = |mscale: Option<f64>| mscale.filter(|mscale| *mscale > 0.0);
        match (self.attention_factor, nonzero(self.mscale), nonzero(self.mscale_all_dim)) {
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

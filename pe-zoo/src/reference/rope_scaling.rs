//! Scalar reference of the scalings of RoPE: frequency of pair `m` of `dim / 2`, as in the source
//! of each scaling.

use std::f64::consts::PI;

/// Pair of channels whose frequency is computed.
#[derive(Debug, Clone, Copy)]
pub struct ScalarPair {
    /// Base of the frequencies.
    pub base: f64,
    /// Number of channels that are rotated.
    pub dim: usize,
    /// Index of the pair, from 0.
    pub m: usize,
}

/// Ramp over pairs, between two numbers of turns within the original length.
#[derive(Debug, Clone, Copy)]
pub struct ScalarRamp {
    /// Turns from which on a pair is fast.
    pub fast: f64,
    /// Turns up to which a pair is slow.
    pub slow: f64,
    /// Original length in positions.
    pub original: usize,
    /// Whether the ends of the ramp are rounded outward to whole pairs.
    pub truncate: bool,
}

/// Frequency of Su et al. 2021, `1 / base^(2m / dim)`.
pub fn plain(ScalarPair { base, dim, m }: ScalarPair) -> f64 {
    1.0 / base.powf((2 * m) as f64 / dim as f64)
}

/// Frequency of Chen et al. 2023 (position interpolation), by which position `n` counts as `n /
/// factor`.
pub fn linear(pair: ScalarPair, factor: f64) -> f64 {
    plain(pair) / factor
}

/// Frequency of NTK-aware scaling, as described by Peng et al. 2023 (YaRN): a larger base.
pub fn ntk(ScalarPair { base, dim, m }: ScalarPair, factor: f64) -> f64 {
    let power = dim as f64 / (dim - 2) as f64;
    1.0 / (base * factor.powf(power)).powf((2 * m) as f64 / dim as f64)
}

/// Frequency of HuggingFace's `dynamic` scaling: [`ntk`] with a factor that grows with the length
/// beyond the original.
pub fn dynamic(pair: ScalarPair, factor: f64, len: usize, original: usize) -> f64 {
    if len <= original {
        return plain(pair);
    }
    let ratio = len as f64 / original as f64;
    ntk(pair, factor * ratio - (factor - 1.0))
}

/// Frequency of YaRN (Peng et al. 2023), in the form of its code, where the ramp runs over pairs. A fast pair keeps the
/// share `extrapolation` of its own frequency (1 in the paper), as in the authors' `LlamaYaRNScaledRotaryEmbedding.py`.
pub fn yarn(pair: ScalarPair, factor: f64, extrapolation: f64, ramp: ScalarRamp) -> f64 {
    let kept = extrapolation * (1.0 - slowness(pair, ramp));
    let own = plain(pair);
    (1.0 - kept) * own / factor + kept * own
}

/// Frequency of the authors' `LlamaPartNTKScaledRotaryEmbedding.py`, with the shares of NTK-aware scaling and of the
/// pair's own frequency.
pub fn part_ntk(pair: ScalarPair, factor: f64, by_ntk: f64, kept: f64, original: usize) -> f64 {
    let ramp = |fast, slow| slowness(pair, ScalarRamp { fast, slow, original, truncate: true });
    let ntk_share = by_ntk * (1.0 - ramp(1.25, 0.75));
    let own_share = kept * (1.0 - ramp(16.0, 2.0));
    let mixed = linear(pair, factor) * (1.0 - ntk_share) + ntk(pair, factor) * ntk_share;
    mixed * (1.0 - own_share) + plain(pair) * own_share
}

/// Position on the ramp: 0 for fast pairs, 1 for slow ones.
fn slowness(
    ScalarPair { base, dim, m }: ScalarPair,
    ScalarRamp { fast, slow, original, truncate }: ScalarRamp,
) -> f64 {
    let (mut low, mut high) =
        (turning(fast, base, dim, original), turning(slow, base, dim, original));
    if truncate {
        low = low.floor();
        high = high.ceil();
    }
    low = low.max(0.0).min((dim - 1) as f64);
    high = high.max(0.0).min((dim - 1) as f64);
    if low >= high {
        high = low + 0.001;
    }
    let m_real = m as f64;
    if m_real <= low {
        0.0
    } else if m_real >= high {
        1.0
    } else {
        (m_real - low) / (high - low)
    }
}

/// Real `m` at which a pair completes `rotations` turns within `original` positions, found by
/// bisection.
fn turning(rotations: f64, base: f64, dim: usize, original: usize) -> f64 {
    let turns = |m: f64| original as f64 / (2.0 * PI * base.powf(2.0 * m / dim as f64));
    let (mut few, mut many) = (1e6, -1e6);
    for _ in 0..200 {
        let middle = f64::midpoint(few, many);
        if turns(middle) > rotations {
            many = middle;
        } else {
            few = middle;
        }
    }
    f64::midpoint(few, many)
}

/// Attention factor of Peng et al. 2023, or DeepSeek's quotient if both `mscale`s are given.
pub fn yarn_attention(factor: f64, mscales: Option<[f64; 2]>) -> f64 {
    let magnitude = |mscale: f64| if factor > 1.0 { 0.1 * mscale * factor.ln() + 1.0 } else { 1.0 };
    match mscales {
        Some([above, below]) => magnitude(above) / magnitude(below),
        None => magnitude(1.0),
    }
}

/// Frequency of LongRoPE (Ding et al. 2024), with one divisor per pair.
pub fn longrope(ScalarPair { base, dim, m }: ScalarPair, divisors: &[f64]) -> f64 {
    1.0 / (divisors[m] * base.powf((2 * m) as f64 / dim as f64))
}

/// Attention factor of LongRoPE, `sqrt(1 + ln s / ln L0)`.
pub fn longrope_attention(factor: f64, original: usize) -> f64 {
    if factor <= 1.0 {
        return 1.0;
    }
    (1.0 + factor.ln() / (original as f64).ln()).sqrt()
}

/// Frequency of Llama 3.1, whose rule depends on the wavelength.
pub fn llama3(pair: ScalarPair, factor: f64, low: f64, high: f64, original: usize) -> f64 {
    let own = plain(pair);
    let wavelength = 2.0 * PI / own;
    let original = original as f64;
    if wavelength < original / high {
        own
    } else if wavelength > original / low {
        own / factor
    } else {
        let t = (original / wavelength - low) / (high - low);
        (1.0 - t) * own / factor + t * own
    }
}

/// Frequency of HuggingFace's `proportional` scaling: pairs from `floor(share dim / 2)` on are not
/// rotated.
pub fn proportional(pair: ScalarPair, share: f64, factor: f64) -> f64 {
    let turning = (share * pair.dim as f64 / 2.0).floor();
    if (pair.m as f64) < turning { plain(pair) / factor } else { 0.0 }
}

/// Frequency of clipped RoPE (Li et al. 2026): the last `clipped` pairs keep the share `cos^2(t / 2)`, `t` rising from 0 to
/// pi, or nothing.
pub fn clipped(pair: ScalarPair, clipped: usize, hard: bool) -> f64 {
    let first = pair.dim / 2 - clipped;
    if pair.m < first {
        plain(pair)
    } else if hard {
        0.0
    } else {
        let rise = if clipped > 1 { (pair.m - first) as f64 / (clipped - 1) as f64 } else { 0.0 };
        plain(pair) * (PI * rise / 2.0).cos().powi(2)
    }
}

/// Frequency of HoPE (Chen et al. 2024): pairs whose wavelength is longer than the original length do not turn.
pub fn high_frequency(pair: ScalarPair, original: usize) -> f64 {
    let wavelength = 2.0 * PI / plain(pair);
    if wavelength > original as f64 { 0.0 } else { plain(pair) }
}

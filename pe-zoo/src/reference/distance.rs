//! Scalar references of biases of the distance.
//!
//! Results are `[head][row][column]` for the columns that a row may see.

use super::{Heads, ScalarInput, Tokens};

/// Lower bound of KERPLE's parameters, which have one value per head.
const SMALLEST: f64 = 0.01;

/// Bias of ALiBi (Press et al. 2021, figure 3 and section 3), `-slope_h (i - j)`.
pub fn alibi(input: &ScalarInput, slopes: &[f64]) -> Heads {
    input.map(|h, _row, i, j| -slopes[h] * (input.position(i) - input.position(j)))
}

/// Logits of ALiBi, `q.k / sqrt(D) - slope_h (i - j)`.
pub fn alibi_logits(input: &ScalarInput, slopes: &[f64]) -> Heads {
    input.biased(&alibi(input, slopes))
}

/// Logits of ALiBi in the authors' form, `q.k / sqrt(D) + slope_h j`, which differs by a constant in each
/// row.
pub fn alibi_logits_by_column(input: &ScalarInput, slopes: &[f64]) -> Heads {
    let bias = input.map(|h, _row, _i, j| slopes[h] * input.positions[j] as f64);
    input.biased(&bias)
}

/// Bias of the logarithmic kernel of KERPLE (Chi et al. 2022, arXiv:2205.09921), `-p_h ln(1 + a_h (i - j))`.
pub fn kerple_logarithmic(input: &ScalarInput, a: &[f64], p: &[f64]) -> Heads {
    input.map(|h, _row, i, j| {
        let distance = input.distance(i, j) as f64;
        -p[h].max(SMALLEST) * (1.0 + a[h].max(SMALLEST) * distance).ln()
    })
}

/// Bias of the power kernel of KERPLE, `-a_h (i - j)^p_h`, `p_h` at most 2.
pub fn kerple_power(input: &ScalarInput, a: &[f64], p: &[f64]) -> Heads {
    input.map(|h, _row, i, j| {
        let distance = input.distance(i, j) as f64;
        -a[h].max(SMALLEST) * distance.powf(p[h].clamp(SMALLEST, 2.0))
    })
}

/// Bias of the prior of BAM (Bianchessi et al. 2025, arXiv:2505.22842), a generalised Gaussian kernel, `-exp(a_h) (|j - i -
/// mu_h| + 1e-5)^p_h`, `mu_h = exp(m_h) - exp(-m_h)`, 0 without `m`. Parameters are not bounded.
pub fn generalized_gaussian(input: &ScalarInput, a: &[f64], p: &[f64], m: Option<&[f64]>) -> Heads {
    input.map(|h, _row, i, j| {
        let mean = m.map_or(0.0, |m| m[h].exp() - (-m[h]).exp());
        let from_mean = (input.distance(i, j) as f64 + mean).abs() + 1e-5;
        -a[h].exp() * from_mean.powf(p[h])
    })
}

/// Logits of KERPLE's weight form, `q_i . k_j / sqrt(D) exp(-wa_h (i - j)^wp_h) + bias`, `wp_h` at most 2.
pub fn kerple_weighted(input: &ScalarInput, bias: &Heads, wa: &[f64], wp: &[f64]) -> Heads {
    let root = (input.head_dim() as f64).sqrt();
    input.map(|h, row, i, j| {
        let distance = input.distance(i, j) as f64;
        let exponent = wa[h].max(SMALLEST) * distance.powf(wp[h].clamp(SMALLEST, 2.0));
        input.content(h, row, j) / root * (-exponent).exp() + bias[h][row][j]
    })
}

/// Bias of Sandwich (Chi et al. 2023, "Dissecting Transformer Length Extrapolation"), `(sum over k in 1..=d/2 of cos(distance /
/// 10000^(2k/d)) - d/2) / (8 (h + 1) / H)`.
pub fn sandwich(input: &ScalarInput, d_bar: usize) -> Heads {
    let heads = input.q.len() as f64;
    input.map(|h, _row, i, j| wave_sum(input.distance(i, j), d_bar) * heads / (8 * (h + 1)) as f64)
}

/// Sum of the waves minus its value at distance 0.
fn wave_sum(distance: usize, d_bar: usize) -> f64 {
    let mut sum = 0.0;
    for k in 1..=d_bar / 2 {
        sum += (distance as f64 / 10_000f64.powf(2.0 * k as f64 / d_bar as f64)).cos();
    }
    sum - (d_bar / 2) as f64
}

/// Bias of T5 (Raffel et al. 2020, section 2.1) in a decoder, `table[bucket of (i - j)][h]`.
pub fn t5(input: &ScalarInput, table: &Tokens, max_distance: usize) -> Heads {
    input.map(|h, _row, i, j| table[t5_bucket(input.distance(i, j), table.len(), max_distance)][h])
}

/// Bucket of a distance: half of the buckets hold one distance each, the others are logarithmic up
/// to `max_distance`.
fn t5_bucket(distance: usize, buckets: usize, max_distance: usize) -> usize {
    let exact = buckets / 2;
    if distance < exact {
        return distance;
    }
    let (n, e, m) = (distance as f64, exact as f64, max_distance as f64);
    let logarithmic = (buckets - exact) as f64 * (n / e).log2() / (m / e).log2();
    // A distance that is a power of the ratio lies exactly on an edge and belongs to the bucket
    // above it.
    (exact + (logarithmic + 1e-9).floor() as usize).min(buckets - 1)
}

/// Parameters of FIRE (Li et al. 2023, the listing in its appendix), a learned function of distance and position.
#[derive(Debug, Clone)]
pub struct ScalarFire {
    /// Scale `c` inside the logarithm.
    pub c: f64,
    /// Length below which the normaliser is constant: multiplier times initial length.
    pub threshold: f64,
    /// Constant added to the normaliser.
    pub eps: f64,
    /// Weight and bias of each hidden unit.
    pub hidden: Vec<(f64, f64)>,
    /// Slope of the activation for negative inputs.
    pub negative_slope: f64,
    /// Output weights, `[head][hidden unit]`.
    pub outer: Vec<Vec<f64>>,
    /// Output biases, one per head.
    pub outer_bias: Vec<f64>,
}

impl ScalarFire {
    /// Normalised distance `psi(i - j) / (psi(max(i, |threshold|)) + eps)`, `psi(x) = ln(|c x| +
    /// 1)`.
    pub fn normalised(&self, i: usize, j: usize) -> f64 {
        let psi = |x: f64| ((self.c * x).abs() + 1.0).ln();
        psi((i - j) as f64) / (psi((i as f64).max(self.threshold.abs())) + self.eps)
    }

    /// Bias of every visible pair, `[head][row][column]`.
    pub fn bias(&self, input: &ScalarInput) -> Heads {
        input.map(|h, _row, i, j| {
            let u = self.normalised(input.positions[i], input.positions[j]);
            let mut sum = self.outer_bias[h];
            for ((weight, bias), outer) in self.hidden.iter().zip(&self.outer[h]) {
                let z = weight * u + bias;
                sum += outer * if z > 0.0 { z } else { self.negative_slope * z };
            }
            sum
        })
    }
}

/// Linear map of the network of the dynamic position bias: `weight[input][output]` and a bias per output.
#[derive(Debug, Clone)]
pub struct ScalarLinear {
    /// Weights of the map, `[input][output]`.
    pub weight: Tokens,
    /// Biases of the outputs.
    pub bias: Vec<f64>,
}

/// Dynamic position bias, as in `DynamicPositionBias` of x-transformers: the network's output for the distance, or for the
/// logarithm of the distance plus 1.
pub fn dynamic(input: &ScalarInput, maps: &[ScalarLinear], logarithm: bool) -> Heads {
    input.map(|h, _row, i, j| {
        let distance = input.distance(i, j) as f64;
        let mut values = vec![if logarithm { (1.0 + distance).ln() } else { distance }];
        for (index, map) in maps.iter().enumerate() {
            if index > 0 {
                values = values.iter().map(|x| x / (1.0 + (-x).exp())).collect();
            }
            values = map
                .bias
                .iter()
                .enumerate()
                .map(|(o, b)| {
                    b + values.iter().zip(&map.weight).map(|(x, w)| x * w[o]).sum::<f64>()
                })
                .collect();
        }
        values[h]
    })
}

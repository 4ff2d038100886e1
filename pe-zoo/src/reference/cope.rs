//! Scalar reference of CoPE: Golovneva et al. 2024, eq. 3 to 5, eq. 10 and Listing 1.

use super::{Heads, ScalarInput, Tokens, dot};
use crate::score::{HiddenActivation, LogitScaling};

/// Vectors that queries are multiplied with for the gate logits.
#[derive(Debug, Clone, Copy)]
pub enum GateSide<'a> {
    /// Keys of the attention.
    Keys,
    /// Values of the attention.
    Values,
    /// Separate keys for the gates, `[head][column][D]`.
    Own(&'a Heads),
}

/// Separate keys: `k'[h][j]` is slice `h` of `x_j W`, with `weight[c][c']`.
pub fn own_keys(x: &Tokens, weight: &Tokens, heads: usize) -> Heads {
    let width = weight[0].len();
    let head_dim = width / heads;
    (0..heads)
        .map(|h| {
            x.iter()
                .map(|token| {
                    (h * head_dim..(h + 1) * head_dim)
                        .map(|out| token.iter().zip(weight).map(|(x, row)| x * row[out]).sum())
                        .collect()
                })
                .collect()
        })
        .collect()
}

/// Contextual positions `p[i, j] = min(sum over m in j..=i of gate[i, m], max_position)`.
pub fn positions(
    input: &ScalarInput,
    max_position: f64,
    convention: LogitScaling,
    side: GateSide<'_>,
) -> Heads {
    let scale = match convention {
        LogitScaling::Listing | LogitScaling::Code => 1.0 / (input.head_dim() as f64).sqrt(),
        LogitScaling::Equation => 1.0,
    };
    let side = match side {
        GateSide::Keys => &input.k,
        GateSide::Values => &input.v,
        GateSide::Own(keys) => keys,
    };
    input.map(|h, row, i, j| {
        let gates = (j..=i).map(|m| {
            let logit = dot(&input.q[h][row], &side[h][m]) * scale;
            1.0 / (1.0 + (-logit).exp())
        });
        gates.sum::<f64>().min(max_position)
    })
}

/// Position vector `e[p]`, interpolated linearly between the neighbouring entries;
/// `table[d][entry]`.
pub fn interpolated(table: &Tokens, position: f64) -> Vec<f64> {
    let (below, above) = (position.floor(), position.ceil());
    let weight = position - below;
    table
        .iter()
        .map(|row| row[above as usize] * weight + row[below as usize] * (1.0 - weight))
        .collect()
}

/// Sum of the content logits and the bias of the contextual positions; `added` gets head, row and
/// position.
pub fn combine(
    input: &ScalarInput,
    positions: &Heads,
    convention: LogitScaling,
    added: impl Fn(usize, usize, f64) -> f64,
) -> Heads {
    let root = (input.head_dim() as f64).sqrt();
    input.map(|h, row, _i, j| {
        let (content, z) = (input.content(h, row, j), added(h, row, positions[h][row][j]));
        match convention {
            LogitScaling::Listing => content / root + z,
            LogitScaling::Code => (content + z) / root,
            LogitScaling::Equation => content + z,
        }
    })
}

/// Logits with the bias of the interpolated table; `table[d][entry]`.
pub fn logits(
    input: &ScalarInput,
    table: &Tokens,
    convention: LogitScaling,
    side: GateSide<'_>,
) -> Heads {
    let p = positions(input, (table[0].len() - 1) as f64, convention, side);
    combine(input, &p, convention, |h, row, p| dot(&input.q[h][row], &interpolated(table, p)))
}

/// Perceptron of CoPE-MLP (appendix C), `e(p) = W2 act(W1 p + b1) + b2`.
#[derive(Debug, Clone)]
pub struct ScalarPerceptron {
    /// Weights `W1`, one per hidden unit.
    pub w1: Vec<f64>,
    /// Biases `b1`, one per hidden unit.
    pub b1: Vec<f64>,
    /// Output weights `W2`, `[D][hidden unit]`.
    pub w2: Tokens,
    /// Output biases `b2`, one per channel.
    pub b2: Vec<f64>,
    /// Activation of the hidden units.
    pub activation: HiddenActivation,
}

impl ScalarPerceptron {
    /// Vector of position `p`, `D` channels.
    pub fn embedding(&self, p: f64) -> Vec<f64> {
        let hidden = self.w1.iter().zip(&self.b1).map(|(w, b)| match self.activation {
            HiddenActivation::Relu => (w * p + b).max(0.0),
            HiddenActivation::Gelu => gelu(w * p + b),
        });
        let hidden = hidden.collect::<Vec<_>>();
        self.w2.iter().zip(&self.b2).map(|(row, b)| dot(row, &hidden) + b).collect()
    }
}

/// Computes `x Phi(x)`, with the error function as its Taylor series (Abramowitz and Stegun 7.1.5).
fn gelu(x: f64) -> f64 {
    let u = x / std::f64::consts::SQRT_2;
    // Past 4 the error function is 1 to within 2e-8, and the series loses digits to cancellation.
    if u.abs() > 4.0 {
        return x.max(0.0);
    }
    let (mut term, mut sum) = (u, u);
    for n in 1..120 {
        let n = f64::from(n);
        term *= -u * u / n;
        sum += term / (2.0 * n + 1.0);
    }
    x * 0.5 * (1.0 + sum * std::f64::consts::FRAC_2_SQRT_PI)
}

#[cfg(test)]
mod tests {
    use super::gelu;

    /// Values of the normal distribution function: Phi(1) = 0.841344746, Phi(-2) = 0.022750132.
    #[test]
    fn gelu_is_x_times_the_normal_distribution_function() {
        for (x, expected) in [(0.0, 0.0), (1.0, 0.841_344_746), (-2.0, -0.045_500_264)] {
            assert!((gelu(x) - expected).abs() < 1e-8, "{x}: {}", gelu(x));
        }
        assert!((gelu(5.6) - 5.6).abs() < 1e-6 && gelu(-5.7).abs() < 1e-6);
        assert!((gelu(7.0) - 7.0).abs() < 1e-12 && gelu(-7.0).abs() < 1e-12);
    }
}

//! Scalar reference of CoPE with a perceptron in place of the interpolated table: Golovneva et al.
//! 2024, appendix C.

use super::Tokens;
use crate::score::HiddenActivation;

/// Perceptron `e(p) = W2 act(W1 p + b1) + b2`.
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
        self.w2.iter().zip(&self.b2).map(|(row, b)| super::dot(row, &hidden) + b).collect()
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

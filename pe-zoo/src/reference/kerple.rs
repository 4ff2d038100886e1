//! Scalar references of the two kernels of KERPLE: Chi et al. 2022.

use super::{Heads, ScalarInput};

/// Lower bound of both parameters.
const SMALLEST: f64 = 0.01;

/// Logarithmic kernel, `-p_h ln(1 + a_h (i - j))`.
pub fn logarithmic(input: &ScalarInput, a: &[f64], p: &[f64]) -> Heads {
    input.map(|h, _row, i, j| {
        let distance = input.distance(i, j) as f64;
        -p[h].max(SMALLEST) * (1.0 + a[h].max(SMALLEST) * distance).ln()
    })
}

/// Power kernel, `-a_h (i - j)^p_h`, `p_h` at most 2.
pub fn power(input: &ScalarInput, a: &[f64], p: &[f64]) -> Heads {
    input.map(|h, _row, i, j| {
        let distance = input.distance(i, j) as f64;
        -a[h].max(SMALLEST) * distance.powf(p[h].clamp(SMALLEST, 2.0))
    })
}

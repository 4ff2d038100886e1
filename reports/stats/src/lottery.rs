//! p-value of differences between encodings whose seeds solve the task or fail at random.

/// Upper bound of the probability that seeds which solve a task or fail it by luck, two encodings alike, differ as much
/// in one direction as the given differences.
///
/// A seed counts for a direction where its difference is at least a fifth of the largest. If both encodings solve with
/// chance q, each direction has the probability `q (1 - q) <= 1 / 4`, and the number of seeds for one direction less
/// that for the other is at most as spread as `Bin(2n, 1/2) - n`. So the bound is `2 P(Bin(2n, 1/2) >= n + s)` for a
/// surplus of s seeds, at most 1: with all n on one side `2^(1 - 2n)`, the least that n seeds allow whatever their
/// distribution.
///
/// ```
/// # use stats::lottery;
/// assert_eq!(lottery(&[0.5, 0.4, 0.3]), 0.03125);
/// assert_eq!(lottery(&[0.5, 0.4, -0.3]), 0.6875);
/// ```
pub fn lottery(differences: &[f64]) -> f64 {
    let largest = differences.iter().fold(0.0_f64, |most, d| most.max(d.abs()));
    let side = |sign: f64| differences.iter().filter(|d| **d * sign >= 0.2 * largest).count();
    let surplus = if largest > 0.0 { side(1.0).abs_diff(side(-1.0)) } else { 0 };
    tail(differences.len() as u32, surplus as u32)
}

/// Returns `2 P(Bin(2n, 1/2) >= n + surplus)`, at most 1.
fn tail(n: u32, surplus: u32) -> f64 {
    // Terms from the last one down: C(2n, 2n) / 4^n = 4^-n.
    let mut term = 0.25_f64.powi(n as i32);
    let mut sum = 0.0;
    for right in (n + surplus..=2 * n).rev() {
        sum += term;
        term *= f64::from(right) / f64::from(2 * n - right + 1);
    }
    (2.0 * sum).min(1.0)
}

/// Returns the smallest p-value that `n` seeds allow for any distribution, `2^(1 - 2n)`; see [`lottery`].
pub fn minimum_p_value(n: u32) -> f64 {
    tail(n, n)
}

//! Scalar reference of learned absolute positions: Gehring et al. 2017, section 3.1.

use super::Tokens;

/// Embeddings with the table added, `x[n] + table[n]`.
pub fn embed(x: &Tokens, positions: &[usize], table: &Tokens) -> Tokens {
    x.iter()
        .zip(positions)
        .map(|(token, n)| token.iter().zip(&table[*n]).map(|(a, b)| a + b).collect())
        .collect()
}

//! Scalar reference of Abacus embeddings: McLeish et al. 2024, as in the authors' `abacus.py`.

use super::Tokens;

/// Row of the table for each token: 1, 2, 3, … from the first digit of each run, plus `offset`, at
/// most `last`; 0 for tokens that are not digits.
pub fn indices(ids: &[usize], digits: [usize; 2], offset: usize, last: usize) -> Vec<usize> {
    let mut run = 0;
    ids.iter()
        .map(|id| {
            if *id < digits[0] || *id > digits[1] {
                run = 0;
                return 0;
            }
            run += 1;
            (run + offset).min(last)
        })
        .collect()
}

/// Embeddings with the encoding added, `x[n] + table[index of n]`.
pub fn embed(x: &Tokens, indices: &[usize], table: &Tokens) -> Tokens {
    x.iter()
        .zip(indices)
        .map(|(token, index)| token.iter().zip(&table[*index]).map(|(a, b)| a + b).collect())
        .collect()
}

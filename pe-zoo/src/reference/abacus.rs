//! McLeish et al. 2024, as the authors' `abacus.py` has it.

use super::Tokens;

/// Which row of the table each token gets: 1, 2, 3, … from the first digit of each run, `offset`
/// added, no more than `last`; 0 for what is no digit.
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

/// `x[n] + table[index of n]`.
pub fn embed(x: &Tokens, indices: &[usize], table: &Tokens) -> Tokens {
    x.iter()
        .zip(indices)
        .map(|(token, index)| token.iter().zip(&table[*index]).map(|(a, b)| a + b).collect())
        .collect()
}

//! Scalar softmax attention over given logits.

use super::{Heads, dot};

/// Softmax of each row.
pub fn softmax(logits: &Heads) -> Heads {
    let row = |row: &Vec<f64>| {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum = row.iter().map(|x| (x - top).exp()).sum::<f64>();
        row.iter().map(|x| (x - top).exp() / sum).collect()
    };
    logits.iter().map(|head| head.iter().map(row).collect()).collect()
}

/// Sums of the values, weighted by `weights`, `[head][row][D]`.
pub fn mix(weights: &Heads, values: &Heads) -> Heads {
    weights
        .iter()
        .zip(values)
        .map(|(head, values)| {
            head.iter()
                .map(|row| {
                    (0..values[0].len())
                        .map(|d| {
                            let column =
                                values[..row.len()].iter().map(|v| v[d]).collect::<Vec<_>>();
                            dot(row, &column)
                        })
                        .collect()
                })
                .collect()
        })
        .collect()
}

/// Moves the whole weight of each row to its largest entry, the first among equals; rows of zeros
/// are unchanged.
pub fn argmax_weights(weights: &Heads) -> Heads {
    let row = |row: &Vec<f64>| {
        let mut largest = 0;
        for (j, weight) in row.iter().enumerate() {
            if *weight > row[largest] {
                largest = j;
            }
        }
        let taken = |j: usize| j == largest && row[j] > 0.0;
        (0..row.len()).map(|j| if taken(j) { 1.0 } else { 0.0 }).collect()
    };
    weights.iter().map(|head| head.iter().map(row).collect()).collect()
}

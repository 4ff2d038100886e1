//! Scalar softmax attention over given logits.

use super::{Heads, dot};

/// Softmax of each row.
pub fn softmax(logits: &Heads) -> Heads {
    softmax_beside(logits, None)
}

/// Softmax of each row; `sinks` are logits of the heads that count in the denominator alone.
pub fn softmax_beside(logits: &Heads, sinks: Option<&[f64]>) -> Heads {
    let row = |row: &Vec<f64>, sink: f64| {
        let top = row.iter().copied().fold(sink, f64::max);
        let sum = row.iter().map(|x| (x - top).exp()).sum::<f64>() + (sink - top).exp();
        row.iter().map(|x| (x - top).exp() / sum).collect()
    };
    let heads = logits.iter().enumerate().map(|(h, head)| {
        let sink = sinks.map_or(f64::NEG_INFINITY, |sinks| sinks[h]);
        head.iter().map(|logits| row(logits, sink)).collect()
    });
    heads.collect()
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

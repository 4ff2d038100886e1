//! Scalar reference of T5's bias: Raffel et al. 2020, section 2.1, for a decoder.

use super::{Heads, ScalarInput, Tokens};

/// Bias of every visible pair, `table[bucket of (i - j)][h]`.
pub fn bias(input: &ScalarInput, table: &Tokens, max_distance: usize) -> Heads {
    input.map(|h, _row, i, j| table[bucket(input.distance(i, j), table.len(), max_distance)][h])
}

/// Bucket of a distance: half of the buckets hold one distance each, the others are logarithmic up
/// to `max_distance`.
pub fn bucket(distance: usize, buckets: usize, max_distance: usize) -> usize {
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

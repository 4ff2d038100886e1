//! T5's buckets of distances: one bucket per short distance, logarithmic buckets beyond.

/// Returns the bucket of each distance from 0 to the first of the last bucket, which holds all
/// greater distances.
///
/// Distances below half of the buckets have one bucket each. Bucket `half + m` starts where `ln(n /
/// half) / ln(max_distance / half) * (buckets - half)` reaches `m`.
pub(crate) fn causal(buckets: usize, max_distance: usize) -> Vec<usize> {
    let mut table = Vec::new();
    loop {
        let bucket = causal_bucket(table.len(), buckets, max_distance);
        table.push(bucket);
        if bucket + 1 >= buckets || table.len() > max_distance {
            return table;
        }
    }
}

fn causal_bucket(distance: usize, buckets: usize, max_distance: usize) -> usize {
    // Powers lie exactly on an edge, where rounding of the logarithms would decide. The nearest
    // distance that is not on an edge is further away than this while distances are below 10^6.
    const EDGE: f64 = 1e-9;
    let half = buckets / 2;
    if distance < half {
        return distance;
    }
    let ratio = |n: usize| (n as f64 / half as f64).ln();
    let steps = ratio(distance) / ratio(max_distance) * (buckets - half) as f64 + EDGE;
    (half + steps as usize).min(buckets - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Computes the bucket without a logarithm: the largest `m` with `(n / half)^steps >= (max /
    /// half)^m`, in integers of any size.
    fn slow(distance: usize, buckets: usize, max_distance: usize) -> usize {
        let half = buckets / 2;
        if distance < half {
            return distance;
        }
        let steps = buckets - half;
        let reaches = |m: usize| {
            // distance^steps * half^m >= max^m * half^steps
            let left = product(&[(distance, steps), (half, m)]);
            let right = product(&[(max_distance, m), (half, steps)]);
            (left.len(), left.iter().rev().collect::<Vec<_>>())
                >= (right.len(), right.iter().rev().collect())
        };
        let last = (0..steps).filter(|m| reaches(*m)).max().unwrap_or(0);
        half + last
    }

    /// Computes a product of powers as digits in base 10^9, least significant first, without
    /// leading zeros.
    fn product(factors: &[(usize, usize)]) -> Vec<u64> {
        let mut digits = vec![1u64];
        for (base, exponent) in factors {
            for _ in 0..*exponent {
                let mut carry = 0;
                for digit in &mut digits {
                    let next = *digit * *base as u64 + carry;
                    *digit = next % 1_000_000_000;
                    carry = next / 1_000_000_000;
                }
                while carry > 0 {
                    digits.push(carry % 1_000_000_000);
                    carry /= 1_000_000_000;
                }
            }
        }
        digits
    }

    /// Distances at which the logarithmic buckets start at T5's defaults.
    #[test]
    fn the_default_buckets_start_where_they_do_in_t5() {
        let table = causal(32, 128);
        let starts =
            (16..32).map(|b| table.iter().position(|x| *x == b).unwrap()).collect::<Vec<_>>();
        let expected = [16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113];
        assert_eq!(starts, expected);
        assert_eq!(table[..16], (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn an_edge_that_is_an_exact_power_belongs_to_the_bucket_that_starts_there() {
        // half 4, ratio 2 per bucket: 4, 8, 16, 32, whatever the logarithms round to.
        let table = causal(8, 64);
        for (start, bucket) in [(4, 4), (8, 5), (16, 6), (32, 7)] {
            assert_eq!((table[start - 1], table[start]), (bucket - 1, bucket));
        }
    }

    proptest! {
        #[test]
        fn buckets_ascend_one_by_one_or_skip_and_equal_the_slow_definition(
            buckets in 2usize..40,
            beyond in 1usize..120,
        ) {
            let max_distance = buckets / 2 + beyond;
            let table = causal(buckets, max_distance);
            prop_assert!(table.is_sorted());
            prop_assert_eq!(table.last(), Some(&(buckets - 1)));
            for (distance, bucket) in table.iter().enumerate() {
                prop_assert_eq!(*bucket, slow(distance, buckets, max_distance), "{}", distance);
            }
            prop_assert_eq!(slow(table.len() + 50, buckets, max_distance), buckets - 1);
        }
    }
}

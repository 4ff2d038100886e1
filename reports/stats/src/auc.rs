//! Area under the ROC curve of a score that separates two classes.

/// Returns the probability that a random positive value is above a random negative one, where ties count half: `sum
/// over pairs of (p > n) + (p = n) / 2, / (|positive| |negative|)`, the Mann-Whitney statistic. 1 is a perfect
/// separation, 0.5 none, 0 a perfect separation in the wrong order.
///
/// `None` if either kind is missing or a value is NaN.
///
/// ```
/// # use stats::auc;
/// assert_eq!(auc(&[0.9, 0.4], &[0.1, 0.4]), Some(0.875));
/// ```
pub fn auc(positive: &[f64], negative: &[f64]) -> Option<f64> {
    let nan = |values: &[f64]| values.iter().any(|x| x.is_nan());
    if positive.is_empty() || negative.is_empty() || nan(positive) || nan(negative) {
        return None;
    }
    let mut all: Vec<(f64, bool)> = positive.iter().map(|x| (*x, true)).collect();
    all.extend(negative.iter().map(|x| (*x, false)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Twice the number of pairs won, so that ties add an integer.
    let (mut twice_won, mut below) = (0_u64, 0_u64);
    // Not `total_cmp`, for which -0 and 0 differ.
    for tied in all.chunk_by(|a, b| a.0.partial_cmp(&b.0).is_some_and(std::cmp::Ordering::is_eq)) {
        let won = tied.iter().filter(|(_, is_positive)| *is_positive).count() as u64;
        let lost = tied.len() as u64 - won;
        twice_won += won * (2 * below + lost);
        below += lost;
    }
    Some(twice_won as f64 / (2 * positive.len() * negative.len()) as f64)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn by_pairs(positive: &[f64], negative: &[f64]) -> f64 {
        let won = |p: &f64| -> f64 {
            negative
                .iter()
                .map(|n| {
                    if p > n {
                        1.0
                    } else if p < n {
                        0.0
                    } else {
                        0.5
                    }
                })
                .sum()
        };
        positive.iter().map(won).sum::<f64>() / (positive.len() * negative.len()) as f64
    }

    #[test]
    fn it_is_what_counting_all_pairs_gives() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for _ in 0..500 {
            // Few different values, so that there are many ties.
            let mut draw = || -> Vec<f64> {
                let count = rng.random_range(1..20);
                (0..count).map(|_| f64::from(rng.random_range(-3..4)) / 2.0).collect()
            };
            let (positive, negative) = (draw(), draw());
            let found = auc(&positive, &negative).unwrap();
            assert!((found - by_pairs(&positive, &negative)).abs() < 1e-12);
            let mirrored = auc(&negative, &positive).unwrap();
            assert!((found + mirrored - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn one_kind_alone_and_nan_have_no_area() {
        assert_eq!(auc(&[], &[0.5]), None);
        assert_eq!(auc(&[0.5], &[]), None);
        assert_eq!(auc(&[f64::NAN], &[0.5]), None);
        assert_eq!(auc(&[0.0], &[-0.0]), Some(0.5));
    }
}

//! The sign-flip permutation test of differences paired by seed.
//!
//! If neither encoding is better, each difference is as likely as its negative, whatever the distribution. The
//! p-value is the share of all `2^n` choices of signs whose sum is at least as far from 0 as the observed one. A
//! choice and its negation are equally far, so the p-value is at least `2^(1 - n)`: 0.25 with 3 seeds, 0.0625 with 5,
//! 0.03125 with 6.

use std::sync::OnceLock;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Number of differences up to which all sign patterns are enumerated.
pub const EXACT_UP_TO: usize = 16;
/// Number of random sign patterns above [`EXACT_UP_TO`]; with the observed one they are 100 000.
pub const DRAWS: u32 = 99_999;
/// Expected number of sign patterns as far out as the observed one below which no patterns are drawn. The p-value is
/// then that of no such pattern, which is at least the true one.
const NEVER: f64 = 0.01;
/// Seed of the draws, so that the same differences give the same p-value.
const SEED: u64 = 0x7065_2d7a_6f6f;
/// Share of the largest sum below which two sums are equal up to rounding.
const ROUNDING: f64 = 1e-9;

/// Returns the two-sided p-value; `None` without differences or if one is not finite.
///
/// Exact up to [`EXACT_UP_TO`] differences. Above, `(hits + 1) / (draws + 1)` over [`DRAWS`] random
/// choices: the observed choice is one of them, so the value is never 0 and never too small.
///
/// ```
/// # use stats::sign_flip;
/// // Of the 8 choices, +++ and --- are as far out as what was seen.
/// assert_eq!(sign_flip(&[0.1, 0.2, 0.3]), Some(0.25));
/// ```
pub fn sign_flip(differences: &[f64]) -> Option<f64> {
    let n = differences.len();
    if n == 0 || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let all: f64 = differences.iter().map(|d| d.abs()).sum();
    let observed = differences.iter().sum::<f64>().abs() - ROUNDING * all;
    if n <= EXACT_UP_TO {
        // The sign of the last one is fixed: the other half of the patterns is symmetric.
        let choices = 1_u64 << (n - 1);
        let hits = hits(differences, observed, 0..choices);
        return Some(f64::from(hits) / choices as f64);
    }
    let squares: f64 = differences.iter().map(|d| d * d).sum();
    if hoeffding(observed, squares) * f64::from(DRAWS) < NEVER {
        return Some(1.0 / f64::from(DRAWS + 1));
    }
    let hits = if n <= 64 {
        hits(differences, observed, words().iter().copied())
    } else {
        let parts: Vec<Vec<SignedSums>> = differences.chunks(64).map(signed_sums).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let mut sum =
            || parts.iter().map(|part| signed_sum(part, rng.next_u64())).sum::<f64>().abs();
        (0..DRAWS).map(|_| u32::from(sum() >= observed)).sum()
    };
    Some(f64::from(hits + 1) / f64::from(DRAWS + 1))
}

/// Counts the sign patterns under which the sum of at most 64 differences is at least as far from 0 as `observed`.
fn hits(differences: &[f64], observed: f64, signs: impl Iterator<Item = u64>) -> u32 {
    // Loops, and not iterators in iterators, so that the sum over the tables is written out and inlined.
    fn counted<const N: usize>(
        tables: &[SignedSums],
        observed: f64,
        signs: impl Iterator<Item = u64>,
    ) -> u32 {
        let Some((tables, _)) = tables.split_first_chunk::<N>() else { return 0 };
        let mut hits = 0;
        for signs in signs {
            let mut sum = 0.0;
            for (place, table) in tables.iter().enumerate() {
                sum += table[index(signs, place)];
            }
            hits += u32::from(sum.abs() >= observed);
        }
        hits
    }
    let tables = signed_sums(differences);
    match tables.len() {
        1 => counted::<1>(&tables, observed, signs),
        2 => counted::<2>(&tables, observed, signs),
        3 => counted::<3>(&tables, observed, signs),
        4 => counted::<4>(&tables, observed, signs),
        5 => counted::<5>(&tables, observed, signs),
        6 => counted::<6>(&tables, observed, signs),
        _ => counted::<7>(&tables, observed, signs),
    }
}

/// Returns the random signs, 64 per word, which are drawn once and shared by all pairs.
fn words() -> &'static [u64] {
    static MADE: OnceLock<Vec<u64>> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        (0..DRAWS).map(|_| rng.next_u64()).collect()
    })
}

/// Upper bound of the probability that a sum with random signs is as far from 0 as `observed`: `2 exp(-observed^2 /
/// (2 squares))` (Hoeffding 1963), where `squares` is the sum of squares of the terms.
fn hoeffding(observed: f64, squares: f64) -> f64 {
    2.0 * (-observed.max(0.0).powi(2) / (2.0 * squares)).exp()
}

/// Number of differences of a table: five tables of 50 seeds fit into the first cache of a core.
const BITS: usize = 10;
/// Sums of up to [`BITS`] differences for all choices of their signs: bit i negates difference i.
type SignedSums = [f64; 1 << BITS];

/// Returns the tables of at most 64 differences.
fn signed_sums(differences: &[f64]) -> Vec<SignedSums> {
    let table = |part: &[f64]| {
        let mut sums = [0.0; 1 << BITS];
        for i in 0..BITS {
            // The signs of differences that do not exist change nothing.
            let d = part.get(i).copied().unwrap_or_default();
            let (plus, minus) = sums.split_at_mut(1 << i);
            for (plus, minus) in plus.iter_mut().zip(minus) {
                (*plus, *minus) = (*plus + d, *plus - d);
            }
        }
        sums
    };
    differences.chunks(BITS).map(table).collect()
}

/// Returns the sum of up to 64 differences, looked up in tables: ten times as fast as one by one, for hundreds of pairs
/// with 100 000 draws each.
fn signed_sum(tables: &[SignedSums], signs: u64) -> f64 {
    tables.iter().enumerate().map(|(place, table)| table[index(signs, place)]).sum()
}

/// Returns the place of the sum with these signs in the table of the differences from `place * BITS` on.
#[inline]
fn index(signs: u64, place: usize) -> usize {
    (signs >> (BITS * place)) as usize % (1 << BITS)
}

/// Returns the smallest p-value that [`sign_flip`] can give for `n` differences.
pub fn least_p(n: u32) -> f64 {
    let exact = 0.5_f64.powi(n.max(1) as i32 - 1);
    if n as usize <= EXACT_UP_TO { exact } else { exact.max(1.0 / f64::from(DRAWS + 1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_draw_could_be_as_far_out_none_is_made() {
        // All differences have one sign: the probability is 2^(1 - n), and the bound is above it.
        for n in [17, 30, 60] {
            let bound = hoeffding(f64::from(n), f64::from(n));
            assert!(bound >= 0.5_f64.powi(n - 1), "{n}: {bound}");
        }
        assert_eq!(sign_flip(&[1.0; 60]), Some(1.0 / f64::from(DRAWS + 1)));
        assert_eq!(sign_flip(&[0.0; 60]), Some(1.0), "no spread is no evidence");
    }

    #[test]
    fn nothing_goes_below_its_least_p() {
        for n in 1..=20_u32 {
            let same: Vec<f64> = (0..n).map(|i| 1.0 + f64::from(i)).collect();
            let p = sign_flip(&same).unwrap();
            assert!(p >= least_p(n) && p <= 1.1 * least_p(n) + 5e-5, "{n}: {p}");
        }
        let expected = [(2, 0.5), (3, 0.25), (5, 0.0625), (6, 0.03125)];
        assert_eq!(expected.map(|(n, _)| (n, least_p(n))), expected);
    }

    #[test]
    fn draws_agree_with_counting() {
        // 17 values of which one is 0: exactly the p-value of the other 16.
        let values: Vec<f64> =
            (0..16).map(|i| f64::from(i % 5) - 1.0 + 0.1 * f64::from(i)).collect();
        let exact = sign_flip(&values).unwrap();
        let drawn = sign_flip(&[values, vec![0.0]].concat()).unwrap();
        // Three standard errors of 100 000 draws.
        assert!(
            (exact - drawn).abs() < 3.0 * (exact * (1.0 - exact) / 1e5).sqrt(),
            "{exact} {drawn}"
        );
    }

    #[test]
    fn no_difference_and_nonsense_claim_nothing() {
        assert_eq!(sign_flip(&[0.0; 6]), Some(1.0));
        assert_eq!(sign_flip(&[0.5, -0.5, 0.5, -0.5]), Some(1.0));
        assert_eq!(sign_flip(&[]), None);
        assert_eq!(sign_flip(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn more_than_64_seeds_have_signs_of_their_own() {
        let mut values = vec![0.0; 130];
        values[3] = 1.0;
        values[67] = 1.0;
        values[129] = 1.0;
        let p = sign_flip(&values).unwrap();
        assert!((p - 0.25).abs() < 0.005, "three independent signs: {p}");
    }
}

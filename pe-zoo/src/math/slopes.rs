//! Slopes of ALiBi by the number of heads.

use serde::{Deserialize, Serialize};

use crate::PeError;

/// Slopes of the heads; initial values if the slopes are learned.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Slopes {
    /// Slopes of the authors' code: for head counts that are not a power of two, two sequences are
    /// spliced.
    #[default]
    Authors,
    /// Slopes by the paper's formula, applied to any head count.
    Paper,
    /// Explicit slopes, one per head.
    Given(Vec<f64>),
}

impl Slopes {
    /// Returns one slope per head.
    pub fn values(&self, heads: usize) -> Vec<f64> {
        match self {
            Self::Authors => spliced(heads),
            Self::Paper => geometric(heads),
            Self::Given(slopes) => slopes.clone(),
        }
    }

    /// Checks explicit slopes of encoding `pe`: one finite number per head, above 0 if the slopes are learned through
    /// their logarithms.
    ///
    /// # Errors
    /// [`PeError::InvalidSetting`] for the field `slopes.given`.
    pub(crate) fn check(&self, pe: &str, learned: bool, heads: usize) -> Result<(), PeError> {
        let Self::Given(slopes) = self else { return Ok(()) };
        let (given, expected) = (format!("{slopes:?}"), format!("{heads} numbers, one per head"));
        PeError::require(slopes.len() == heads, pe, "slopes.given", given, expected)?;
        let expected =
            if learned { "numbers above 0, because the slopes are learned" } else { "numbers" };
        slopes.iter().try_for_each(|slope| {
            let usable = slope.is_finite() && (!learned || *slope > 0.0);
            PeError::require(usable, pe, "slopes.given", slope, expected)
        })
    }
}

/// Computes the slopes by the paper's formula, for any number of heads: `2^(-8 (h + 1) / heads)`.
pub(crate) fn geometric(heads: usize) -> Vec<f64> {
    (1..=heads).map(|k| (-8.0 * k as f64 / heads as f64).exp2()).collect()
}

/// Computes the slopes by the authors' rule: where `heads` is not a power of two, the slopes of the
/// power below it, followed by every other slope of the power above it.
pub(crate) fn spliced(heads: usize) -> Vec<f64> {
    if heads.is_power_of_two() {
        return geometric(heads);
    }
    let below = heads.next_power_of_two() / 2;
    let mut slopes = geometric(below);
    slopes.extend(geometric(2 * below).into_iter().step_by(2).take(heads - below));
    slopes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Expected values computed with the rule of the authors' `get_slopes`.
    #[test]
    fn spliced_slopes_are_those_of_the_authors() {
        assert_eq!(spliced(2), vec![0.0625, 0.003_906_25]);
        assert_eq!(spliced(6), vec![0.25, 0.0625, 0.015_625, 0.003_906_25, 0.5, 0.125]);
        let twelve = spliced(12);
        let expected = [0.5f64.sqrt(), 0.353_553, 0.176_777, 0.088_388_3];
        for (slope, expected) in twelve[8..].iter().zip(expected) {
            assert!((slope - expected).abs() < 1e-6, "{twelve:?}");
        }
    }

    proptest! {
        #[test]
        fn there_is_one_slope_per_head_between_zero_and_one(heads in 1usize..200) {
            for slopes in [spliced(heads), geometric(heads)] {
                prop_assert_eq!(slopes.len(), heads);
                prop_assert!(slopes.iter().all(|s| *s > 0.0 && *s < 1.0));
            }
        }

        #[test]
        fn the_two_rules_agree_exactly_at_powers_of_two(heads in 1usize..200) {
            prop_assert_eq!(spliced(heads) == geometric(heads), heads.is_power_of_two());
        }
    }
}

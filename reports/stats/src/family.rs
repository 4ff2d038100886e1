//! Families of comparisons: choice of the test, bound of the p-value, Holm's correction.

use serde::Serialize;

use super::lottery::minimum_p_value;
use super::paired::Paired;
use super::sign_flip::least_p;

/// Accepted share of families with a false "separable": 5%.
pub const LEVEL: f64 = 0.05;

/// Smallest number of seeds at which encodings can be called separable.
///
/// If each seed of two encodings solves the task with probability q, they differ in the same direction in all n seeds
/// with probability `2 (q (1 - q))^n <= 2^(1 - 2n)`: 1 in 8 for two seeds, 1 in 32 for three. Two differences also
/// give almost no information about their own spread.
pub const LEAST_SEEDS: u32 = 3;

/// Test whose p-value decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// No test: fewer than [`LEAST_SEEDS`] seeds.
    TooFewSeeds,
    /// Two-sided sign-flip permutation test.
    SignFlip,
    /// Two-sided paired t test with a p-value of at least that of [`super::lottery()`].
    PairedT,
}

impl Test {
    /// Returns the name of the test in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::TooFewSeeds => "none",
            Self::SignFlip => "permutation",
            Self::PairedT => "paired t",
        }
    }
}

/// Side of a comparison that is significantly better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// The first side is significantly better. No side is better at or below chance.
    A,
    /// The second side is significantly better.
    B,
    /// No significant difference; this does not mean that the sides are equal.
    NotSeparable,
}

/// A paired comparison with its test and verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Statistics of the paired differences.
    pub paired: Paired,
    /// Test whose p-value decided.
    pub test: Test,
    /// p-value of the test; `None` with too few seeds.
    pub p: Option<f64>,
    /// p-value after Holm's correction over the family.
    pub p_holm: Option<f64>,
    /// Number of comparisons in the family of Holm's correction.
    pub family: u32,
    /// Whether the difference is significant: `p_holm <= LEVEL`.
    pub separable: bool,
}

impl Comparison {
    /// Returns the side that is better, where differences are gains of the first.
    pub fn better(&self) -> Better {
        match (self.separable, self.paired.mean_difference > 0.0) {
            (false, _) => Better::NotSeparable,
            (true, true) => Better::A,
            (true, false) => Better::B,
        }
    }

    /// Reports whether the p-value before the correction is the bound of [`super::lottery()`] and not that of the t test.
    pub fn is_bound(&self) -> bool {
        self.test == Test::PairedT && self.p.is_some_and(|p| p <= self.paired.p_lottery)
    }
}

/// Tests a family of comparisons.
///
/// Which test decides depends on the numbers of seeds and comparisons, never on the differences: the
/// sign-flip test where it could reach [`LEVEL`] after Holm's correction, `2^(1 - n) * family <= LEVEL`,
/// because it assumes nothing about the distribution; else the paired t test. The p-value of the t test is never
/// below that of a [`super::lottery()`], and so never below [`minimum_p_value`]. Where the error of the questions is known, the p-value of the sign-flip test is at least
/// that of the t test that has both sources of variance: flipping signs knows nothing of other questions.
pub fn decide(family: &[Paired]) -> Vec<Comparison> {
    decide_among(family, 0)
}

/// [`decide`] for a family of which `planned` comparisons were defined in advance: those that cannot be tested yet count
/// with a p-value of 1, so that the correction does not depend on how much has been computed.
pub fn decide_among(family: &[Paired], planned: usize) -> Vec<Comparison> {
    let tests = family.iter().filter(|c| c.n >= LEAST_SEEDS).count();
    let testable = tests.max(planned) as u32;
    let raw: Vec<(Test, Option<f64>)> = family.iter().map(|c| choose(c, testable)).collect();
    let mut tested: Vec<f64> = raw.iter().filter_map(|(_, p)| *p).collect();
    tested.extend(std::iter::repeat_n(1.0, planned.saturating_sub(tests)));
    let mut corrected = holm(&tested).into_iter();
    family
        .iter()
        .zip(raw)
        .map(|(paired, (test, p))| {
            let p_holm = p.and_then(|_| corrected.next());
            let separable = p_holm.is_some_and(|p| p <= LEVEL);
            Comparison { paired: *paired, test, p, p_holm, family: testable, separable }
        })
        .collect()
}

fn choose(c: &Paired, family: u32) -> (Test, Option<f64>) {
    if c.n < LEAST_SEEDS {
        return (Test::TooFewSeeds, None);
    }
    if least_p(c.n) * f64::from(family) <= LEVEL {
        let questions = c.question_error.and(c.p_t).unwrap_or(0.0);
        return (Test::SignFlip, Some(c.p_sign_flip.max(questions)));
    }
    (Test::PairedT, c.p_t.map(|p| p.max(c.p_lottery)))
}

/// Smallest number of seeds with which a family of so many comparisons can have a significant one: at least
/// [`LEAST_SEEDS`], and `2^(1 - 2n) * family <= LEVEL`.
///
/// ```
/// # use stats::seeds_needed;
/// // 2, 3, 4, 6 and 8 encodings, all pairs.
/// assert_eq!([1, 3, 6, 15, 28].map(seeds_needed), [3, 4, 4, 5, 6]);
/// ```
pub fn seeds_needed(family: u32) -> u32 {
    let carries = |n: &u32| minimum_p_value(*n) * f64::from(family) <= LEVEL;
    (LEAST_SEEDS..u32::BITS).find(carries).unwrap_or(u32::BITS)
}

/// Applies Holm's step-down correction, which keeps the probability of any false rejection below the level for any
/// dependence between the tests. The result is in the order of `p`.
///
/// The i-th smallest (from 0) of m is multiplied by m - i, never falls below the one before it, and
/// is at most 1.
///
/// ```
/// # use stats::holm;
/// assert_eq!(holm(&[0.5, 0.0625, 0.25]), [0.5, 0.1875, 0.5]);
/// ```
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![1.0; p.len()];
    let mut least: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        least = least.max((p[index] * (p.len() - rank) as f64).min(1.0));
        corrected[index] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QuestionError, paired};

    fn of(differences: &[f64]) -> Paired {
        let a: Vec<(u64, f64)> = (0..).zip(differences.iter().copied()).collect();
        let b: Vec<(u64, f64)> = a.iter().map(|(seed, _)| (*seed, 0.0)).collect();
        paired(&a, &b).unwrap()
    }

    fn only(c: Paired) -> Comparison {
        decide(&[c])[0]
    }

    #[test]
    fn the_test_is_chosen_by_seeds_and_comparisons() {
        let (five, six) = (of(&[0.1, 0.2, 0.3, 0.1, 0.2]), of(&[0.1, 0.2, 0.3, 0.1, 0.2, 0.1]));
        assert_eq!(only(five).test, Test::PairedT, "5 seeds cannot reach 5%");
        assert_eq!(only(six).test, Test::SignFlip);
        assert_eq!(only(six).p, Some(0.03125));
        assert_eq!(decide(&[six, six])[0].test, Test::PairedT, "nor 6 twice");
    }

    #[test]
    fn two_seeds_are_never_separable_and_do_not_count_in_the_family() {
        let two = of(&[0.9, 0.9]);
        assert_eq!(
            (only(two).test, only(two).p, only(two).separable),
            (Test::TooFewSeeds, None, false)
        );
        let three = of(&[0.9, 0.91, 0.92]);
        let both = decide(&[two, three]);
        assert_eq!((both[1].family, both[1].separable), (1, true));
    }

    #[test]
    fn planned_comparisons_without_a_test_count_in_the_family() {
        let (two, three) = (of(&[0.9, 0.9]), of(&[0.9, 0.91, 0.92]));
        let eight = of(&[0.1, 0.2, 0.3, 0.1, 0.2, 0.1, 0.2, 0.3]);
        let found = decide_among(&[two, three, eight], 3);
        assert_eq!(found.iter().map(|c| c.family).collect::<Vec<_>>(), [3; 3]);
        assert_eq!((found[0].p_holm, found[1].separable), (None, false));
        assert_eq!(found[2].p_holm, Some(3.0 / 128.0));
        assert_eq!(decide_among(&[three], 1), decide(&[three]));
    }

    #[test]
    fn one_difference_may_be_clear_and_one_of_many_not() {
        // t = 6 at 2 degrees: p = 0.0267, below the least that 3 seeds allow.
        let c = of(&[0.4, 0.6, 0.8]);
        assert!(only(c).separable);
        let with_others = decide(&[c, of(&[0.1, -0.1, 0.2]), of(&[0.0, 0.1, -0.1])]);
        assert!(!with_others[0].separable && with_others[0].family == 3);
        assert!((with_others[0].p_holm.unwrap() - 3.0 * with_others[0].p.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn an_interval_across_zero_is_not_separable_and_a_worse_a_can_be() {
        assert!(!only(of(&[0.4, 0.05, -0.1])).separable);
        let worse = only(of(&[-0.9, -0.91, -0.89]));
        assert!(worse.separable && worse.paired.mean_difference < 0.0);
    }

    #[test]
    fn the_number_of_seeds_bounds_the_p_value() {
        let c = of(&[1.0, 0.99, 1.0]);
        assert!(c.p_t.unwrap() < 1e-4);
        assert_eq!((only(c).p, only(c).separable), (Some(0.03125), true));
        assert!(!decide(&[c, c])[0].separable, "three seeds carry one comparison and not two");
        assert_eq!((seeds_needed(1), seeds_needed(2), seeds_needed(0)), (3, 4, 3));
    }

    #[test]
    fn a_difference_on_one_question_is_not_separable_however_many_seeds_repeat_it() {
        let same = of(&[0.0025; 8]);
        assert!(only(same).separable, "without the questions: the same in eight seeds");
        // One question of 400 differs, in every seed: mean 0.0025, standard error 0.0025.
        let questions = QuestionError { variance: 0.0025 * 0.0025, df: 399.0 };
        let c = only(same.with_questions(questions));
        assert!(c.test == Test::SignFlip && c.p.unwrap() > 0.3 && !c.separable, "{c:?}");
    }

    #[test]
    fn holm_keeps_the_order_and_its_ends() {
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.04]), [0.04]);
        assert_eq!(holm(&[0.01, 0.9, 0.01]), [0.03, 0.9, 0.03]);
    }
}

//! "Is A better than B?": pairs two sides by seed, and answers a family of such questions.
//!
//! Ranks, ablations, planned questions, claims of papers, comparisons of two encodings and the nightly gate ask here, so
//! that pairing, direction, correction and chance are decided once.

use records::Metric;
use stats::{Comparison, Paired, QuestionError, decide_among, paired};

/// One side of a contrast.
#[derive(Debug, Clone, Copy)]
pub struct ContrastSide<'a> {
    /// Value of each seed, on the scale of the metric.
    pub by_seed: &'a [(u64, f64)],
    /// Whether the side is above chance; `None` if the chance is unknown.
    pub above_chance: Option<bool>,
}

/// Two sides with the same evaluations: two encodings, or two programs that trained one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    gain: Paired,
    a_above_chance: Option<bool>,
    b_above_chance: Option<bool>,
}

impl Contrast {
    /// Pairs the sides by seed, with the error of their difference due to the questions. `None` without a seed in common, or
    /// with a value that is not finite.
    pub fn of(
        metric: Metric,
        a: &ContrastSide<'_>,
        b: &ContrastSide<'_>,
        questions: Option<QuestionError>,
    ) -> Option<Self> {
        let (greater, less) = if metric.higher_is_better() { (a, b) } else { (b, a) };
        Some(Self {
            gain: paired(greater.by_seed, less.by_seed)?.with_questions(questions),
            a_above_chance: a.above_chance,
            b_above_chance: b.above_chance,
        })
    }

    /// Gains of the first side over the second, positive where the first is better.
    pub fn gain(&self) -> &Paired {
        &self.gain
    }
}

/// Judges contrasts as one family, in which `planned` comparisons were defined in advance (0: none). The results are those of
/// the gains; one is separable if the difference is significant and the better side is above chance.
pub fn judge(family: &[Contrast], planned: usize) -> Vec<Comparison> {
    let gains: Vec<Paired> = family.iter().map(|contrast| contrast.gain).collect();
    let decided = decide_among(&gains, planned).into_iter().zip(family);
    decided
        .map(|(comparison, contrast)| {
            let is_gain = comparison.paired.mean_difference > 0.0;
            let above_chance =
                if is_gain { contrast.a_above_chance } else { contrast.b_above_chance };
            let separable = comparison.separable && above_chance != Some(false);
            Comparison { separable, ..comparison }
        })
        .collect()
}

/// Returns a comparison of gains with the difference on the scale of the metric: first minus second.
pub fn on_scale(metric: Metric, comparison: &Comparison) -> Comparison {
    let paired = comparison.paired;
    let paired = if metric.higher_is_better() { paired } else { paired.reversed() };
    Comparison { paired, ..*comparison }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::Better;

    #[test]
    fn the_better_side_is_decided_by_the_metric_and_must_be_above_chance() {
        let values = |from: f64| -> Vec<(u64, f64)> {
            (0..6).map(|seed| (seed, from + 0.001 * seed as f64)).collect()
        };
        let (high, low) = (values(0.9), values(0.4));
        let judged = |metric, high_above, low_above| {
            let high = ContrastSide { by_seed: &high, above_chance: high_above };
            let low = ContrastSide { by_seed: &low, above_chance: low_above };
            let contrast = Contrast::of(metric, &high, &low, None).unwrap();
            let both = [contrast, Contrast::of(metric, &low, &high, None).unwrap()];
            both.map(|contrast| judge(&[contrast], 0)[0].better())
        };
        assert_eq!(judged(Metric::ExactMatch, None, None), [Better::A, Better::B]);
        assert_eq!(judged(Metric::Perplexity, None, None), [Better::B, Better::A]);
        // The chance of the worse side does not matter.
        let one = judged(Metric::ExactMatch, Some(true), Some(false));
        assert_eq!(one, [Better::A, Better::B]);
        let none = judged(Metric::ExactMatch, Some(false), Some(true));
        assert_eq!(none, [Better::NotSeparable; 2]);
    }

    #[test]
    fn differences_on_the_scale_of_the_metric_are_first_minus_second() {
        let values = |from: f64| -> Vec<(u64, f64)> {
            (0..6).map(|seed| (seed, from + 0.01 * (seed * seed) as f64)).collect()
        };
        let (a, b) =
            (values(1.5), vec![(0, 1.2), (1, 1.1), (2, 1.3), (3, 1.2), (4, 1.0), (5, 1.1)]);
        let side = |by_seed| ContrastSide { by_seed, above_chance: None };
        for metric in [Metric::ExactMatch, Metric::Perplexity] {
            let contrast = Contrast::of(metric, &side(&a), &side(&b), None).unwrap();
            let comparison = on_scale(metric, &judge(&[contrast], 0)[0]);
            assert_eq!(comparison.paired, paired(&a, &b).unwrap());
        }
    }
}

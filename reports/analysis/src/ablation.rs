//! Ablations: changes of a base encoding, each compared with the base by differences paired by seed.
//!
//! The base is named in advance, so Holm's correction runs over the changes only and not over all pairs. An ablation
//! therefore has more statistical power than a ranking of the same number of encodings.

use super::contrast::{Contrast, judge, on_scale};
use super::ranking::Ranking;
use records::Metric;
use records::settings::Region;
use stats::{Better, Comparison, Estimate};

/// Changes of a base encoding in one region of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Ablation {
    /// Name of the base encoding.
    pub base: String,
    /// Display name of the encoding.
    pub base_display: String,
    /// Estimate of its metric over seeds.
    pub base_estimate: Option<Estimate>,
    /// Region of the evaluations.
    pub region: Region,
    /// Metric that is compared.
    pub metric: Metric,
    /// Changes, one for each other encoding, sorted by name.
    pub changes: Vec<Change>,
}

/// An encoding compared with the base.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Name of the encoding.
    pub encoding: String,
    /// Display name of the encoding.
    pub display: String,
    /// Estimate of its metric over seeds.
    pub estimate: Option<Estimate>,
    /// Change minus base in the metric's own scale (nll for perplexity); `None` if the two have no seed in common or
    /// one of them lacks evaluations.
    pub comparison: Option<Comparison>,
    /// Effect of the change.
    pub effect: Effect,
}

/// Effect of a change on the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Significantly better than the base.
    Better,
    /// Significantly worse than the base.
    Worse,
    /// No significant difference from the base with this many seeds.
    NotSeparable(u32),
    /// Evaluations or common seeds are missing.
    NotComparable,
}

impl Effect {
    /// Classifies the comparison of a change with the base.
    fn of(comparison: Option<Comparison>) -> Self {
        let Some(comparison) = comparison else { return Self::NotComparable };
        match comparison.better() {
            Better::A => Self::Better,
            Better::B => Self::Worse,
            Better::NotSeparable => Self::NotSeparable(comparison.paired.n),
        }
    }
}

impl Ablation {
    /// Compares every other encoding of `ranking` with the one named `base`; `None` if there is no such encoding.
    pub fn of(ranking: &Ranking, base: &str) -> Option<Self> {
        let base = ranking.results.iter().find(|s| s.encoding == base)?;
        let others = || ranking.results.iter().filter(|s| s.encoding != base.encoding);
        let contrasts: Vec<Option<Contrast>> =
            others().map(|s| ranking.contrast(&s.encoding, &base.encoding)).collect();
        let family: Vec<Contrast> = contrasts.iter().copied().flatten().collect();
        let mut judged = judge(&family, 0).into_iter();
        let changes = others()
            .zip(contrasts)
            .map(|(s, contrast)| {
                let comparison = contrast.and_then(|_| judged.next());
                Change {
                    encoding: s.encoding.clone(),
                    display: s.display.clone(),
                    estimate: s.estimate,
                    comparison: comparison.map(|gains| on_scale(ranking.metric, &gains)),
                    effect: Effect::of(comparison),
                }
            })
            .collect();
        Some(Self {
            base: base.encoding.clone(),
            base_display: base.display.clone(),
            base_estimate: base.estimate,
            region: ranking.region,
            metric: ranking.metric,
            changes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluated::SeedRun;
    use crate::frame::Frames;
    use crate::selection::Selection;
    use records::testkit::TestCell;
    use records::{Answers, Outcomes, RunRecord};
    use std::collections::BTreeMap;

    fn ablation(records: &[RunRecord], base: &str, metric: Metric) -> Option<Ablation> {
        let frames = Frames::of(records).unwrap();
        let runs = SeedRun::all(&Selection::counted(&frames).unwrap()).unwrap();
        let ranking = Ranking::new(&runs, &BTreeMap::new(), Region::Both, metric);
        Ablation::of(&ranking, base)
    }

    fn cells(encoding: &str, values: &[f64]) -> Vec<RunRecord> {
        (0..)
            .zip(values)
            .map(|(seed, value)| TestCell::new("w", encoding, seed).beyond(*value).record())
            .collect()
    }

    #[test]
    fn each_change_is_compared_with_the_base_and_not_with_the_best() {
        let records = [
            cells("cope", &[0.80, 0.82, 0.84, 0.82]),
            cells("cope(gates=none)", &[0.40, 0.43, 0.44, 0.42]),
            cells("cope(wide)", &[0.81, 0.80, 0.86, 0.82]),
            cells("rope", &[0.95, 0.96, 0.98, 0.97]),
        ]
        .concat();
        let found = ablation(&records, "cope", Metric::ExactMatch).unwrap();
        let effects: Vec<_> = found.changes.iter().map(|c| (&*c.encoding, c.effect)).collect();
        assert_eq!(
            effects,
            [
                ("cope(gates=none)", Effect::Worse),
                ("cope(wide)", Effect::NotSeparable(4)),
                ("rope", Effect::Better)
            ]
        );
        let worse = found.changes[0].comparison.unwrap();
        assert_eq!(worse.family, 3, "three changes, not six pairs");
        assert!((worse.paired.mean_difference + 0.3975).abs() < 1e-6);
    }

    #[test]
    fn less_perplexity_is_better() {
        let cell = |encoding, seed, nll| TestCell::new("t", encoding, seed).text(1.4, nll).record();
        let records: Vec<RunRecord> = (0..3)
            .flat_map(|seed| {
                let noise = 0.01 * seed as f64;
                [cell("cope", seed, 1.5 + noise), cell("rope", seed, 1.7 + 2.0 * noise)]
            })
            .collect();
        let found = ablation(&records, "rope", Metric::Perplexity).unwrap();
        assert_eq!(found.changes[0].effect, Effect::Better);
        let found = ablation(&records, "cope", Metric::Perplexity).unwrap();
        assert_eq!(found.changes[0].effect, Effect::Worse);
    }

    #[test]
    fn differences_are_those_of_the_ranking_with_the_error_of_the_questions() {
        let answered = |encoding, seed, right: u64| {
            let answers: Vec<bool> = (0..20).map(|question| question < right).collect();
            let outcomes =
                Outcomes { questions: "q".into(), answers: Answers::ExactMatch(answers) };
            TestCell::new("w", encoding, seed)
                .exact(right as f64 / 20.0)
                .change(|r| r.evals.iter_mut().for_each(|e| e.outcomes = Some(outcomes.clone())))
                .record()
        };
        let records: Vec<RunRecord> =
            (0..5).flat_map(|seed| [answered("a", seed, 14), answered("b", seed, 12)]).collect();
        let found = ablation(&records, "a", Metric::ExactMatch).unwrap();
        let comparison = found.changes[0].comparison.unwrap();
        assert!((comparison.paired.mean_difference + 0.1).abs() < 1e-9);
        assert!(comparison.paired.question_error.is_some());
        // Five equal seeds, but two of twenty questions.
        assert_eq!(found.changes[0].effect, Effect::NotSeparable(5));
    }

    #[test]
    fn what_lacks_evaluations_is_not_compared_and_an_unknown_base_has_no_ablation() {
        let records = [
            cells("rope", &[0.9, 0.9, 0.9]),
            vec![TestCell::new("w", "learned", 0).limited_to(64).record()],
        ]
        .concat();
        let found = ablation(&records, "rope", Metric::ExactMatch).unwrap();
        assert_eq!(found.changes[0].effect, Effect::NotComparable);
        assert_eq!(ablation(&records, "alibi", Metric::ExactMatch), None);
    }
}

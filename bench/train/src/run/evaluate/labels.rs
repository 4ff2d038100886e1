//! Labels of the questions of an evaluation that lie outside of the training distribution.

use records::QuestionMarks;
use tasks::{EvaluatedSplit, Headline, Sample};

use super::outcomes::chance;

/// Labels of the questions of one evaluation.
#[derive(Default)]
pub(super) struct Labels {
    /// Marks of the unseen questions; `None` if all questions are alike.
    pub(super) marks: Option<QuestionMarks>,
    /// Exact match of guessing the unseen questions; `None` if unknown, or if all questions are alike.
    pub(super) chance: Option<f64>,
    /// Share of the unseen questions whose answers occur in training; `None` if all do.
    pub(super) ceiling: Option<f64>,
}

impl Labels {
    /// Labels the samples of an evaluation of a task that is ranked by `headline`.
    pub(super) fn of(
        evaluation: &EvaluatedSplit<'_>,
        headline: Headline,
        samples: &[Sample],
    ) -> Self {
        if evaluation.in_distribution() {
            return Self::default();
        }
        let marks =
            QuestionMarks(samples.iter().map(|sample| evaluation.is_unseen(sample)).collect());
        let unseen: Vec<Sample> = samples
            .iter()
            .zip(&marks.0)
            .filter(|(_, is_unseen)| **is_unseen)
            .map(|(sample, _)| sample.clone())
            .collect();
        let ranked = headline == Headline::ExactMatch;
        let ceiling = if ranked { evaluation.ceiling(unseen.iter()) } else { None };
        let is_mixed = unseen.len() < samples.len();
        Self {
            chance: if is_mixed { chance(headline, &unseen) } else { None },
            ceiling,
            marks: is_mixed.then_some(marks),
        }
    }
}

#[cfg(test)]
mod tests {
    use tasks::TaskConfig;

    use super::*;

    #[test]
    fn trained_sizes_in_longer_evaluations_are_marked_and_guessed_apart() {
        let task = TaskConfig::from_id("counting").unwrap().build().unwrap();
        let labels = |split, len| {
            let samples = task.eval_set(split, len, 400, 0).unwrap();
            let evaluation = EvaluatedSplit::new(task.as_ref(), split, len, 48).unwrap();
            (Labels::of(&evaluation, Headline::ExactMatch, &samples), samples)
        };
        assert!(labels("in-distribution", 48).0.marks.is_none());
        assert!(labels("more-pass", 48).0.marks.is_none(), "all are of another split");
        let (Labels { marks, chance, ceiling }, samples) = labels("in-distribution", 96);
        let marks = marks.unwrap();
        for (sample, mark) in samples.iter().zip(&marks.0) {
            assert_eq!(*mark, sample.tokens.len() > 48);
        }
        assert!((280..340).contains(&marks.count()), "{}", marks.count());
        assert!(chance.unwrap() < 0.3 && ceiling.is_none(), "{chance:?}");
    }
}

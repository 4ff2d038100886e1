//! Labels of the questions of an evaluation that lie outside of the training distribution.

use std::collections::BTreeSet;

use records::store::{LabelledEvaluation, LabelledQuestions};
use records::{EvalPoint, QuestionMarks, RunRecord};
use tasks::{EvaluatedSplit, Headline, Sample, Task, TaskConfig, TaskError};

use super::outcomes::{chance, digest};

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

/// Labels of the evaluations of older records, from questions that are drawn again.
#[derive(Debug, Default)]
pub struct Relabelled {
    /// Labels of evaluations whose questions are not all alike or cannot all be answered.
    pub labels: LabelledQuestions,
    /// Evaluations whose questions today's generator does not draw, as `counting version 1, in-distribution at 96`.
    pub changed: BTreeSet<String>,
}

impl Relabelled {
    /// Draws the questions of records of schema 4 and before again and labels them. Texts are left out: their samples are
    /// as long as their evaluations say.
    ///
    /// # Errors
    /// If settings that a record has are refused by their task today.
    pub fn of(records: &[RunRecord]) -> Result<Self, TaskError> {
        let mut done = BTreeSet::new();
        let mut all = Self::default();
        for record in records.iter().filter(|record| record.schema <= 4) {
            let config = serde_json::from_value::<TaskConfig>(record.task.config.clone());
            let Ok(config) = config else { continue };
            if config.meta().takes_path {
                continue;
            }
            let task = config.build()?;
            for eval in &record.evals {
                let Some(outcomes) = &eval.outcomes else { continue };
                if done.insert((outcomes.questions.clone(), record.train_len)) {
                    all.add(record, eval, task.as_ref())?;
                }
            }
        }
        let place = |label: &LabelledEvaluation| {
            (label.task.clone(), label.train_len, label.split.clone(), label.len)
        };
        all.labels.evaluations.sort_by_key(|label| (place(label), label.questions.clone()));
        Ok(all)
    }

    fn add(
        &mut self,
        record: &RunRecord,
        eval: &EvalPoint,
        task: &dyn Task,
    ) -> Result<(), TaskError> {
        let (len, train_len) = (eval.len as usize, record.train_len as usize);
        let seed = record.config.pointer("/eval/seed").and_then(serde_json::Value::as_u64);
        let samples = task.eval_set(&eval.split, len, eval.samples as usize, seed.unwrap_or(0))?;
        let questions = digest(&samples);
        if eval.outcomes.as_ref().is_none_or(|outcomes| outcomes.questions != questions) {
            let (task, version) = (&record.task.id, record.task.version);
            self.changed.insert(format!("{task} version {version}, {} at {len}", eval.split));
            return Ok(());
        }
        let evaluation = EvaluatedSplit::new(task, &eval.split, len, train_len)?;
        let Labels { marks, chance, ceiling } =
            Labels::of(&evaluation, task.meta().headline, &samples);
        if marks.is_some() || ceiling.is_some() {
            self.labels.evaluations.push(LabelledEvaluation {
                task: record.task.id.clone(),
                split: eval.split.clone(),
                len: eval.len,
                train_len: record.train_len,
                questions,
                unseen: marks,
                chance: chance.map(rounded),
                ceiling: ceiling.map(rounded),
            });
        }
        Ok(())
    }
}

/// Rounds a share to nine decimals, which come back from JSON as they were.
fn rounded(share: f64) -> f64 {
    (share * 1e9).round() / 1e9
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

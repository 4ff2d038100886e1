//! Answers of one encoding to the questions of several evaluations, and the error that comes from the questions.

use std::collections::BTreeMap;

use super::aggregate::Aggregate;
use super::evaluated::{Evaluated, SeedRun};
use records::{Answers, Metric};
use stats::QuestionError;

/// Answers by seed, evaluation and question.
#[derive(Debug)]
pub struct AnswerTable {
    /// Hash of the questions of each evaluation.
    questions: Vec<String>,
    /// Answers of each seed, by evaluation.
    seeds: BTreeMap<u64, Vec<Vec<f64>>>,
    shares: bool,
}

impl AnswerTable {
    /// Collects the answers of the evaluations of each seed, which must be the same evaluations in the same order.
    /// `None` unless every seed has answers of the kind of `metric` to the same questions.
    pub fn of(seeds: &[(u64, Vec<&Evaluated>)], metric: Metric) -> Option<Self> {
        let mut table = Self {
            questions: Vec::new(),
            seeds: BTreeMap::new(),
            shares: metric == Metric::ExactMatch,
        };
        for (index, (seed, evals)) in seeds.iter().enumerate() {
            let mut own = Vec::with_capacity(evals.len());
            for (place, eval) in evals.iter().enumerate() {
                let outcomes = eval.outcomes.as_ref()?;
                match (&outcomes.answers, metric) {
                    (Answers::ExactMatch(_), Metric::ExactMatch)
                    | (Answers::Nll(_), Metric::Perplexity) => {}
                    _ => return None,
                }
                if index == 0 {
                    table.questions.push(outcomes.questions.clone());
                } else if table.questions.get(place) != Some(&outcomes.questions) {
                    return None;
                }
                own.push(outcomes.answers.values());
            }
            if own.len() != table.questions.len() {
                return None;
            }
            table.seeds.insert(*seed, own);
        }
        Some(table)
    }

    /// Returns the error of the mean over seeds, evaluations and questions that is due to the questions.
    pub fn error(&self) -> Option<QuestionError> {
        self.over(&self.seeds.keys().copied().collect::<Vec<_>>(), |seed, place| {
            self.seeds[&seed][place].clone()
        })
    }

    /// Returns the error of the mean difference from `other` that is due to the questions, over the seeds that both
    /// have; `None` if the questions differ.
    pub fn error_of_difference(&self, other: &Self) -> Option<QuestionError> {
        if self.questions != other.questions {
            return None;
        }
        let common = self.seeds.keys().filter(|seed| other.seeds.contains_key(seed));
        self.over(&common.copied().collect::<Vec<_>>(), |seed, place| {
            let (own, others) = (&self.seeds[&seed][place], &other.seeds[&seed][place]);
            own.iter().zip(others).map(|(a, b)| a - b).collect()
        })
    }

    fn over(
        &self,
        seeds: &[u64],
        answers: impl Fn(u64, usize) -> Vec<f64>,
    ) -> Option<QuestionError> {
        let places = 0..self.questions.len();
        let evaluations: Vec<Vec<Vec<f64>>> =
            places.map(|place| seeds.iter().map(|seed| answers(*seed, place)).collect()).collect();
        QuestionError::of(&evaluations, self.shares)
    }
}

/// Adds the error of the questions to the intervals of aggregated evaluations. `runs` are the aggregated runs with
/// their answers, sorted by encoding.
pub(super) fn widen(rows: &mut [Aggregate], runs: &[SeedRun]) {
    for runs in runs.chunk_by(|a, b| a.encoding == b.encoding) {
        if runs.iter().all(|run| run.evals.iter().all(|e| e.outcomes.is_none())) {
            continue;
        }
        for row in rows.iter_mut().filter(|row| row.encoding == runs[0].encoding) {
            let place = |e: &&Evaluated| e.split == row.split && e.len == row.len;
            let seeds: Vec<(u64, Vec<&Evaluated>)> = runs
                .iter()
                .map(|run| (run.seed, run.evals.iter().filter(place).collect::<Vec<_>>()))
                // Seeds of older settings may lack the evaluation; the row does not count them either.
                .filter(|(_, evals)| !evals.is_empty())
                .collect();
            let error = |metric| AnswerTable::of(&seeds, metric).and_then(|table| table.error());
            row.exact_match = row.exact_match.with_questions(error(Metric::ExactMatch));
            row.nll = row.nll.with_questions(error(Metric::Perplexity));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::aggregate;
    use crate::frame::Frames;
    use crate::selection::Selection;
    use records::testkit::TestCell;
    use records::{Outcomes, RunRecord};

    fn cell(encoding: &str, seed: u64, questions: &str, right: &[bool]) -> RunRecord {
        let share = right.iter().filter(|right| **right).count() as f64 / right.len() as f64;
        let cell = TestCell::new("w", encoding, seed).exact(share);
        let answers =
            Outcomes { questions: questions.into(), answers: Answers::ExactMatch(right.to_vec()) };
        cell.change(|r| r.evals.iter_mut().for_each(|e| e.outcomes = Some(answers.clone())))
            .record()
    }

    fn table(records: &[RunRecord]) -> Option<AnswerTable> {
        let runs: Vec<SeedRun> = records.iter().map(SeedRun::of).collect();
        let seeds: Vec<_> = runs.iter().map(|r| (r.seed, r.evals.iter().collect())).collect();
        AnswerTable::of(&seeds, Metric::ExactMatch)
    }

    const A: [bool; 4] = [true, true, true, false];
    const B: [bool; 4] = [true, true, false, false];

    #[test]
    fn the_same_mistakes_in_all_seeds_are_an_error_of_the_questions() {
        let a: Vec<RunRecord> = (0..3).map(|seed| cell("a", seed, "q", &A)).collect();
        let b: Vec<RunRecord> = (1..4).map(|seed| cell("b", seed, "q", &B)).collect();
        let (a, b) = (table(&a).unwrap(), table(&b).unwrap());
        // 3 of 4: variance 1/4, over 4 questions and 2 evaluations of them.
        assert!((a.error().unwrap().variance - 0.25 / 8.0).abs() < 1e-12);
        // Differences 0, 0, 1, 0 have the same variance.
        assert!((a.error_of_difference(&b).unwrap().variance - 0.25 / 8.0).abs() < 1e-12);
    }

    #[test]
    fn other_questions_and_missing_answers_have_no_error() {
        let a: Vec<RunRecord> = (0..2).map(|seed| cell("a", seed, "q", &A)).collect();
        let b: Vec<RunRecord> = (0..2).map(|seed| cell("b", seed, "other", &B)).collect();
        let both = (table(&a).unwrap(), table(&b).unwrap());
        assert_eq!(both.0.error_of_difference(&both.1), None);
        assert!(table(&[a[0].clone(), b[1].clone()]).is_none(), "seeds with other questions");
        assert!(table(&[TestCell::new("w", "a", 0).record()]).is_none());
        let run = SeedRun::of(&a[0]);
        let seeds = [(0, run.evals.iter().collect())];
        assert!(AnswerTable::of(&seeds, Metric::TokenAccuracy).is_none());
    }

    #[test]
    fn rows_get_wider_where_answers_are_known() {
        let records: Vec<RunRecord> = (0..3).map(|seed| cell("a", seed, "q", &A)).collect();
        let frames = Frames::of(&records).unwrap();
        let counted = Selection::counted(&frames).unwrap();
        let mut rows = aggregate(&counted).unwrap();
        assert_eq!(rows[0].exact_match.ci95, Some((0.75, 0.75)));
        widen(&mut rows, &SeedRun::all(&counted).unwrap());
        let (low, high) = rows[0].exact_match.ci95.unwrap();
        // A standard error of 1/4 with 3 degrees of freedom: 3.182 of them each way.
        assert!((high - low - 2.0 * 3.182_446 * 0.25).abs() < 1e-5, "{low} {high}");
        assert_eq!(rows[0].nll.question_error, None);
    }

    #[test]
    fn seeds_without_an_evaluation_are_left_out_of_its_row() {
        let mut records: Vec<RunRecord> = (0..4).map(|seed| cell("a", seed, "q", &A)).collect();
        assert!(table(&records[..3]).is_some());
        // The settings of a suite had fewer evaluations when this seed was run.
        records[3].evals.pop();
        assert!(table(&records).is_none());
        let runs: Vec<SeedRun> = records.iter().map(SeedRun::of).collect();
        let frames = Frames::of(&records).unwrap();
        let mut rows = aggregate(&Selection::counted(&frames).unwrap()).unwrap();
        widen(&mut rows, &runs);
        assert!(rows.iter().all(|row| row.exact_match.question_error.is_some()));
    }
}

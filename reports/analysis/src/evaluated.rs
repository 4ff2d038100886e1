//! Evaluations of single seeds with their region and the chance of guessing.

use polars::prelude::*;

use super::selection::Selection;
use crate::frame::rows;
use records::settings::Region;
use records::{EvalPoint, Metric, Outcomes, RunRecord};

/// All evaluations of one seed of an encoding.
#[derive(Debug, Clone)]
pub struct SeedRun {
    /// Name of the encoding.
    pub encoding: String,
    /// Seed of initialisation and data.
    pub seed: u64,
    /// Evaluations in the order of the record.
    pub evals: Vec<Evaluated>,
}

/// One evaluation with its region and chance.
#[derive(Debug, Clone)]
pub struct Evaluated {
    /// Name of the split.
    pub split: String,
    /// Sequence length, in the unit of the task.
    pub len: u64,
    /// Whether split and length are those of training.
    pub in_distribution: bool,
    trained_split: Option<bool>,
    /// Position relative to training.
    pub region: Region,
    /// Exact match of guessing, from the record's evaluation or task. Records of schema 2 have it for the training
    /// split only; their evaluations of other splits use that of the same length.
    pub chance: Option<f64>,
    /// Exact match of the questions that count, 0 to 1.
    pub exact_match: f64,
    /// Token accuracy of these questions, 0 to 1.
    pub token_accuracy: f64,
    /// Negative log-likelihood of these questions, nats per scored token.
    pub nll: f64,
    /// Answers to these questions, if the record has them.
    pub outcomes: Option<Outcomes>,
}

impl Evaluated {
    /// Returns the value of a metric, on the scale on which it is averaged.
    pub fn value(&self, metric: Metric) -> f64 {
        metric.choose(self.exact_match, self.token_accuracy, self.nll)
    }
}

rows! {
    /// A cell whose evaluations are read.
    struct EvaluatedCell {
        cell: u32,
        encoding: String,
        seed: u64,
        train_len: u64,
        task_chance: Option<f64>,
    }
}

rows! {
    /// An evaluation of a cell.
    struct CellEvaluation {
        cell: u32,
        split: String,
        len: u64,
        in_distribution: bool,
        trained_split: Option<bool>,
        chance: Option<f64>,
        exact_match: f64,
        token_accuracy: f64,
        nll: f64,
        outcomes: Option<String>,
        unseen_samples: Option<u64>,
    }
}

impl SeedRun {
    /// Returns the runs of a selection, sorted by encoding and seed.
    ///
    /// # Errors
    /// If the query fails.
    pub(crate) fn all(counted: &Selection<'_>) -> PolarsResult<Vec<Self>> {
        let belongs = |eval: &CellEvaluation| eval.unseen_samples != Some(0);
        let evaluations = CellEvaluation::of(counted.evaluations())?.into_iter().filter(belongs);
        let evaluated = |own: CellEvaluation| {
            let outcomes = own.outcomes.as_deref().map(serde_json::from_str).transpose();
            let bad =
                |error: serde_json::Error| polars_err!(ComputeError: "column `outcomes`: {error}");
            let evaluated = Evaluated {
                split: own.split,
                len: own.len,
                in_distribution: own.in_distribution,
                trained_split: own.trained_split,
                region: Region::Inside,
                chance: own.chance,
                exact_match: own.exact_match,
                token_accuracy: own.token_accuracy,
                nll: own.nll,
                outcomes: outcomes.map_err(bad)?,
            };
            PolarsResult::Ok((own.cell, evaluated))
        };
        let mut evals =
            evaluations.map(evaluated).collect::<PolarsResult<Vec<_>>>()?.into_iter().peekable();
        let run = |cell: EvaluatedCell| {
            let own = std::iter::from_fn(|| evals.next_if(|(number, _)| *number == cell.cell));
            let evals = own.map(|(_, eval)| eval).collect();
            let run = Self { encoding: cell.encoding, seed: cell.seed, evals };
            run.placed(cell.train_len, cell.task_chance)
        };
        Ok(EvaluatedCell::of(counted.cells())?.into_iter().map(run).collect())
    }

    /// Returns the evaluations of a record.
    pub fn of(record: &RunRecord) -> Self {
        let evaluated = |e: &EvalPoint| {
            let unseen = e.partly_unseen();
            let value = |whole, unseen: Option<Option<f64>>| {
                unseen.map_or(whole, |value| value.unwrap_or(f64::NAN))
            };
            Evaluated {
                split: e.split.clone(),
                len: e.len,
                in_distribution: e.in_distribution,
                trained_split: e.trained_split,
                region: Region::Inside,
                chance: unseen.and_then(|unseen| unseen.chance).or(e.chance),
                exact_match: unseen.map_or(e.exact_match, |unseen| unseen.exact_match),
                token_accuracy: value(e.token_accuracy, unseen.map(|u| u.token_accuracy)),
                nll: value(e.nll, unseen.map(|u| u.nll)),
                outcomes: e.counted_outcomes(),
            }
        };
        let evals = record.evals.iter().filter(|e| !e.is_all_trained()).map(evaluated);
        let run = Self {
            encoding: record.encoding.name.clone(),
            seed: record.seed,
            evals: evals.collect(),
        };
        run.placed(record.train_len, record.task.chance)
    }

    /// Returns the evaluations outside of the training distribution with another log-likelihood, computed from their own and
    /// the mean of those in distribution; `None` without evaluations in distribution.
    pub fn outside(&self, nll: impl Fn(f64, f64) -> f64) -> Option<Self> {
        let inside = || self.evals.iter().filter(|eval| eval.region == Region::Inside);
        let count = inside().count();
        let mean = inside().map(|eval| eval.nll).sum::<f64>() / count as f64;
        let outside = self.evals.iter().filter(|eval| eval.region != Region::Inside);
        // Answers to other questions are no answers to this one.
        let change = |eval: &Evaluated| Evaluated {
            nll: nll(eval.nll, mean),
            outcomes: None,
            chance: None,
            ..eval.clone()
        };
        (count > 0).then(|| Self { evals: outside.map(change).collect(), ..self.clone() })
    }

    /// Keeps of each region outside of the training distribution the evaluations at its greatest length.
    #[must_use]
    pub fn at_longest(mut self) -> Self {
        let len = |region: Region| {
            self.evals.iter().filter(|eval| eval.region == region).map(|eval| eval.len).max()
        };
        let longest = Region::ALL.map(|region| (region, len(region)));
        self.evals.retain(|eval| {
            eval.region == Region::Inside || longest.contains(&(eval.region, Some(eval.len)))
        });
        self
    }

    /// Sets the region and the chance of each evaluation. Records of schema 2 do not name the training splits: these are
    /// the splits with an evaluation in distribution or with a known chance.
    fn placed(mut self, train_len: u64, task_chance: Option<f64>) -> Self {
        let all = &self.evals;
        let trained = |eval: &Evaluated| {
            let own = |other: &&Evaluated| other.split == eval.split;
            let known = |other: &Evaluated| other.in_distribution || other.chance.is_some();
            eval.trained_split.unwrap_or_else(|| all.iter().filter(own).any(known))
        };
        let region =
            |eval: &Evaluated| match (eval.in_distribution, eval.len > train_len, trained(eval)) {
                (true, ..) => Region::Inside,
                (false, true, true) => Region::Longer,
                (false, true, false) => Region::Both,
                (false, false, _) => Region::Shifted,
            };
        let chance = |eval: &Evaluated| {
            let same_len =
                || all.iter().filter(|other| other.len == eval.len).find_map(|e| e.chance);
            let stand_in = || if eval.trained_split.is_some() { None } else { same_len() };
            eval.chance.or(task_chance).or_else(stand_in)
        };
        let places: Vec<_> = all.iter().map(|eval| (region(eval), chance(eval))).collect();
        for (eval, place) in self.evals.iter_mut().zip(places) {
            (eval.region, eval.chance) = place;
        }
        self
    }
}

/// Returns the mean chance over evaluations; `None` without evaluations or if the chance of one is unknown.
pub fn mean_chance<'a>(evals: impl Iterator<Item = &'a Evaluated>) -> Option<f64> {
    let known: Option<Vec<f64>> = evals.map(|eval| eval.chance).collect();
    let known = known.filter(|known| !known.is_empty())?;
    Some(known.iter().sum::<f64>() / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use records::testkit::TestCell;

    #[test]
    fn regions_tell_longer_from_other_distributions() {
        let cell = TestCell::new("w", "rope", 0)
            .eval("in-distribution", false, 128, 0.9)
            .eval("sparse", false, 64, 0.8)
            .record();
        let regions = |cell: &RunRecord| -> Vec<Region> {
            SeedRun::of(cell).evals.iter().map(|e| e.region).collect()
        };
        let expected = [Region::Inside, Region::Both, Region::Longer, Region::Shifted];
        assert_eq!(regions(&cell), expected);
        let frames = Frames::of(std::slice::from_ref(&cell)).unwrap();
        let read = SeedRun::all(&Selection::counted(&frames).unwrap()).unwrap();
        assert_eq!(read[0].evals.iter().map(|e| e.region).collect::<Vec<_>>(), expected);
        // Fields of the record take precedence over values inferred from its evaluations.
        let mut said = cell;
        said.evals[1].trained_split = Some(true);
        assert_eq!(regions(&said)[1], Region::Longer);
    }

    #[test]
    fn chance_is_the_evaluations_or_the_tasks_or_that_of_the_same_length() {
        let mut cell = TestCell::new("w", "rope", 0).eval("sparse", false, 64, 0.8).record();
        cell.task.chance = None;
        cell.evals[0].chance = Some(0.25);
        let chances = |cell: &RunRecord| -> Vec<Option<f64>> {
            SeedRun::of(cell).evals.iter().map(|e| e.chance).collect()
        };
        assert_eq!(chances(&cell), [Some(0.25), None, Some(0.25)]);
        cell.evals[2].trained_split = Some(false);
        assert_eq!(chances(&cell)[2], None, "a record that would know says that it does not");
        cell.task.chance = Some(0.1);
        assert_eq!(chances(&cell)[1], Some(0.1));
        let run = SeedRun::of(&cell);
        assert!((mean_chance(run.evals.iter()).unwrap() - 0.15).abs() < 1e-12);
        assert_eq!(mean_chance([].iter()), None);
    }
}

//! Evaluations of single seeds with their region and the chance of guessing.

use polars::prelude::*;

use super::region::Region;
use super::selection::Selection;
use crate::frame::rows;
use crate::record::{Metric, Outcomes, RunRecord};

/// All evaluations of one seed of an encoding.
#[derive(Debug, Clone)]
pub(crate) struct SeedRun {
    pub(crate) encoding: String,
    pub(crate) seed: u64,
    pub(crate) evals: Vec<Evaluated>,
}

/// One evaluation.
#[derive(Debug, Clone)]
pub(crate) struct Evaluated {
    pub(crate) split: String,
    pub(crate) len: u64,
    pub(crate) region: Region,
    /// Exact match of guessing, from the record's evaluation or task. Records of schema 2 have it for the training
    /// split only; their evaluations of other splits use that of the same length.
    pub(crate) chance: Option<f64>,
    pub(crate) exact_match: f64,
    pub(crate) token_accuracy: f64,
    pub(crate) nll: f64,
    pub(crate) outcomes: Option<Outcomes>,
}

impl Evaluated {
    pub(crate) fn value(&self, metric: Metric) -> f64 {
        match metric {
            Metric::ExactMatch => self.exact_match,
            Metric::TokenAccuracy => self.token_accuracy,
            Metric::Perplexity => self.nll,
        }
    }
}

/// Facts about an evaluation that a record states.
struct Stated<'a> {
    split: &'a str,
    len: u64,
    in_distribution: bool,
    trained_split: Option<bool>,
    chance: Option<f64>,
}

/// Returns the region and the chance of each evaluation of a seed. Records of schema 2 do not name the training
/// splits: these are the splits with an evaluation in distribution or with a known chance.
fn places(
    train_len: u64,
    task_chance: Option<f64>,
    all: &[Stated<'_>],
) -> Vec<(Region, Option<f64>)> {
    let trained = |eval: &Stated<'_>| {
        let own = |other: &&Stated<'_>| other.split == eval.split;
        let known = |other: &Stated<'_>| other.in_distribution || other.chance.is_some();
        eval.trained_split.unwrap_or_else(|| all.iter().filter(own).any(known))
    };
    let region =
        |eval: &Stated<'_>| match (eval.in_distribution, eval.len > train_len, trained(eval)) {
            (true, ..) => Region::Inside,
            (false, true, true) => Region::Longer,
            (false, true, false) => Region::Both,
            (false, false, _) => Region::Shifted,
        };
    let chance = |eval: &Stated<'_>| {
        let same_len = || all.iter().filter(|other| other.len == eval.len).find_map(|e| e.chance);
        let stand_in = || if eval.trained_split.is_some() { None } else { same_len() };
        eval.chance.or(task_chance).or_else(stand_in)
    };
    all.iter().map(|eval| (region(eval), chance(eval))).collect()
}

rows! {
    /// Evaluations of a cell; the lists are empty for a cell without evaluations.
    struct CellEvaluations {
        encoding: String,
        seed: u64,
        train_len: u64,
        task_chance: Option<f64>,
        split: Vec<String>,
        len: Vec<u64>,
        in_distribution: Vec<bool>,
        trained_split: Vec<Option<bool>>,
        chance: Vec<Option<f64>>,
        exact_match: Vec<f64>,
        token_accuracy: Vec<f64>,
        nll: Vec<f64>,
        outcomes: Vec<Option<String>>,
    }
}

impl SeedRun {
    /// Returns the runs of a selection, sorted by encoding and seed.
    ///
    /// # Errors
    /// If the query fails.
    pub(crate) fn all(counted: &Selection<'_>) -> PolarsResult<Vec<Self>> {
        let columns = [
            "split",
            "len",
            "in_distribution",
            "trained_split",
            "chance",
            "exact_match",
            "token_accuracy",
            "nll",
            "outcomes",
        ];
        let evaluations = counted
            .rows(|frames| &frames.evaluations)
            .group_by_stable([col("cell")])
            .agg(columns.map(col));
        let cells = counted
            .cells()
            .select(["cell", "encoding", "seed", "train_len", "task_chance"].map(col));
        let args =
            JoinArgs { maintain_order: MaintainOrderJoin::Left, ..JoinArgs::new(JoinType::Left) };
        let joined = cells.join(evaluations, [col("cell")], [col("cell")], args);
        CellEvaluations::of(joined)?.into_iter().map(Self::of_cell).collect()
    }

    fn of_cell(cell: CellEvaluations) -> PolarsResult<Self> {
        let stated: Vec<Stated<'_>> = (0..cell.split.len())
            .map(|i| Stated {
                split: &cell.split[i],
                len: cell.len[i],
                in_distribution: cell.in_distribution[i],
                trained_split: cell.trained_split[i],
                chance: cell.chance[i],
            })
            .collect();
        let places = places(cell.train_len, cell.task_chance, &stated);
        let evals = places.into_iter().enumerate().map(|(i, (region, chance))| {
            let outcomes = cell.outcomes[i].as_deref().map(serde_json::from_str).transpose();
            let bad =
                |error: serde_json::Error| polars_err!(ComputeError: "column `outcomes`: {error}");
            Ok(Evaluated {
                split: cell.split[i].clone(),
                len: cell.len[i],
                region,
                chance,
                exact_match: cell.exact_match[i],
                token_accuracy: cell.token_accuracy[i],
                nll: cell.nll[i],
                outcomes: outcomes.map_err(bad)?,
            })
        });
        let evals = evals.collect::<PolarsResult<Vec<_>>>()?;
        Ok(Self { encoding: cell.encoding, seed: cell.seed, evals })
    }

    /// Returns the evaluations of a record.
    pub(crate) fn of(record: &RunRecord) -> Self {
        let all: Vec<Stated<'_>> = record
            .evals
            .iter()
            .map(|e| Stated {
                split: &e.split,
                len: e.len,
                in_distribution: e.in_distribution,
                trained_split: e.trained_split,
                chance: e.chance,
            })
            .collect();
        let places = places(record.train_len, record.task.chance, &all);
        let evals = record.evals.iter().zip(places).map(|(e, (region, chance))| Evaluated {
            split: e.split.clone(),
            len: e.len,
            region,
            chance,
            exact_match: e.exact_match,
            token_accuracy: e.token_accuracy,
            nll: e.nll,
            outcomes: e.outcomes.clone(),
        });
        Self { encoding: record.encoding.name.clone(), seed: record.seed, evals: evals.collect() }
    }
}

/// Returns the mean chance over evaluations; `None` without evaluations or if the chance of one is unknown.
pub(crate) fn mean_chance<'a>(evals: impl Iterator<Item = &'a Evaluated>) -> Option<f64> {
    let known: Option<Vec<f64>> = evals.map(|eval| eval.chance).collect();
    let known = known.filter(|known| !known.is_empty())?;
    Some(known.iter().sum::<f64>() / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use crate::testkit::{TestCell, counted};

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
        let read = SeedRun::all(&counted(&frames)).unwrap();
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

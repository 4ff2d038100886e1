//! Grid of learning rates: each cell runs once per rate, with the same rates for all encodings. Fresh seeds run at the
//! rates that were chosen.

use std::collections::{BTreeMap, BTreeSet};

use records::{GridPoint, RunRecord};

use super::Suite;
use crate::experiment::{Experiment, TrainConfig};

/// Setting that the grid varies, as a path into a cell's configuration.
pub const AXIS: &str = "train.optimizer.learning_rate";

/// Training settings for each rate, with the grid point; the given settings if there is no grid.
///
/// # Errors
/// Message, if a rate is not positive, is listed twice, or the optimizer's own rate is not among them.
pub(super) fn trainings(
    rates: &[f64],
    train: &TrainConfig,
) -> Result<Vec<(TrainConfig, Option<GridPoint>)>, String> {
    if rates.is_empty() {
        return Ok(vec![(train.clone(), None)]);
    }
    let own = train.optimizer.learning_rate;
    for (index, rate) in rates.iter().enumerate() {
        if !(rate.is_finite() && *rate > 0.0) {
            return Err(format!("{rate}, expected finite numbers above 0"));
        }
        if rates[..index].iter().any(|other| same(*other, *rate)) {
            return Err(format!("{rate} is listed twice; keep one"));
        }
    }
    if !rates.iter().any(|rate| same(*rate, own)) {
        return Err(format!(
            "{rates:?} does not contain {own}, the optimizer's learning rate, which reports show as \
             the default; add it, or set `optimizer = {{ learning_rate = … }}` under `[train]` to one of \
             them"
        ));
    }
    let point = |rate: f64| {
        let mut train = train.clone();
        train.optimizer.learning_rate = rate;
        let default = same(rate, own);
        (train, Some(GridPoint { axis: AXIS.to_owned(), value: rate, default, fresh: false }))
    };
    Ok(rates.iter().map(|rate| point(*rate)).collect())
}

/// Checks the fresh seeds of a workload.
///
/// # Errors
/// Message, if there is no grid, or if a seed is among those that choose the rates.
pub(super) fn check_fresh(fresh: &[u64], seeds: &[u64], rates: &[f64]) -> Result<(), String> {
    if !fresh.is_empty() && rates.is_empty() {
        return Err("given without `learning_rates`, but fresh seeds measure the best of these rates; add the rates, \
                    or move the seeds to `seeds`"
            .to_owned());
    }
    match fresh.iter().find(|seed| seeds.contains(seed)) {
        None => Ok(()),
        Some(seed) => Err(format!(
            "{seed} is both among `seeds`, which choose the rates, and among `fresh_seeds`, which measure the chosen \
             rates; use another number for one of them"
        )),
    }
}

impl Suite {
    /// Workloads and encodings of which a cell of the grid has no result, so that no rate is chosen.
    pub fn unchosen<'a>(&'a self, records: &[RunRecord]) -> BTreeSet<(&'a str, &'a str)> {
        let mut results = BTreeMap::<(&str, &str), usize>::new();
        for record in records.iter().filter(|record| record.is_finished()) {
            *results.entry((&record.workload, &record.encoding.name)).or_default() += 1;
        }
        let mut cells = BTreeMap::<(&str, &str), usize>::new();
        for cell in &self.cells {
            *cells.entry((&cell.workload, &cell.name)).or_default() += 1;
        }
        let lacks = |(group, count): &(_, usize)| results.get(group).copied() < Some(*count);
        cells.into_iter().filter(lacks).map(|(group, _)| group).collect()
    }

    /// Cells of the fresh seeds at the rate that the records of the other cells choose for each workload and encoding,
    /// without those of [`unchosen`](Self::unchosen) encodings.
    pub fn fresh_cells(
        &self,
        records: &[RunRecord],
        rates: &BTreeMap<(String, String), f64>,
    ) -> Vec<Experiment> {
        let unchosen = self.unchosen(records);
        let is_chosen = |cell: &&Experiment| {
            if unchosen.contains(&(cell.workload.as_str(), cell.name.as_str())) {
                return false;
            }
            let value = rates.get(&(cell.workload.clone(), cell.name.clone()));
            cell.grid.as_ref().zip(value).is_some_and(|(point, value)| same(point.value, *value))
        };
        self.fresh.iter().filter(is_chosen).cloned().collect()
    }
}

/// Whether two rates have the same bits.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits()
}

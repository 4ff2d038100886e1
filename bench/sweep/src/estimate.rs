//! Expected training times, from records, cost formulas and the speed of the device, without building any model.

use std::collections::BTreeMap;

use stats::median;

use super::SweepOptions;
use super::plan::SweepPlan;
use super::status::CellFile;

/// Assumed operations per second of a CPU core without records, that of a slow core.
pub const FLOPS_PER_SECOND: f64 = 2e10;

/// Assumed share of the evaluation in the time of a cell without a record like it.
pub const EVAL_SHARE: f64 = 0.1;

/// Measured work of a workload and encoding: a cell, or one of its training steps.
pub(crate) struct TimedWork<'a> {
    pub(crate) workload: &'a str,
    pub(crate) encoding: &'a str,
    pub(crate) seconds: f64,
    pub(crate) operations: f64,
}

/// Expected seconds of work: the median of the same workload and encoding, otherwise its operations at the median rate of
/// all measured work.
pub(crate) struct ExpectedSeconds {
    of_kind: BTreeMap<(String, String), f64>,
    rate: Option<f64>,
}

impl ExpectedSeconds {
    pub(crate) fn of<'a>(measured: impl Iterator<Item = TimedWork<'a>>) -> Self {
        let mut seconds = BTreeMap::<_, Vec<f64>>::new();
        let mut rates = Vec::new();
        for work in measured.filter(|work| work.seconds > 0.0) {
            let kind = (work.workload.to_owned(), work.encoding.to_owned());
            seconds.entry(kind).or_default().push(work.seconds);
            rates.push(work.operations / work.seconds);
        }
        let of_kind = seconds.into_iter().filter_map(|(kind, all)| Some((kind, median(&all)?)));
        Self { of_kind: of_kind.collect(), rate: median(&rates).filter(|rate| *rate > 0.0) }
    }

    /// Takes this rate, in operations per second, if nothing was measured.
    pub(crate) fn or_rate(self, rate: impl FnOnce() -> Option<f64>) -> Self {
        Self { rate: self.rate.or_else(rate), ..self }
    }

    /// Seconds of work of a kind; `None` if nothing like it was measured and its operations or a rate are unknown.
    pub(crate) fn seconds(
        &self,
        workload: &str,
        encoding: &str,
        operations: Option<f64>,
    ) -> Option<f64> {
        let kind = (workload.to_owned(), encoding.to_owned());
        self.of_kind.get(&kind).copied().or_else(|| Some(operations? / self.rate?))
    }
}

/// Expected seconds of training for each cell of a plan; 0 for those that this sweep does not run.
///
/// A cell of the same workload and encoding with a record takes the median step time of such records. Others take
/// their operations at the median rate of all records of the plan; without any, `rate` gives the operations per second
/// of the device.
pub fn training_seconds(
    plan: &SweepPlan,
    found: &[CellFile],
    options: &SweepOptions,
    rate: impl FnOnce() -> f64,
) -> Vec<f64> {
    let is_open =
        |(found, key): (&CellFile, &String)| !found.is_settled() && options.shard.has(key);
    // Nothing is measured for a sweep that has nothing to do.
    if !found.iter().zip(&plan.keys).any(is_open) {
        return vec![0.0; plan.cells.len()];
    }
    let steps = found.iter().filter_map(CellFile::kept).filter_map(|record| {
        Some(TimedWork {
            workload: &record.workload,
            encoding: &record.encoding.name,
            seconds: record.train.step_seconds_median?,
            operations: record.flops.train_step as f64,
        })
    });
    let step = ExpectedSeconds::of(steps).or_rate(|| Some(rate()));
    let cells = plan.cells.iter().zip(found.iter().zip(&plan.keys));
    cells
        .map(|(planned, pair)| {
            if !is_open(pair) {
                return 0.0;
            }
            let (cell, steps) = (&planned.cell, planned.cell.train.steps as f64);
            let operations = Some(planned.train_flops() as f64 / steps.max(1.0));
            steps * step.seconds(&cell.workload, &cell.name, operations).unwrap_or_default()
        })
        .collect()
}

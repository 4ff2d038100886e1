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
    let mut step_seconds = BTreeMap::<_, Vec<f64>>::new();
    let mut rates = Vec::new();
    for record in found.iter().filter_map(CellFile::kept) {
        let seconds = record.train.step_seconds_median.filter(|seconds| *seconds > 0.0);
        if let Some(seconds) = seconds {
            let kind = (record.workload.as_str(), record.encoding.name.as_str());
            step_seconds.entry(kind).or_default().push(seconds);
            rates.push(record.flops.train_step as f64 / seconds);
        }
    }
    let is_open =
        |(found, key): (&CellFile, &String)| !found.is_settled() && options.shard.has(key);
    // Nothing is measured for a sweep that has nothing to do.
    if !found.iter().zip(&plan.keys).any(is_open) {
        return vec![0.0; plan.cells.len()];
    }
    let rate = median(&rates).filter(|rate| *rate > 0.0).unwrap_or_else(rate);
    let cells = plan.cells.iter().zip(found).zip(&plan.keys);
    cells
        .map(|((planned, found), key)| {
            if found.is_settled() || !options.shard.has(key) {
                return 0.0;
            }
            let kind = (planned.cell.workload.as_str(), planned.cell.name.as_str());
            let known = step_seconds.get(&kind).and_then(|seconds| median(seconds));
            known.map_or(planned.train_flops() as f64 / rate, |seconds| {
                seconds * planned.cell.train.steps as f64
            })
        })
        .collect()
}

//! The nightly gate: a night's records against an accepted baseline.
//!
//! The same program gives the same bits on the same machine, so cells without a relevant change are *identical* and
//! are not tested. Cells whose numbers changed (by another kernel, machine or formula) are tested for a loss larger than
//! noise:
//!
//! - for each encoding over all its cells at once, paired by workload and seed: nll in distribution, token accuracy
//!   beyond training. One seed on each of many workloads is enough for this test.
//! - for each workload and encoding with three seeds or more, paired by seed: the metric that ranks, by region.
//!
//! All tests form one family, decided by [`stats::decide`] with Holm's correction. Identical cells are not
//! members: they cannot cause a false alarm, and whether a cell is identical is independent of the differences of the
//! others. A loss must also be large enough to matter. Parameters and analytic operations are exact: any increase fails. So
//! does an increase of the counts of a training step (allocations, instructions) beyond their scatter, on the same
//! processor; counts that are missing are reported. Time and memory cause warnings only.

mod cost;
pub mod history;
mod matching;
mod quality;
mod verdict;

pub use self::matching::Incomparable;
pub use self::verdict::{CostChange, CostIncrease, NightlyVerdict, QualityChange, Scope};
use records::RunRecord;
use records::number::count;

/// Compares the records of a night with those of the baseline.
///
/// Cells are matched by workload, name of the encoding, seed and point of a grid. The settings of an encoding of the
/// same name may differ; the task, the model, the training and the evaluations must be equal.
pub fn judge(night: &[RunRecord], baseline: &[RunRecord]) -> NightlyVerdict {
    let matched = matching::matched(night, baseline);
    let changed: Vec<_> = matched.pairs.iter().filter(|pair| !pair.is_identical()).collect();
    let mut verdict = NightlyVerdict {
        compared: matched.pairs.len(),
        identical: matched.pairs.len() - changed.len(),
        incomparable: matched.incomparable,
        ..NightlyVerdict::default()
    };
    quality::judge(&changed, &mut verdict);
    cost::deterministic(&matched.pairs, &mut verdict);
    cost::counted(&matched.pairs, &mut verdict);
    if matched.new > 0 {
        verdict.warnings.push(format!(
            "{} without a baseline; accept this night's results to compare with them from the next night on",
            count(matched.new as u64, "new cell")
        ));
    }
    cost::measured(&matched.pairs, &mut verdict);
    verdict
}

#[cfg(test)]
mod tests;

//! The nightly gate: a night's records against an accepted baseline.
//!
//! The same program gives the same bits on the same machine, so a night without a change that matters is
//! *identical*, cell by cell, and nothing is tested. Where numbers moved (another kernel, another machine, another
//! formula) it is asked whether they moved for the worse by more than noise:
//!
//! - for each encoding over all its cells at once, paired by workload and seed: nll in distribution, token accuracy
//!   beyond training. One seed of many workloads is enough for that.
//! - for each workload and encoding with three seeds or more, paired by seed: the metric that ranks, by region.
//!
//! Both are one family, decided by [`crate::stats::decide`] with Holm's correction. Identical cells are no members:
//! they cannot give a false alarm, and which cells are identical says nothing about the differences of the others.
//! A loss must also be large enough to matter ([`Thresholds`]). Parameters and analytic operations are exact: any rise
//! fails. So does a rise of what is counted of a training step (allocations, instructions) beyond its scatter, on the
//! same processor; what was not counted is told. Time and memory only warn.

mod cost;
pub mod history;
mod matching;
mod quality;
mod thresholds;
pub mod trend;
mod verdict;

pub use self::cost::{CostChange, CostIncrease};
pub use self::matching::Incomparable;
pub use self::quality::{QualityChange, Scope};
pub use self::thresholds::Thresholds;
pub use self::verdict::NightlyVerdict;
use crate::record::RunRecord;

/// Compares the records of a night with those of the baseline.
///
/// Cells are matched by workload, name of the encoding, seed and point of a grid. The settings of an encoding of the
/// same name may differ; the task, the model, the training and the evaluations must be equal.
pub fn judge(night: &[RunRecord], baseline: &[RunRecord], gate: &Thresholds) -> NightlyVerdict {
    let matched = matching::matched(night, baseline);
    let changed: Vec<_> = matched.pairs.iter().filter(|pair| !pair.is_identical()).collect();
    let quality = quality::judge(&changed, gate);
    let (mut rises, mut falls) = cost::deterministic(&matched.pairs);
    let counts = cost::counted(&matched.pairs, gate);
    rises.extend(counts.rises);
    falls.extend(counts.falls);
    let mut warnings = quality.warnings;
    if matched.new > 0 {
        warnings.push(format!(
            "{} cells are new and have no baseline; accept this night to watch them",
            matched.new
        ));
    }
    let (slower, unlike) = cost::measured(&matched.pairs, gate);
    warnings.extend(unlike);
    NightlyVerdict {
        compared: matched.pairs.len(),
        identical: matched.pairs.len() - changed.len(),
        losses: quality.losses,
        gains: quality.gains,
        not_separable: quality.not_separable,
        rises,
        falls,
        incomparable: matched.incomparable,
        slower,
        uncounted: counts.uncounted,
        warnings,
    }
}

#[cfg(test)]
mod tests;

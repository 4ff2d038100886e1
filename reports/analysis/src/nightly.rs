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
//! others. A loss must also exceed [`Thresholds`]. Parameters and analytic operations are exact: any increase fails. So
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

/// Compares the records of a night with those of the baseline.
///
/// Cells are matched by workload, name of the encoding, seed and point of a grid. The settings of an encoding of the
/// same name may differ; the task, the model, the training and the evaluations must be equal.
pub fn judge(night: &[RunRecord], baseline: &[RunRecord], gate: &Thresholds) -> NightlyVerdict {
    let matched = matching::matched(night, baseline);
    let changed: Vec<_> = matched.pairs.iter().filter(|pair| !pair.is_identical()).collect();
    let mut verdict = NightlyVerdict {
        compared: matched.pairs.len(),
        identical: matched.pairs.len() - changed.len(),
        incomparable: matched.incomparable,
        ..NightlyVerdict::default()
    };
    quality::judge(&changed, gate, &mut verdict);
    cost::deterministic(&matched.pairs, &mut verdict);
    cost::counted(&matched.pairs, gate, &mut verdict);
    if matched.new > 0 {
        verdict.warnings.push(format!(
            "{} new cells have no baseline; accept this night's results to compare them from the next night on",
            matched.new
        ));
    }
    cost::measured(&matched.pairs, gate, &mut verdict);
    verdict
}

/// Sizes of changes above which the gate fails or warns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Smallest loss of a share (exact match, token accuracy) that fails; 0.01 is one percentage point.
    pub least_share: f64,
    /// Smallest increase of the nll that fails, in nats per scored token.
    pub least_nats: f64,
    /// Ratio of median step times from which the gate warns.
    pub slower: f64,
    /// Ratio of peak memory from which the gate warns.
    pub more_memory: f64,
    /// Largest accepted relative increase of the allocations of a step; METHODOLOGY.md lists observed differences.
    pub allocations_tolerance: f64,
    /// Largest accepted relative increase of the bytes allocated in a step.
    pub allocated_bytes_tolerance: f64,
    /// Largest accepted relative increase of the instructions of a step.
    pub instructions_tolerance: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            least_share: 0.01,
            least_nats: 0.01,
            slower: 1.25,
            more_memory: 1.1,
            allocations_tolerance: 0.001,
            allocated_bytes_tolerance: 0.005,
            instructions_tolerance: 0.005,
        }
    }
}

#[cfg(test)]
mod tests;

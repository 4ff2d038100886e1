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
//! A loss must also be large enough to matter ([`Gate`]). Parameters and analytic operations are exact: any rise
//! fails. So does a rise of what is counted of a training step (allocations, instructions) beyond its scatter, on the
//! same processor; what was not counted is told. Time and memory only warn.

mod cost;
pub mod history;
mod matching;
mod quality;
pub mod trend;

use serde::Serialize;

use crate::record::RunRecord;

pub use cost::{Rise, Slower};
pub use matching::Incomparable;
pub use quality::{Change, Scope};

/// What is large enough to matter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// Least loss of a share (exact match, token accuracy) that fails; 0.01 is one point.
    pub least_share: f64,
    /// Least rise of the nll that fails, nats per scored token.
    pub least_nats: f64,
    /// A median step that takes so many times as long is warned of.
    pub slower: f64,
    /// Peak memory that is so many times as large is warned of.
    pub more_memory: f64,
    /// Allocations of a step may differ by this share; see METHODOLOGY.md for what was seen.
    pub allocations_scatter: f64,
    /// The bytes that they ask for may differ by this share.
    pub allocated_bytes_scatter: f64,
    /// Instructions of a step may differ by this share.
    pub instructions_scatter: f64,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            least_share: 0.01,
            least_nats: 0.01,
            slower: 1.25,
            more_memory: 1.1,
            allocations_scatter: 0.001,
            allocated_bytes_scatter: 0.005,
            instructions_scatter: 0.005,
        }
    }
}

/// What a night says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Cells of both.
    pub compared: usize,
    /// Of these, cells whose numbers are the same in all digits.
    pub identical: usize,
    /// Losses of quality by more than noise, and large enough: they fail.
    pub losses: Vec<Change>,
    /// Gains by more than noise.
    pub gains: Vec<Change>,
    /// Everything else that was tested.
    pub not_separable: Vec<Change>,
    /// Deterministic costs that rose: they fail.
    pub rises: Vec<Rise>,
    /// Deterministic costs that fell.
    pub falls: Vec<Rise>,
    /// Cells of the baseline without a counterpart: they fail, for nothing is known of them.
    pub incomparable: Vec<Incomparable>,
    /// Longer steps and more memory: they warn.
    pub slower: Vec<Slower>,
    /// Costs that could not be compared because they were not counted, a sentence each.
    pub uncounted: Vec<String>,
    /// What else the reader must know, one sentence each.
    pub warnings: Vec<String>,
}

impl Verdict {
    /// Whether the night is taken.
    pub fn passes(&self) -> bool {
        self.losses.is_empty() && self.rises.is_empty() && self.incomparable.is_empty()
    }

    /// The verdict in lines for people: what fails first, then warnings, then what passes.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.losses.iter().map(|change| format!("FAIL quality: {change}")));
        lines.extend(self.rises.iter().map(|rise| format!("FAIL cost: {rise}")));
        lines.extend(self.incomparable.iter().map(|cell| format!("FAIL cell: {cell}")));
        lines.extend(self.slower.iter().map(|slower| format!("warning: {slower}")));
        lines.extend(self.uncounted.iter().map(|what| format!("not compared: {what}")));
        lines.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.extend(self.gains.iter().map(|change| format!("better: {change}")));
        lines.extend(self.falls.iter().map(|fall| format!("less cost: {fall}")));
        let tested = self.losses.len() + self.gains.len() + self.not_separable.len();
        lines.push(format!(
            "{} cells compared, {} of them identical; {tested} comparisons of the others, {} not separable",
            self.compared,
            self.identical,
            self.not_separable.len()
        ));
        lines
    }
}

/// Holds the records of a night against those of the baseline.
///
/// Cells stand for each other by workload, name of the encoding, seed and point of a grid. What an encoding of one
/// name is made of may differ; the task, the model, the training and the evaluations must not.
pub fn judge(night: &[RunRecord], baseline: &[RunRecord], gate: &Gate) -> Verdict {
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
    Verdict {
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

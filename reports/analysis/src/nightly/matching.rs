//! Matching of a night's cells with those of the baseline.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use records::{EvalPoint, RunRecord, Status, newest_by};

/// A cell of this night with its counterpart in the baseline.
pub(super) struct MatchedCell<'a> {
    pub(super) night: &'a RunRecord,
    pub(super) baseline: &'a RunRecord,
}

/// A cell of the baseline without a comparable counterpart in this night.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Incomparable {
    /// Name of the workload.
    pub workload: String,
    /// Name of the encoding.
    pub encoding: String,
    /// Seed of the cell.
    pub seed: u64,
    /// Reason, as a phrase.
    pub reason: String,
}

impl fmt::Display for Incomparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, encoding, seed, reason } = self;
        write!(f, "{encoding} on `{workload}`, seed {seed}: {reason}")
    }
}

pub(super) struct Matched<'a> {
    pub(super) pairs: Vec<MatchedCell<'a>>,
    pub(super) incomparable: Vec<Incomparable>,
    pub(super) new: usize,
}

type RunKey<'a> = (&'a str, &'a str, u64, String);

fn id(record: &RunRecord) -> RunKey<'_> {
    let grid = record.grid.as_ref().map(|g| format!("{} {:e}", g.axis, g.value));
    (&record.workload, &record.encoding.name, record.seed, grid.unwrap_or_default())
}

pub(super) fn matched<'a>(night: &'a [RunRecord], baseline: &'a [RunRecord]) -> Matched<'a> {
    let (night, baseline) = (newest_by(night, id), newest_by(baseline, id));
    let mut matched = Matched { pairs: Vec::new(), incomparable: Vec::new(), new: 0 };
    for (id, baseline) in &baseline {
        match night.get(id).map(|night| (night, reason_against(night, baseline))) {
            Some((night, None)) => matched.pairs.push(MatchedCell { night, baseline }),
            Some((_, Some(reason))) => matched.incomparable.push(of(baseline, reason)),
            None => {
                matched
                    .incomparable
                    .push(of(baseline, "the cell was not run this night".to_owned()));
            }
        }
    }
    matched.new = night.keys().filter(|id| !baseline.contains_key(*id)).count();
    // A cell that the baseline did not finish either does not fail the gate.
    matched.pairs.retain(|pair| pair.baseline.status == Status::Done);
    matched
}

fn of(record: &RunRecord, reason: String) -> Incomparable {
    Incomparable {
        workload: record.workload.clone(),
        encoding: record.encoding.name.clone(),
        seed: record.seed,
        reason,
    }
}

/// Parts of a cell's configuration that must be equal for a comparison.
const CONDITIONS: [&str; 6] =
    ["task", "task_version", "task_data_sha256", "model", "train", "eval"];

fn reason_against(night: &RunRecord, baseline: &RunRecord) -> Option<String> {
    if baseline.status != Status::Done {
        return None;
    }
    if night.status != Status::Done {
        let reason = night.status.reason();
        return Some(format!(
            "the cell finished in the baseline and is now {}: {reason}",
            night.status.name()
        ));
    }
    let part =
        |record: &RunRecord, name: &str| record.config.get(name).cloned().unwrap_or(Value::Null);
    let changed: Vec<&str> =
        CONDITIONS.into_iter().filter(|name| part(night, name) != part(baseline, name)).collect();
    if !changed.is_empty() {
        return Some(format!(
            "the baseline had a different {}; accept a new baseline",
            changed.join(", ")
        ));
    }
    let lost = |eval: &&EvalPoint| night.eval(&eval.split, eval.len).is_none();
    let lost = baseline.evals.iter().find(lost)?;
    Some(format!("the cell no longer has an evaluation on `{}` at length {}", lost.split, lost.len))
}

impl MatchedCell<'_> {
    /// Reports whether all numbers of all evaluations are equal, to the last digit that a record keeps.
    pub(super) fn is_identical(&self) -> bool {
        self.baseline.evals.iter().all(|eval| {
            self.night.eval(&eval.split, eval.len).is_some_and(|now| {
                let numbers =
                    |e: &EvalPoint| [e.exact_match, e.token_accuracy, e.nll].map(f64::to_bits);
                numbers(now) == numbers(eval)
            })
        })
    }

    /// Returns the means of a number over the evaluations of a region, the baseline's first; `None` if the region has
    /// none.
    pub(super) fn means(&self, inside: bool, get: impl Fn(&EvalPoint) -> f64) -> Option<[f64; 2]> {
        let (mut sums, mut count) = ([0.0; 2], 0.0);
        for eval in self.baseline.evals.iter().filter(|e| e.in_distribution == inside) {
            let now = self.night.eval(&eval.split, eval.len)?;
            sums[0] += get(eval);
            sums[1] += get(now);
            count += 1.0;
        }
        (count > 0.0).then(|| sums.map(|sum| sum / count))
    }
}

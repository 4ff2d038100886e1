//! What cells cost, tonight and in the baseline.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::Gate;
use super::matching::Pair;
use crate::number::{bytes, three_digits};
use crate::record::RunRecord;
use crate::stats::Estimate;

/// A deterministic cost that changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Rise {
    /// The encoding.
    pub encoding: String,
    /// The workload.
    pub workload: String,
    /// What is counted.
    pub what: &'static str,
    /// In the baseline.
    pub before: u64,
    /// Tonight.
    pub after: u64,
}

impl fmt::Display for Rise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { encoding, workload, what, before, after } = self;
        write!(f, "{encoding} on {workload}: {what} {before} -> {after}")
    }
}

type Count = (&'static str, fn(&RunRecord) -> u64);

const COUNTS: [Count; 4] = [
    ("parameters of the model", |r| r.params.total),
    ("parameters of the encoding", |r| r.params.encoding),
    ("operations of a training step", |r| r.flops.train_step),
    ("operations of a forward pass per token", |r| r.flops.forward_per_token),
];

/// Rises and falls, each once for a workload and encoding.
pub(super) fn deterministic(pairs: &[Pair<'_>]) -> (Vec<Rise>, Vec<Rise>) {
    let mut found = BTreeSet::new();
    for pair in pairs {
        for (what, count) in COUNTS {
            let (before, after) = (count(pair.baseline), count(pair.night));
            if before != after {
                found.insert(Rise {
                    encoding: pair.night.encoding.name.clone(),
                    workload: pair.night.workload.clone(),
                    what,
                    before,
                    after,
                });
            }
        }
    }
    found.into_iter().partition(|rise| rise.after > rise.before)
}

/// A measured cost that is much larger than in the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slower {
    /// The encoding.
    pub encoding: String,
    /// The workload.
    pub workload: String,
    /// `step` (seconds) or `peak memory` (bytes).
    pub what: &'static str,
    /// Median over seeds of the baseline.
    pub before: f64,
    /// Median over seeds tonight.
    pub after: f64,
}

impl fmt::Display for Slower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |x: f64| {
            if self.what == STEP { format!("{} ms", three_digits(1000.0 * x)) } else { bytes(x) }
        };
        let Self { encoding, workload, what, before, after } = self;
        let ratio = three_digits(after / before);
        write!(
            f,
            "{encoding} on {workload}: {what} {} -> {}, {ratio} times",
            show(*before),
            show(*after)
        )
    }
}

const STEP: &str = "step";
const MEMORY: &str = "peak memory";

/// Steps that take longer and memory that is larger, over the seeds of a workload and encoding; and a warning if
/// machines differ, for then neither is compared.
pub(super) fn measured(pairs: &[Pair<'_>], gate: &Gate) -> (Vec<Slower>, Option<String>) {
    let alike = |pair: &&Pair<'_>| pair.night.host == pair.baseline.host;
    let mut groups: BTreeMap<(&str, &str), Vec<&Pair<'_>>> = BTreeMap::new();
    for pair in pairs.iter().filter(alike) {
        let id = (&*pair.night.encoding.name, &*pair.night.workload);
        groups.entry(id).or_default().push(pair);
    }
    let mut found = Vec::new();
    for ((encoding, workload), pairs) in groups {
        let median = |get: &dyn Fn(&Pair<'_>) -> Option<f64>| {
            let values: Vec<f64> = pairs.iter().filter_map(|pair| get(pair)).collect();
            Estimate::of(&values).map(|estimate| estimate.median).filter(|median| *median > 0.0)
        };
        let seconds = |r: &RunRecord| r.train.step_seconds_median;
        let memory = |r: &RunRecord| r.peak_bytes.map(|bytes| bytes as f64);
        let kinds = [
            (STEP, gate.slower, median(&|p| seconds(p.baseline)), median(&|p| seconds(p.night))),
            (
                MEMORY,
                gate.more_memory,
                median(&|p| memory(p.baseline)),
                median(&|p| memory(p.night)),
            ),
        ];
        for (what, limit, before, after) in kinds {
            if let (Some(before), Some(after)) = (before, after)
                && after > limit * before
            {
                let (encoding, workload) = (encoding.to_owned(), workload.to_owned());
                found.push(Slower { encoding, workload, what, before, after });
            }
        }
    }
    let unlike = pairs.iter().filter(|pair| !alike(pair)).count();
    let warning = (unlike > 0).then(|| {
        format!("{unlike} cells ran on another machine, or with other threads or jobs, than in the baseline: their times are not compared")
    });
    (found, warning)
}

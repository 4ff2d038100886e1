//! Costs of a night's cells compared with the baseline.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::matching::MatchedCell;
use super::thresholds::Thresholds;
use crate::number::{bytes, three_digits};
use crate::record::RunRecord;
use crate::stats::Estimate;

/// Change of a deterministic cost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CostChange {
    /// Name of the encoding.
    pub encoding: String,
    /// Name of the workload.
    pub workload: String,
    /// Name of the cost.
    pub what: &'static str,
    /// Value in the baseline.
    pub before: u64,
    /// Value in this night.
    pub after: u64,
}

impl fmt::Display for CostChange {
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

/// Returns increases and decreases of deterministic costs, one per workload and encoding.
pub(super) fn deterministic(pairs: &[MatchedCell<'_>]) -> (Vec<CostChange>, Vec<CostChange>) {
    let mut found = BTreeSet::new();
    for pair in pairs {
        for (what, count) in COUNTS {
            let (before, after) = (count(pair.baseline), count(pair.night));
            if before != after {
                found.insert(CostChange {
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

/// A counted cost of a training step. The same program gives the same count on the same machine.
struct Counted {
    what: &'static str,
    get: fn(&RunRecord) -> Option<u64>,
    /// Relative increase that is accepted.
    tolerance: fn(&Thresholds) -> f64,
}

const COUNTED: [Counted; 3] = [
    Counted {
        what: "allocations of a training step",
        get: |r| Some(r.step_allocations?.count),
        tolerance: |gate| gate.allocations_tolerance,
    },
    Counted {
        what: "bytes allocated in a training step",
        get: |r| Some(r.step_allocations?.bytes),
        tolerance: |gate| gate.allocated_bytes_tolerance,
    },
    Counted {
        what: "instructions of a training step",
        get: |r| r.step_instructions,
        tolerance: |gate| gate.instructions_tolerance,
    },
];

/// Result of comparing counts.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) rises: Vec<CostChange>,
    pub(super) falls: Vec<CostChange>,
    /// Counts that could not be compared, one sentence each.
    pub(super) uncounted: Vec<String>,
}

/// Compares counts cell by cell and reports, for each workload and encoding, the seed that changed most. Cells of
/// another processor, which runs other kernels and allocates other buffers, are not compared.
pub(super) fn counted(pairs: &[MatchedCell<'_>], gate: &Thresholds) -> Counts {
    let mut counts = Counts::default();
    for Counted { what, get, tolerance } in COUNTED {
        let mut most: BTreeMap<(&str, &str), CostChange> = BTreeMap::new();
        let (mut compared, mut lost, mut elsewhere) = (0, 0, 0);
        for pair in pairs {
            let (Some(before), after) = (get(pair.baseline), get(pair.night)) else { continue };
            let Some(after) = after else {
                lost += 1;
                continue;
            };
            if pair.night.host.cpu != pair.baseline.host.cpu {
                elsewhere += 1;
                continue;
            }
            compared += 1;
            let moved =
                |before: u64, after: u64| (after as f64 - before as f64) / before.max(1) as f64;
            if moved(before, after).abs() <= tolerance(gate) {
                continue;
            }
            let (encoding, workload) = (&pair.night.encoding.name, &pair.night.workload);
            let rise = CostChange {
                encoding: encoding.clone(),
                workload: workload.clone(),
                what,
                before,
                after,
            };
            let held =
                most.entry((encoding.as_str(), workload.as_str())).or_insert_with(|| rise.clone());
            if moved(before, after) > moved(held.before, held.after) {
                *held = rise;
            }
        }
        let (rises, falls): (Vec<_>, Vec<_>) =
            most.into_values().partition(|rise| rise.after > rise.before);
        counts.rises.extend(rises);
        counts.falls.extend(falls);
        let mut say = |text: String| counts.uncounted.push(format!("{what}: {text}"));
        if lost > 0 {
            say(format!(
                "{lost} cells that the baseline has counted were not counted on this machine"
            ));
        }
        if elsewhere > 0 {
            say(format!(
                "{elsewhere} cells were counted on another processor than in the baseline"
            ));
        }
        if compared + lost + elsewhere == 0 {
            let tonight = pairs.iter().any(|pair| get(pair.night).is_some());
            say(if tonight {
                "not counted in the baseline; accept this night to watch them".to_owned()
            } else {
                "not counted on this machine".to_owned()
            });
        }
    }
    counts
}

/// Measured cost that is much larger than in the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostIncrease {
    /// Name of the encoding.
    pub encoding: String,
    /// Name of the workload.
    pub workload: String,
    /// `step` (seconds) or `peak memory` (bytes).
    pub what: &'static str,
    /// Median over seeds of the baseline.
    pub before: f64,
    /// Median over seeds of this night.
    pub after: f64,
}

impl fmt::Display for CostIncrease {
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

/// Returns increases of step time and memory over the seeds of a workload and encoding, and a warning about cells
/// that ran on another machine, which are not compared.
pub(super) fn measured(
    pairs: &[MatchedCell<'_>],
    gate: &Thresholds,
) -> (Vec<CostIncrease>, Option<String>) {
    let alike = |pair: &&MatchedCell<'_>| pair.night.host == pair.baseline.host;
    let mut groups: BTreeMap<(&str, &str), Vec<&MatchedCell<'_>>> = BTreeMap::new();
    for pair in pairs.iter().filter(alike) {
        let id = (&*pair.night.encoding.name, &*pair.night.workload);
        groups.entry(id).or_default().push(pair);
    }
    let mut found = Vec::new();
    for ((encoding, workload), pairs) in groups {
        let median = |get: &dyn Fn(&MatchedCell<'_>) -> Option<f64>| {
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
                found.push(CostIncrease { encoding, workload, what, before, after });
            }
        }
    }
    let unlike = pairs.iter().filter(|pair| !alike(pair)).count();
    let warning = (unlike > 0).then(|| {
        format!("{unlike} cells ran on another machine, or with other threads or jobs, than in the baseline: their times are not compared")
    });
    (found, warning)
}

//! Costs of a night's cells compared with the baseline.

use std::collections::{BTreeMap, BTreeSet};

use super::matching::MatchedCell;
use super::verdict::{CostChange, CostIncrease, NightlyVerdict, STEP};
use records::RunRecord;
use records::number::count;
use stats::Estimate;

type Count = (&'static str, fn(&RunRecord) -> u64);

const COUNTS: [Count; 4] = [
    ("parameters of the model", |r| r.params.total),
    ("parameters of the encoding", |r| r.params.encoding),
    ("operations of a training step", |r| r.flops.train_step),
    ("operations of a forward pass per token", |r| r.flops.forward_per_token),
];

fn change(pair: &MatchedCell<'_>, what: &'static str, before: u64, after: u64) -> CostChange {
    let (encoding, workload) = (pair.night.encoding.name.clone(), pair.night.workload.clone());
    CostChange { encoding, workload, what, before, after }
}

/// Adds increases and decreases of costs to the verdict.
fn sort(found: impl IntoIterator<Item = CostChange>, verdict: &mut NightlyVerdict) {
    for change in found {
        let rose = change.after > change.before;
        let list = if rose { &mut verdict.rises } else { &mut verdict.falls };
        list.push(change);
    }
}

/// Compares deterministic costs, one per workload and encoding.
pub(super) fn deterministic(pairs: &[MatchedCell<'_>], verdict: &mut NightlyVerdict) {
    let mut found = BTreeSet::new();
    for pair in pairs {
        for (what, count) in COUNTS {
            let (before, after) = (count(pair.baseline), count(pair.night));
            if before != after {
                found.insert(change(pair, what, before, after));
            }
        }
    }
    sort(found, verdict);
}

/// A counted cost of a training step. The same program gives the same count on the same machine.
struct Counted {
    what: &'static str,
    get: fn(&RunRecord) -> Option<u64>,
    /// Relative increase that is accepted; METHODOLOGY.md lists observed differences.
    tolerance: f64,
}

const COUNTED: [Counted; 3] = [
    Counted {
        what: "allocations of a training step",
        get: |r| Some(r.step_allocations?.count),
        tolerance: 0.001,
    },
    Counted {
        what: "bytes allocated in a training step",
        get: |r| Some(r.step_allocations?.bytes),
        tolerance: 0.005,
    },
    Counted {
        what: "instructions of a training step",
        get: |r| r.step_instructions,
        tolerance: 0.005,
    },
];

/// Compares counts cell by cell and reports, for each workload and encoding, the seed that changed most. Cells of
/// another processor, which runs other kernels and allocates other buffers, are not compared.
pub(super) fn counted(pairs: &[MatchedCell<'_>], verdict: &mut NightlyVerdict) {
    for Counted { what, get, tolerance } in COUNTED {
        let mut most: BTreeMap<(&str, &str), CostChange> = BTreeMap::new();
        let (mut compared, mut lost, mut elsewhere) = (0_u64, 0_u64, 0_u64);
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
            if moved(before, after).abs() <= tolerance {
                continue;
            }
            let rise = change(pair, what, before, after);
            let id = (&*pair.night.encoding.name, &*pair.night.workload);
            let held = most.entry(id).or_insert_with(|| rise.clone());
            if moved(before, after) > moved(held.before, held.after) {
                *held = rise;
            }
        }
        sort(most.into_values(), verdict);
        let mut say = |text: String| verdict.uncounted.push(format!("{what}: {text}"));
        if lost > 0 {
            say(format!(
                "{} counted in the baseline, but not on this machine",
                count(lost, "cell")
            ));
        }
        if elsewhere > 0 {
            let cells = count(elsewhere, "cell");
            say(format!("the baseline counted {cells} on a different processor"));
        }
        if compared + lost + elsewhere == 0 {
            let tonight = pairs.iter().any(|pair| get(pair.night).is_some());
            say(if tonight {
                "not counted in the baseline; accept this night to compare the counts from the next night on".to_owned()
            } else {
                "not counted on this machine".to_owned()
            });
        }
    }
}

/// Measured costs: name, value in a record, and the ratio of medians from which the gate warns.
type MeasuredCost = (&'static str, fn(&RunRecord) -> Option<f64>, f64);

const MEASURED: [MeasuredCost; 2] = [
    (STEP, |r| r.train.step_seconds_median, 1.25),
    ("peak memory", |r| r.peak_bytes.map(|bytes| bytes as f64), 1.1),
];

/// Adds increases of step time and memory over the seeds of a workload and encoding to the verdict, and a warning about
/// cells that ran on another machine, which are not compared.
pub(super) fn measured<'a>(pairs: &[MatchedCell<'a>], verdict: &mut NightlyVerdict) {
    let alike = |pair: &&MatchedCell<'_>| pair.night.host == pair.baseline.host;
    let mut groups: BTreeMap<(&str, &str), Vec<&MatchedCell<'a>>> = BTreeMap::new();
    for pair in pairs.iter().filter(alike) {
        let id = (&*pair.night.encoding.name, &*pair.night.workload);
        groups.entry(id).or_default().push(pair);
    }
    for ((encoding, workload), pairs) in groups {
        for (what, get, limit) in MEASURED {
            let median = |side: fn(&MatchedCell<'a>) -> &'a RunRecord| {
                let values: Vec<f64> = pairs.iter().filter_map(|pair| get(side(pair))).collect();
                Estimate::of(&values).map(|estimate| estimate.median).filter(|median| *median > 0.0)
            };
            if let (Some(before), Some(after)) = (median(|p| p.baseline), median(|p| p.night))
                && after > limit * before
            {
                let (encoding, workload) = (encoding.to_owned(), workload.to_owned());
                verdict.slower.push(CostIncrease { encoding, workload, what, before, after });
            }
        }
    }
    let unlike = pairs.iter().filter(|pair| !alike(pair)).count();
    if unlike > 0 {
        verdict.warnings.push(format!(
            "{} ran on another machine, or with another number of threads or jobs, than in the baseline; these times \
             are not compared",
            count(unlike as u64, "cell")
        ));
    }
}

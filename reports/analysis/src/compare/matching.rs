//! Pairing of records by workload and seed.

use std::collections::{BTreeMap, BTreeSet};

use polars::prelude::PolarsError;
use serde_json::Value;

use super::CompareError;
use super::comparison::{ComparedEncoding, Request};
use crate::frame::Frames;
use crate::grid::{ChosenBy, GridChoice, GridSelection, WorkloadGrid, select_grid_values};
use records::number::{count, joined, numbered};
use records::store::cell_key;
use records::{RunRecord, Status, newest_by};

/// Records of two encodings on one workload, by seed.
pub(super) struct PairedRuns<'a> {
    pub(super) a: BTreeMap<u64, &'a RunRecord>,
    pub(super) b: BTreeMap<u64, &'a RunRecord>,
    /// Remarks that qualify the comparison, one sentence each.
    pub(super) notes: Vec<String>,
}

impl PairedRuns<'_> {
    pub(super) fn common(&self) -> Vec<u64> {
        self.a.keys().filter(|seed| self.b.contains_key(seed)).copied().collect()
    }
}

pub(super) struct MatchedPairs<'a> {
    pub(super) a: ComparedEncoding,
    pub(super) b: ComparedEncoding,
    pub(super) pairs: Vec<PairedRuns<'a>>,
    pub(super) left_out: Vec<String>,
}

/// Hash of the configuration without the encoding, the seed and the setting of a grid. Only cells with equal hashes
/// can be compared.
fn conditions(record: &RunRecord, grid: Option<&WorkloadGrid>) -> String {
    let mut config = record.config.clone();
    let axis = grid.map(|grid| format!("/{}", grid.axis.replace('.', "/")));
    for path in ["/encoding", "/seed"].into_iter().chain(axis.as_deref()) {
        let Some((parent, name)) = path.rsplit_once('/') else { continue };
        if let Some(fields) = config.pointer_mut(parent).and_then(Value::as_object_mut) {
            fields.remove(name);
        }
    }
    cell_key(&config)
}

/// Pairs the records of both encodings on all workloads.
pub(super) fn find<'a>(
    records: &'a [RunRecord],
    request: &Request,
) -> Result<MatchedPairs<'a>, CompareError> {
    let a = side(records, &request.a)?;
    let b = side(records, &request.b)?;
    if a.name == b.name {
        return Err(CompareError::Same { name: a.name });
    }
    known("workload", &request.workloads, records, |r| &r.workload)?;
    known("task", &request.tasks, records, |r| &r.task.id)?;
    let wanted = |record: &&RunRecord| {
        let named = |list: &[String], name| list.is_empty() || list.contains(name);
        named(&request.workloads, &record.workload)
            && named(&request.tasks, &record.task.id)
            && (record.encoding.name == a.name || record.encoding.name == b.name)
    };
    let mut left_out = Vec::new();
    let mut workloads: BTreeMap<(&str, &str), Vec<&RunRecord>> = BTreeMap::new();
    for record in records.iter().filter(wanted) {
        workloads.entry((&record.suite, &record.workload)).or_default().push(record);
    }
    let mut pairs = Vec::new();
    for ((suite, workload), records) in workloads {
        let at = format!("{suite}, {workload}");
        match pair(&at, &records, &a.name, &b.name, &mut left_out) {
            Ok(pair) => pairs.push(pair),
            Err(reason) => left_out.push(reason),
        }
    }
    if pairs.is_empty() {
        return Err(CompareError::NothingPairs { a: a.name, b: b.name, reasons: left_out });
    }
    Ok(MatchedPairs { a, b, pairs, left_out })
}

/// Looks up an encoding by name.
fn side(records: &[RunRecord], name: &str) -> Result<ComparedEncoding, CompareError> {
    match records.iter().find(|r| r.encoding.name == name) {
        Some(record) => {
            // A name with settings is shown instead of the label, which does not contain them.
            let plain = record.encoding.name == record.encoding.id;
            let label = if plain { &record.encoding.label } else { &record.encoding.name };
            Ok(ComparedEncoding { name: name.to_owned(), label: label.clone() })
        }
        None => Err(CompareError::unknown("encoding", name, names(records, |r| &r.encoding.name))),
    }
}

fn known(
    what: &'static str,
    asked: &[String],
    records: &[RunRecord],
    get: fn(&RunRecord) -> &String,
) -> Result<(), CompareError> {
    let all = names(records, get);
    match asked.iter().find(|name| !all.contains(name)) {
        Some(name) => Err(CompareError::unknown(what, name, all)),
        None => Ok(()),
    }
}

fn names(records: &[RunRecord], get: fn(&RunRecord) -> &String) -> Vec<String> {
    records.iter().map(get).cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

/// Pairs the records of one workload. Fails with the reason if no seed pairs.
fn pair<'a>(
    at: &str,
    records: &[&'a RunRecord],
    a: &str,
    b: &str,
    left_out: &mut Vec<String>,
) -> Result<PairedRuns<'a>, String> {
    let own: Vec<RunRecord> = records.iter().map(|record| (*record).clone()).collect();
    let failed = |error: PolarsError| format!("{at}: {error}");
    let GridSelection { selected, grid, .. } =
        Frames::of(&own).and_then(|frames| select_grid_values(&frames)).map_err(failed)?;
    let grid = grid.as_ref();
    let chosen: BTreeSet<&str> = selected
        .column("key")
        .and_then(|key| key.str())
        .map_err(failed)?
        .iter()
        .flatten()
        .collect();
    let (counted, others): (Vec<&RunRecord>, Vec<&RunRecord>) =
        records.iter().partition(|r| r.status == Status::Done && chosen.contains(r.key.as_str()));
    let notes: Vec<String> = grid.map(|grid| chosen_values(grid, [a, b])).into_iter().collect();
    let mut groups: BTreeMap<String, Vec<&'a RunRecord>> = BTreeMap::new();
    for record in counted {
        groups.entry(conditions(record, grid)).or_default().push(record);
    }
    let mut not_counted: BTreeMap<(String, u64), BTreeSet<&str>> = BTreeMap::new();
    for record in others {
        let has_fresh = grid.is_some_and(|grid| !grid.fresh_seeds.is_empty());
        let state = match &record.grid {
            Some(point) if record.status == Status::Done => {
                if has_fresh && !point.fresh {
                    format!("this seed took part in choosing `{}`", point.axis)
                } else {
                    format!("{} = {} was not chosen", point.axis, point.value)
                }
            }
            _ => record.status.name().to_owned(),
        };
        not_counted.entry((state, record.seed)).or_default().insert(&record.encoding.name);
    }
    left_out.extend(not_counted.into_iter().map(|((state, seed), names)| {
        let names = joined(names, " and ");
        format!("{at}: seed {seed} of {names} is left out ({state})")
    }));
    let started = |pair: &PairedRuns<'_>| {
        pair.a.values().chain(pair.b.values()).map(|r| r.started().0.to_owned()).max()
    };
    let mut pairing: Vec<PairedRuns<'a>> = Vec::new();
    let (mut seeds_a, mut seeds_b) = (BTreeSet::new(), BTreeSet::new());
    for group in groups.into_values() {
        // Each seed is used once: the settings of an encoding may have changed under its name.
        let [a, b] = [a, b].map(|name| {
            newest_by(group.iter().copied().filter(|r| r.encoding.name == name), |r| r.seed)
        });
        let group = PairedRuns { a, b, notes: notes.clone() };
        seeds_a.extend(group.a.keys().copied());
        seeds_b.extend(group.b.keys().copied());
        if !group.common().is_empty() {
            pairing.push(group);
        }
    }
    pairing.sort_by_key(started);
    match pairing.pop() {
        Some(newest) => {
            if !pairing.is_empty() {
                left_out.push(format!(
                    "{at}: {} with the same names left out",
                    count(pairing.len() as u64, "older configuration")
                ));
            }
            Ok(newest)
        }
        None => Err(format!(
            "{at}: {a} has {}, and {b} has {}; the two have no seed in common under the same configuration",
            listed(&seeds_a),
            listed(&seeds_b)
        )),
    }
}

/// Returns a sentence on the grid values selected for each encoding.
fn chosen_values(grid: &WorkloadGrid, names: [&str; 2]) -> String {
    let choices = names.into_iter().filter_map(|name| grid.choice(name));
    let value = |choice: &GridChoice| match choice.by {
        ChosenBy::Validation => format!("{} {}", choice.encoding, choice.value),
        ChosenBy::Default => format!("{} {} (default, not chosen)", choice.encoding, choice.value),
    };
    let values: Vec<String> = choices.map(value).collect();
    format!("{} of each encoding, chosen by validation: {}.", grid.short_axis(), values.join("; "))
}

fn listed(seeds: &BTreeSet<u64>) -> String {
    let list: Vec<&u64> = seeds.iter().collect();
    if list.is_empty() { "no finished seed".to_owned() } else { numbered("seed", &list) }
}

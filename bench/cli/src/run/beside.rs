//! Kept records of a suite's other cells, which a run with `--encodings` is reported together with.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use analysis::packed::PACKED;
use records::RunRecord;
use records::store::RecordError;

use super::RunRequest;
use crate::conflict;
use crate::folders;
use crate::out::{complain, counted};
use sweep::{SweepCells, SweepPlan};
use train::suite::{self, Overrides};

/// Finds the finished records of all cells of a suite that `plan` does not run, in its results folder and below `results/<suite>`, by
/// their keys. Nothing is run for them.
///
/// # Errors
/// If the suite cannot be planned, or two folders, or the files and the pack of one, have different results of a cell.
pub(super) fn records(request: &RunRequest, plan: &SweepPlan) -> anyhow::Result<Vec<RunRecord>> {
    let RunRequest { name, text, overrides, out, .. } = request;
    let whole = Overrides { encodings: Vec::new(), ..overrides.clone() };
    let mut suite = suite::parse(name, text, &whole)?;
    suite.cells.append(&mut suite.fresh);
    // Texts that are not on this machine have no records to compare with either.
    let whole = SweepPlan::offline(suite)?;
    let run: BTreeSet<&str> = plan.keys.iter().map(String::as_str).collect();
    let mut wanted: BTreeMap<&str, usize> =
        whole.keys.iter().enumerate().map(|(index, key)| (key.as_str(), index)).collect();
    wanted.retain(|key, _| !run.contains(key));
    let mut places = folders::kept_below(out);
    places.extend(folders::kept_below(&PathBuf::from("results").join(&plan.suite)));
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut seen = BTreeSet::new();
    places.retain(|place| seen.insert(canonical(place)));
    conflict::refuse_within(&places)?;
    let mut all: Vec<(PathBuf, usize, RunRecord)> = Vec::new();
    for place in places {
        // The sweep tells what it cannot read of its own folder: records of the cells that it runs, and packed ones.
        let is_told = |error: &RecordError| {
            let is_of_run = |path: &Path| {
                let key = path.file_stem().and_then(OsStr::to_str);
                path.ends_with(PACKED) || key.is_some_and(|key| run.contains(key))
            };
            canonical(&place) == canonical(out) && error.path().is_some_and(is_of_run)
        };
        for record in analysis::folder::read_each(&place)? {
            let mut record = match record {
                Ok(record) => record,
                Err(error) if is_told(&error) => continue,
                Err(error) => {
                    complain(&format!("{error}; the report leaves out this record"));
                    continue;
                }
            };
            if let Some(index) = wanted.get(record.key.as_str()).filter(|_| record.is_finished()) {
                whole.rename(*index, &mut record);
                all.push((place.clone(), *index, record));
            }
        }
    }
    conflict::refuse(all.iter().map(|(place, _, record)| (place.as_path(), record)))?;
    let mut found: BTreeMap<usize, RunRecord> = BTreeMap::new();
    for (_, index, record) in all {
        found.entry(index).or_insert(record);
    }
    Ok(found.into_values().collect())
}

/// Messages about earlier records in a report: their number, and what differs from those that were run.
pub(super) fn notes(run: &[RunRecord], kept: &[RunRecord]) -> Vec<String> {
    let distinct = |records: &[RunRecord],
                    get: &dyn Fn(&RunRecord) -> String|
     -> BTreeSet<String> { records.iter().map(get).collect() };
    let encodings = distinct(kept, &|r| r.encoding.name.clone());
    let mut notes = vec![format!(
        "the report includes {} of {}; this run does not repeat them",
        counted(kept.len(), "earlier record"),
        counted(encodings.len(), "other encoding")
    )];
    let mut differ = |what: &str, so: &str, get: &dyn Fn(&RunRecord) -> String| {
        let (here, there) = (distinct(run, get), distinct(kept, get));
        if !run.is_empty() && here != there {
            let list = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join("; ");
            notes.push(format!(
                "{what} of earlier records: {}; of this run: {}; {so}",
                list(there),
                list(here)
            ));
        }
    };
    let numbers = "this difference alone can change the last digits of the numbers";
    differ("machine", "times, memory and the last digits of scores are not comparable", &|r| {
        let device =
            r.device.as_ref().map_or_else(String::new, |device| format!(", {}", device.name));
        format!("{}{device}", r.host.cpu)
    });
    differ("program version", numbers, &|r| {
        let version =
            |name: &str| r.versions.get(name).map_or("unknown", String::as_str).to_owned();
        let commit = r.commit.clone().unwrap_or_else(|| "unknown".to_owned());
        format!("commit {commit}, burn {}", version("burn"))
    });
    differ("concurrent cells", "times are not comparable", &|r| r.host.jobs.to_string());
    notes
}

//! State of a sweep from its results folder: cells that have ended, run and are open, and the expected time to the end.

mod times;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::SystemTime;

use rayon::prelude::*;
use records::store::{PackedReader, RecordError};
use records::{GridPoint, RunRecord, Status};
use serde::Serialize;

use super::claim::{self, ListedClaim};
use super::manifest::{ManifestCell, SweepManifest};
use times::CellTimes;
use train::run::checkpoint::CheckpointFolder;

/// State of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepOverview {
    /// Name of the suite; `None` for a folder without a list of cells.
    pub suite: Option<String>,
    /// Number of all known cells.
    pub cells: usize,
    /// Number of cells with a record that are not running again, by status.
    pub ended: BTreeMap<&'static str, usize>,
    /// Cells that a living process has claimed.
    pub running: Vec<RunningCell>,
    /// Cells without a record that nobody runs.
    pub open: Vec<OpenCell>,
    /// Cells that ended with a reason: failed, timed out, out of memory or diverged.
    pub unfinished: Vec<EndedCell>,
    /// Number of cells that follow when all others have ended: fresh seeds at the rates that a grid chooses.
    pub following: usize,
    /// Messages about unreadable records.
    pub unreadable: Vec<String>,
    /// Number of processes that run cells.
    pub processes: usize,
    /// Expected seconds to the end with as many cells at a time as now; `None` if no cell runs although some are open,
    /// or nothing is known of their time.
    pub seconds_left: Option<f64>,
}

/// Cell that is being run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunningCell {
    /// Identity of the cell.
    #[serde(flatten)]
    pub cell: CellName,
    /// Training step of its last checkpoint; `None` before the first.
    pub step: Option<usize>,
    /// Number of training steps, if known.
    pub steps: Option<usize>,
    /// Machine of the process.
    pub host: String,
    /// Process id on that machine.
    pub pid: u32,
    /// Time of the claim, RFC 3339 in UTC.
    pub since_utc: String,
}

/// Cell without a record that nobody runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpenCell {
    /// Identity of the cell.
    #[serde(flatten)]
    pub cell: CellName,
    /// Training step from which it resumes; `None`: from the start.
    pub step: Option<usize>,
    /// Process whose claim has expired, if there is one.
    pub last_process: Option<String>,
}

/// Cell with a record that is not a result, with the reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndedCell {
    /// Identity of the cell.
    #[serde(flatten)]
    pub cell: CellName,
    /// Name of the status.
    pub status: &'static str,
    /// Reason of the status.
    pub reason: String,
}

/// Identity of a cell, for readers.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CellName {
    /// Key of the cell.
    pub key: String,
    /// Name of its workload, with the learning rate of a grid; empty for a claimed cell that no list has.
    pub workload: String,
    /// Name of its encoding in the suite.
    pub encoding: String,
    /// Seed of the cell.
    pub seed: u64,
}

impl SweepOverview {
    /// Whether every planned cell has a record and no cell is being run.
    pub fn is_settled(&self) -> bool {
        self.running.is_empty() && self.open.is_empty() && self.following == 0
    }

    /// Number of cells with a result.
    pub fn done(&self) -> usize {
        self.ended.get(Status::Done.name()).copied().unwrap_or(0)
    }

    /// Whether some cell ended as failed, timed out or out of memory, or has an unreadable record.
    pub fn has_failures(&self) -> bool {
        let diverged = Status::Diverged { step: 0, reason: String::new() }.name();
        !self.unreadable.is_empty() || self.unfinished.iter().any(|cell| cell.status != diverged)
    }
}

/// Facts of a record that an overview needs.
#[derive(Debug, Clone)]
struct RecordFacts {
    cell: CellName,
    status: Status,
    seconds: f64,
    train_flops: f64,
}

impl RecordFacts {
    fn of(record: RunRecord) -> Self {
        let evaluation = record.evals.iter().map(|eval| eval.seconds).sum::<f64>();
        Self {
            seconds: record.train.seconds + evaluation,
            train_flops: record.flops.train_step as f64 * record.train.steps as f64,
            cell: CellName {
                key: record.key,
                workload: GridPoint::label(record.grid.as_ref(), &record.workload),
                encoding: record.encoding.name,
                seed: record.seed,
            },
            status: record.status,
        }
    }
}

/// Stamp of a record's file, and its facts or the message about it.
type ReadFile = ((Option<SystemTime>, u64), Result<RecordFacts, String>);

/// Reader of the state of a sweep, which reads a record again only when its file changes.
#[derive(Debug)]
pub struct OverviewReader {
    results: PathBuf,
    read_packed: PackedReader,
    /// Records of `records.parquet`, and the messages about those that cannot be read; read once.
    packed: Option<(BTreeMap<String, RecordFacts>, Vec<String>)>,
    files: BTreeMap<PathBuf, ReadFile>,
}

impl OverviewReader {
    /// Reader of a results folder, with the reader of its packed records.
    pub fn new(results: PathBuf, read_packed: PackedReader) -> Self {
        Self { results, read_packed, packed: None, files: BTreeMap::new() }
    }

    /// Reads the state of the folder now.
    ///
    /// # Errors
    /// If the list of cells, the records or the claims cannot be read; unreadable records are part of the overview.
    pub fn read(&mut self) -> anyhow::Result<SweepOverview> {
        let manifest = SweepManifest::read(&self.results)?;
        // Before the records: a cell that ends in the meantime is shown as running, not as open.
        let claims = claim::list(&self.results)?;
        self.read_records()?;
        let packed = self.packed.iter().flat_map(|(packed, _)| packed);
        let mut records: BTreeMap<_, _> = packed.map(|(key, facts)| (key.clone(), facts)).collect();
        let mut unreadable = BTreeMap::new();
        for (path, (_, facts)) in &self.files {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            match facts {
                Ok(facts) => drop(records.insert(stem, facts)),
                Err(message) => drop(unreadable.insert(stem, message.clone())),
            }
        }
        let mut overview = self.overview(manifest.as_ref(), &claims, &records, unreadable);
        // They are no cells: what they hold is not known.
        overview.unreadable.extend(self.packed.iter().flat_map(|(_, messages)| messages.clone()));
        Ok(overview)
    }

    fn read_records(&mut self) -> Result<(), RecordError> {
        if self.packed.is_none() {
            let (mut packed, mut messages) = (BTreeMap::new(), Vec::new());
            for record in (self.read_packed)(&self.results)? {
                match record {
                    Ok(record) => drop(packed.insert(record.key.clone(), RecordFacts::of(record))),
                    Err(error) => messages.push(error.to_string()),
                }
            }
            self.packed = Some((packed, messages));
        }
        let read = |path: PathBuf| {
            let data = std::fs::metadata(&path);
            let stamp = data.map(|data| (data.modified().ok(), data.len())).unwrap_or_default();
            let known = self.files.get(&path).filter(|(known, _)| *known == stamp);
            let read = known.cloned().unwrap_or_else(|| {
                let facts = records::store::read_named(path.clone());
                (stamp, facts.map(RecordFacts::of).map_err(|error| error.to_string()))
            });
            (path, read)
        };
        let paths = records::store::record_files(&self.results)?;
        self.files = paths.into_par_iter().map(read).collect();
        Ok(())
    }

    fn overview(
        &self,
        manifest: Option<&SweepManifest>,
        claims: &[ListedClaim],
        records: &BTreeMap<String, &RecordFacts>,
        unreadable: BTreeMap<String, String>,
    ) -> SweepOverview {
        let planned = manifest.iter().flat_map(|manifest| &manifest.cells);
        let planned = planned.map(|cell| (cell.key.as_str(), cell)).collect::<BTreeMap<_, _>>();
        let claims =
            claims.iter().map(|claim| (claim.key.as_str(), claim)).collect::<BTreeMap<_, _>>();
        let keys = planned.keys().chain(claims.keys()).copied();
        let keys = keys.chain(records.keys().chain(unreadable.keys()).map(String::as_str));
        let keys = keys.collect::<BTreeSet<_>>();
        let (mut running, mut open, mut unfinished) = (Vec::new(), Vec::new(), Vec::new());
        let mut ended = BTreeMap::<&'static str, usize>::new();
        for key in &keys {
            let (plan, record, claim) = (planned.get(key), records.get(*key), claims.get(key));
            let cell =
                record.map_or_else(|| name(key, plan.copied()), |record| record.cell.clone());
            let step = || CheckpointFolder::new(&self.results, key).newest_step();
            if let Some(claim) = claim.filter(|claim| claim.is_living()) {
                let holder = &claim.holder;
                running.push(RunningCell {
                    cell,
                    step: step(),
                    steps: plan.map(|plan| plan.steps),
                    host: holder.host.clone(),
                    pid: holder.pid,
                    since_utc: holder.since_utc.clone(),
                });
            } else if let Some(record) = record.filter(|r| r.status != Status::Interrupted) {
                *ended.entry(record.status.name()).or_default() += 1;
                let reason = record.status.reason();
                if !reason.is_empty() {
                    unfinished.push(EndedCell { cell, status: record.status.name(), reason });
                }
            } else if !unreadable.contains_key(*key) && (plan.is_some() || record.is_some()) {
                let last_process = claim.map(|claim| claim.holder.text());
                open.push(OpenCell { cell, step: step(), last_process });
            }
        }
        let speed = manifest.and_then(|manifest| manifest.flops_per_second);
        let times = CellTimes::of(records.values().copied(), speed);
        let processes = running.iter().map(|cell| (&cell.host, cell.pid));
        let processes = processes.collect::<BTreeSet<_>>().len();
        SweepOverview {
            suite: manifest.map(|manifest| manifest.suite.clone()),
            cells: keys.len(),
            seconds_left: times.left(&running, &open, &planned),
            following: manifest.map_or(0, |manifest| manifest.following),
            ended,
            running,
            open,
            unfinished,
            unreadable: unreadable.into_values().collect(),
            processes,
        }
    }
}

/// Name of a cell without a record.
fn name(key: &str, plan: Option<&ManifestCell>) -> CellName {
    let key = key.to_owned();
    match plan {
        None => CellName { key, ..CellName::default() },
        Some(ManifestCell { workload, encoding, seed, .. }) => {
            CellName { key, workload: workload.clone(), encoding: encoding.clone(), seed: *seed }
        }
    }
}

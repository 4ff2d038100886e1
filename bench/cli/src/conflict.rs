//! Different results of one cell, in several folders or in the files and the pack of one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use analysis::frame::Frames;
use analysis::packed::{PACKED, lean};
use records::store::read_named;
use records::{Program, RunRecord};

use super::differences::differences_of;
use super::out::complain;

/// Maximum number of conflicts that an error lists; the rest are counted.
const LISTED: usize = 3;

/// Why results with the same key differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// `pack --lean` left something out of one of them.
    Leaner,
    /// They are of other machines or programs.
    Elsewhere,
    /// Nothing in the records explains it.
    Unknown,
}

/// A record and the folder that has it.
#[derive(Clone, Copy)]
pub(super) struct FolderRecord<'a> {
    pub(super) folder: &'a Path,
    pub(super) record: &'a RunRecord,
}

/// Results of a cell, or weights of its training, that differ in two folders.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    key: String,
    folders: [PathBuf; 2],
    /// Differences, at least one.
    differences: Vec<String>,
    cause: Cause,
}

impl Conflict {
    /// Conflict of two records with the same key; `None` if a record is no result, or if they differ in
    /// timings and provenance alone.
    ///
    /// # Errors
    /// If a record has no JSON form.
    pub(super) fn of(
        first: FolderRecord<'_>,
        second: FolderRecord<'_>,
    ) -> serde_json::Result<Option<Self>> {
        let (one, other) = (first.record, second.record);
        if !(one.is_finished() && other.is_finished()) {
            return Ok(None);
        }
        // Suites may share cells.
        let other = &RunRecord { suite: one.suite.clone(), ..other.clone() };
        let differences = differences_of(one, other)?;
        if differences.is_empty() {
            return Ok(None);
        }
        let [lean_one, lean_other] = leaned(one, other);
        let cause = if differences_of(&lean_one, &lean_other)?.is_empty() {
            Cause::Leaner
        } else {
            cause(one, other)
        };
        let folders = [first, second].map(|place| place.folder.to_owned());
        Ok(Some(Self { key: one.key.clone(), folders, differences, cause }))
    }

    /// Conflict of the settings of two kept trainings; `None` if their weights are the same.
    fn of_weights(first: FolderRecord<'_>, second: FolderRecord<'_>) -> Option<Self> {
        let (one, other) = (first.record, second.record);
        let [own, others] = [one, other].map(|record| record.weights.as_ref().map(|w| &w.sha256));
        let [hash, other_hash] = [own, others].map(|hash| hash.map_or("none", String::as_str));
        let differences = vec![format!("{}.weights.sha256: {hash} and {other_hash}", one.key)];
        let folders = [first, second].map(|place| place.folder.to_owned());
        let conflict =
            Self { key: one.key.clone(), folders, differences, cause: cause(one, other) };
        (own != others).then_some(conflict)
    }
}

/// Cause of a difference that the provenance of two records gives.
fn cause(one: &RunRecord, other: &RunRecord) -> Cause {
    let place = |r: &RunRecord| (r.host.cpu.clone(), r.host.os.clone(), r.device.clone());
    let evaluated = |by: &Program| (by.commit.clone(), by.versions.clone(), by.host.cpu.clone());
    let program = |r: &RunRecord| {
        (r.commit.clone(), r.versions.clone(), r.evaluated_by.as_ref().map(evaluated))
    };
    let is_same = place(one) == place(other) && program(one) == program(other);
    if is_same { Cause::Unknown } else { Cause::Elsewhere }
}

/// Two records without what `pack --lean` leaves out of either.
fn leaned(one: &RunRecord, other: &RunRecord) -> [RunRecord; 2] {
    /// Removes the first elements of the longer list.
    fn as_short<T>(one: &mut Vec<T>, other: &mut Vec<T>) {
        let len = one.len().min(other.len());
        one.drain(..one.len() - len);
        other.drain(..other.len() - len);
    }
    let mut both = [one.clone(), other.clone()];
    // One by one: what is left out of a record depends on those beside it.
    for record in &mut both {
        lean(std::slice::from_mut(record));
    }
    let [one, other] = &mut both;
    as_short(&mut one.train.curve, &mut other.train.curve);
    as_short(&mut one.train.validations, &mut other.train.validations);
    as_short(&mut one.train.split_validations, &mut other.train.split_validations);
    as_short(&mut one.gates, &mut other.gates);
    for (one, other) in one.evals.iter_mut().zip(&mut other.evals) {
        if one.outcomes.is_none() || other.outcomes.is_none() {
            (one.outcomes, other.outcomes) = (None, None);
        }
    }
    both
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = self.folders.each_ref().map(|folder| folder.display());
        write!(f, "{one} and {other} have different results of the cell {}", self.key)?;
        let first = self.differences.first().map_or("", String::as_str);
        write!(f, ": {first}")?;
        match self.differences.len() - 1 {
            0 => Ok(()),
            more => write!(f, "; and {more} more, which `pe-bench records diff` lists"),
        }
    }
}

/// Refuses different results of a cell among records, each with its folder, unless they are of other machines or programs,
/// which is printed.
///
/// # Errors
/// The conflicts, with the remedy.
pub(super) fn refuse<'a>(
    records: impl IntoIterator<Item = (&'a Path, &'a RunRecord)>,
) -> anyhow::Result<()> {
    let mut seen = BTreeMap::<&str, FolderRecord<'_>>::new();
    let (mut unknown, mut elsewhere) = (Vec::new(), Vec::new());
    for (folder, record) in records {
        let own = FolderRecord { folder, record };
        let first = *seen.entry(record.key.as_str()).or_insert(own);
        if !std::ptr::eq(first.record, record)
            && let Some(conflict) = Conflict::of(first, own)?
        {
            match conflict.cause {
                Cause::Leaner => {}
                Cause::Elsewhere => elsewhere.push(conflict),
                Cause::Unknown => unknown.push(conflict),
            }
        }
        if !first.record.is_finished() {
            seen.insert(record.key.as_str(), own);
        }
    }
    if !elsewhere.is_empty() {
        complain(&format!(
            "note: {}\nThe results are from different machines or programs. If folders have different results of a \
             cell, the newest result counts. Within a folder the result in `cells` counts.",
            listed(&elsewhere, 1)
        ));
    }
    anyhow::ensure!(
        unknown.is_empty(),
        "{}\nname only the folders whose results are right, or move the other records away",
        listed(&unknown, LISTED)
    );
    Ok(())
}

/// Refuses different results of a cell in the files and in the packed records of a folder.
///
/// # Errors
/// As [`refuse`], and if records cannot be read.
pub(super) fn refuse_within(folders: &[PathBuf]) -> anyhow::Result<()> {
    for folder in folders {
        let (cells, pack) = (folder.join("cells"), folder.join(PACKED));
        let packed = analysis::folder::packed_with_file(folder)?;
        let paths = packed.iter().map(|record| cells.join(format!("{}.json", record.key)));
        // What cannot be read is reported with the records.
        let files: Vec<_> = paths.filter_map(|path| read_named(path).ok()).collect();
        let files = files.iter().map(|record| (cells.as_path(), record));
        refuse(files.chain(packed.iter().map(|record| (pack.as_path(), record))))?;
    }
    Ok(())
}

/// Refuses two kept trainings of a cell with different weights, unless they are of other machines or programs.
///
/// # Errors
/// The conflict, with the remedy.
pub(super) fn refuse_weights(
    first: FolderRecord<'_>,
    second: FolderRecord<'_>,
) -> anyhow::Result<()> {
    match Conflict::of_weights(first, second) {
        Some(conflict) if conflict.cause == Cause::Unknown => {
            anyhow::bail!("{conflict}; choose the folder of the weights with --results")
        }
        Some(conflict) => {
            complain(&format!(
                "note: {conflict}; the weights of {} are used",
                first.folder.display()
            ));
            Ok(())
        }
        None => Ok(()),
    }
}

/// The first few conflicts as lines, and the number of the others.
fn listed(conflicts: &[Conflict], most: usize) -> String {
    let shown = conflicts.iter().take(most).map(ToString::to_string).collect::<Vec<_>>();
    match conflicts.len().saturating_sub(most) {
        0 => shown.join("\n"),
        1 => format!("{}\n1 more cell has different results", shown.join("\n")),
        more => format!("{}\n{more} more cells have different results", shown.join("\n")),
    }
}

/// Refuses different results of a cell in the folders from which these frames were read.
///
/// # Errors
/// As [`refuse`], and if a folder cannot be read.
pub(super) fn refuse_in(frames: &[(&Path, &Frames)]) -> anyhow::Result<()> {
    let mut keys = BTreeSet::new();
    let mut shared = BTreeSet::new();
    for (_, frames) in frames {
        for key in frames.keys()? {
            if !keys.insert(key.clone()) {
                shared.insert(key);
            }
        }
    }
    if shared.is_empty() {
        return Ok(());
    }
    let mut records = Vec::new();
    for (folder, _) in frames {
        // What cannot be read is reported with the frames.
        let own = analysis::folder::read_each(folder)?.into_iter().flatten();
        let own = own.filter(|record| shared.contains(&record.key));
        records.extend(own.map(|record| (*folder, record)));
    }
    refuse(records.iter().map(|(folder, record)| (*folder, record)))
}

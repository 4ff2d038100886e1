//! `pe-bench records merge`: joins results folders that were written apart.

mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analysis::folder::packed_only;
use analysis::packed::PACKED;
use anyhow::Context as _;
use clap::Args;
use records::store::RecordError;
use records::{RunRecord, Status, store};
use serde::Serialize;

use super::conflict::{self, Conflict, FolderRecord};
use super::folders;
use super::out::{complain, counted, say};
use super::report::StoredReport;
use sweep::SweepManifest;
use sweep::claim;

/// Maximum number of messages of each kind that are printed; the rest are only counted.
const PRINTED: usize = 20;

/// Arguments of `records merge`.
#[derive(Args, Clone)]
pub(super) struct MergeArgs {
    /// Results folders to join.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Folder for the joined results. This folder may be one of the folders to join. Where results conflict, the
    /// results of this folder are kept.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

/// Result of joining folders.
#[derive(Debug, Default, Serialize)]
struct MergeSummary {
    /// Number of records in the joined folder.
    records: usize,
    /// Number of records that were copied into it, by their folder.
    copied: BTreeMap<String, usize>,
    /// Number of records that several folders had, with equal results.
    equal: usize,
    /// Conflicts of results with the same key; the first folder's are kept.
    differences: Vec<String>,
    /// Files that were left out because they are damaged or of a newer version.
    unreadable: Vec<String>,
    /// Number of files of weights that were copied.
    weights: usize,
    /// Number of cells without a result whose checkpoints were copied.
    checkpoints: usize,
    /// Cells that a process was running in one of the folders; their checkpoints are left out.
    running: Vec<String>,
}

/// Joins the folders. The exit status is 1 if records differ or are unreadable.
pub(super) fn merge(arguments: &MergeArgs) -> anyhow::Result<ExitCode> {
    let sources = sources(arguments)?;
    let out = &arguments.out;
    folders::create(&out.join("cells"))?;
    let mut summary = MergeSummary::default();
    let records = chosen(&sources, &mut summary)?;
    for (key, record) in &records {
        let to = out.join("cells").join(format!("{key}.json"));
        if to.is_file() {
            match store::read_named(to.clone()) {
                // Named among the files that are left out.
                Err(RecordError::NewerSchema { .. } | RecordError::Io { .. }) => continue,
                Err(RecordError::Damaged { .. }) => {
                    let aside = store::set_aside(&to)?;
                    complain(&format!("the damaged record is kept as {}", aside.display()));
                }
                _ => {}
            }
        }
        let copied = match &record.source {
            RecordSource::File(path) => files::copy(path, &to)?,
            RecordSource::Packed(packed) => files::write_changed(&to, packed.text()?.as_bytes())?,
        };
        if copied {
            *summary.copied.entry(record.folder.display().to_string()).or_default() += 1;
        }
    }
    summary.records = records.len();
    for source in &sources {
        files::weights(source, out, &mut summary)?;
    }
    // Cells that ran out of time or memory can be resumed too.
    let results = records.iter().filter(|(_, record)| record.rank == RESULT);
    let results = results.map(|(key, _)| key.as_str()).collect::<BTreeSet<_>>();
    files::checkpoints(&sources, out, &results, &mut summary)?;
    anyhow::ensure!(
        !records.is_empty()
            || summary.checkpoints > 0
            || !summary.unreadable.is_empty()
            || !summary.running.is_empty(),
        "{}: no records and no checkpoints, expected results folders of `pe-bench run`",
        sources.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
    );
    joined_plan(&sources, out)?;
    if let Some(note) = joined_criteria(&sources, out)? {
        complain(&note);
    }
    if arguments.json {
        say(&serde_json::to_string_pretty(&summary)?);
    } else {
        print(&summary, out);
    }
    let whole = summary.differences.is_empty() && summary.unreadable.is_empty();
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Folders to read, that of the output first if it has records.
fn sources(arguments: &MergeArgs) -> anyhow::Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    let mut seen = BTreeSet::new();
    let own = Some(&arguments.out).filter(|out| folders::has_results(out));
    for folder in own.into_iter().chain(&arguments.folders) {
        anyhow::ensure!(
            folders::has_results(folder),
            "{}: no records: there is neither a folder `cells` nor a file {PACKED}; expected a results folder of \
             `pe-bench run`",
            folder.display()
        );
        let place = folder.canonicalize().with_context(|| folder.display().to_string())?;
        if seen.insert(place) {
            sources.push(folder.clone());
        }
    }
    Ok(sources)
}

/// Where a record is.
enum RecordSource {
    File(PathBuf),
    Packed(Box<RunRecord>),
}

impl RecordSource {
    fn read(&self) -> Result<RunRecord, RecordError> {
        match self {
            Self::File(path) => RunRecord::read(path),
            Self::Packed(record) => Ok((**record).clone()),
        }
    }
}

/// Record that is kept for a cell.
struct ChosenRecord {
    source: RecordSource,
    folder: PathBuf,
    rank: u8,
}

/// Preference of a record with a result.
const RESULT: u8 = 2;

/// Preference of a record: a result before a failure, and that before a cell that was stopped.
fn rank(record: &RunRecord) -> u8 {
    match record.status {
        _ if record.is_finished() => RESULT,
        Status::Interrupted => 0,
        _ => 1,
    }
}

/// Chooses one record for each key, the first of those with the highest rank.
fn chosen(
    sources: &[PathBuf],
    summary: &mut MergeSummary,
) -> anyhow::Result<BTreeMap<String, ChosenRecord>> {
    conflict::refuse_within(sources)?;
    let mut chosen = BTreeMap::<String, ChosenRecord>::new();
    for folder in sources {
        let files = store::record_files(folder)?
            .into_iter()
            .map(|path| store::read_named(path.clone()).map(|record| (record, Some(path))));
        let packed = packed_only(folder)?.into_iter().map(|read| read.map(|r| (r, None)));
        for found in files.chain(packed) {
            let (record, path) = match found {
                Ok(found) => found,
                Err(error) => {
                    summary.unreadable.push(error.to_string());
                    continue;
                }
            };
            let rank = rank(&record);
            let mine = |record: &RunRecord| ChosenRecord {
                source: path.map_or_else(
                    || RecordSource::Packed(Box::new(record.clone())),
                    RecordSource::File,
                ),
                folder: folder.clone(),
                rank,
            };
            match chosen.get_mut(&record.key) {
                None => drop(chosen.insert(record.key.clone(), mine(&record))),
                Some(other) if other.rank < rank => *other = mine(&record),
                Some(other) if other.rank > rank || rank < RESULT => {}
                Some(other) => {
                    let kept = other.source.read()?;
                    let conflict = Conflict::of(
                        FolderRecord { folder: &other.folder, record: &kept },
                        FolderRecord { folder, record: &record },
                    )?;
                    summary.equal += usize::from(conflict.is_none());
                    summary.differences.extend(conflict.iter().map(ToString::to_string));
                }
            }
        }
    }
    Ok(chosen)
}

/// Writes the list of all planned cells of the folders.
fn joined_plan(sources: &[PathBuf], out: &Path) -> anyhow::Result<()> {
    let mut joined: Option<SweepManifest> = None;
    for folder in sources {
        let Some(other) = SweepManifest::read(folder)? else { continue };
        let Some(plan) = &mut joined else {
            joined = Some(other);
            continue;
        };
        let known = plan.cells.iter().map(|cell| cell.key.clone()).collect::<BTreeSet<_>>();
        // Cells of fresh seeds that one of the plans has do not follow any more. Those of other cells still do.
        let is_same = other.cells.iter().any(|cell| known.contains(&cell.key));
        let following = if is_same {
            plan.following.min(other.following)
        } else {
            plan.following.saturating_add(other.following)
        };
        plan.cells.extend(other.cells.into_iter().filter(|cell| !known.contains(&cell.key)));
        plan.following = following;
        if plan.suite != other.suite {
            plan.suite = format!("{}, {}", plan.suite, other.suite);
        }
    }
    Ok(joined.map_or(Ok(()), |plan| plan.write(out))?)
}

/// Writes the title and the criteria of the report, if the folders agree on them; otherwise returns a note.
fn joined_criteria(sources: &[PathBuf], out: &Path) -> anyhow::Result<Option<String>> {
    let mut stored = Vec::new();
    for folder in sources {
        stored.extend(StoredReport::read(folder)?);
    }
    let Some((first, others)) = stored.split_first() else { return Ok(None) };
    if others.iter().all(|other| other == first) {
        first.write(out)?;
        return Ok(None);
    }
    Ok(Some(
        "note: the folders have reports with different titles or settings; choose the settings with `pe-bench report \
         --settings`"
            .to_owned(),
    ))
}

fn print(summary: &MergeSummary, out: &Path) {
    let copied = summary.copied.iter().map(|(folder, count)| format!("{count} from {folder}"));
    let copied = copied.collect::<Vec<_>>().join(", ");
    say(&format!(
        "{} in {}; copied: {}",
        counted(summary.records, "record"),
        out.display(),
        if copied.is_empty() { "none" } else { &copied }
    ));
    for (count, name, what) in [
        (summary.equal, "record", "with equal results in several folders"),
        (summary.weights, "file", "of weights copied"),
        (summary.checkpoints, "cell", "without a result, with checkpoints copied"),
    ] {
        if count > 0 {
            say(&format!("{} {what}", counted(count, name)));
        }
    }
    for (name, what, messages) in [
        (
            "conflict",
            " of results or weights; the files in --out are kept, or else the files in the first folder that has them",
            &summary.differences,
        ),
        ("file", " left out", &summary.unreadable),
        ("running cell", " left out; merge again when no cell is running", &summary.running),
    ] {
        if !messages.is_empty() {
            complain(&format!("{}{what}:", counted(messages.len(), name)));
            messages.iter().take(PRINTED).for_each(|message| complain(&format!("  {message}")));
            if messages.len() > PRINTED {
                complain("  ...");
            }
        }
    }
}

/// Keys of the cells that a living process runs in a folder.
fn running(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let claims = claim::list(folder)?.into_iter().filter(claim::ListedClaim::is_living);
    Ok(claims.map(|claim| (claim.key, claim.holder.text())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweep::ManifestCell;

    fn manifest(keys: &[&str], following: usize) -> tempfile::TempDir {
        let cell = |key: &&str| ManifestCell {
            key: (*key).to_owned(),
            workload: "copy".to_owned(),
            encoding: "rope".to_owned(),
            seed: 0,
            steps: 10,
            train_flops: 1000,
        };
        let cells = keys.iter().map(cell).collect();
        let plan =
            SweepManifest { suite: "s".to_owned(), flops_per_second: None, following, cells };
        let folder = tempfile::tempdir().unwrap();
        plan.write(folder.path()).unwrap();
        folder
    }

    #[test]
    fn fresh_cells_that_are_planned_do_not_follow_and_those_of_other_cells_do() {
        let joined = |plans: &[tempfile::TempDir]| {
            let folders: Vec<PathBuf> = plans.iter().map(|plan| plan.path().to_owned()).collect();
            let out = tempfile::tempdir().unwrap();
            joined_plan(&folders, out.path()).unwrap();
            let plan = SweepManifest::read(out.path()).unwrap().unwrap();
            (plan.cells.len(), plan.following)
        };
        assert_eq!(joined(&[manifest(&["a", "b"], 6), manifest(&["a", "b", "c"], 0)]), (3, 0));
        assert_eq!(joined(&[manifest(&["a", "b"], 0), manifest(&["c"], 6)]), (3, 6));
    }
}

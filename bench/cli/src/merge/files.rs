//! Files beside records: weights and checkpoints, copied whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use records::store::RecordError;
use records::{RunRecord, Status, store};
use sha2::{Digest, Sha256};
use tasks::FileError;

use super::{MergeSummary, running};
use train::run::checkpoint::CheckpointFolder;

/// Copies a file, unless the other one has the same content; returns whether it did.
pub(super) fn copy(from: &Path, to: &Path) -> Result<bool, FileError> {
    write_changed(to, &fs::read(from).map_err(FileError::of("read", from))?)
}

/// Writes a file, unless it has that content; returns whether it did.
pub(super) fn write_changed(to: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    if fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(false);
    }
    write(to, bytes)?;
    Ok(true)
}

fn write(to: &Path, bytes: &[u8]) -> Result<(), FileError> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(FileError::of("create", folder))?;
    }
    store::write_atomically(to, bytes).map_err(FileError::of("write", to))
}

/// Copies kept weights whose hash is right. Those of a training that has ended replace those of one that has not, and among
/// these later ones replace earlier ones, since a cell resumes from the checkpoint that is furthest. Weights of two trainings
/// that have ended are reported if they differ, and the first are kept.
pub(super) fn weights(source: &Path, out: &Path, summary: &mut MergeSummary) -> anyhow::Result<()> {
    let folder = source.join("weights");
    for settings in store::files_in(&folder, "json").map_err(FileError::of("list", &folder))? {
        let tensors = settings.with_extension("safetensors");
        let record = match RunRecord::read(&settings) {
            Ok(record) => record,
            Err(error) => {
                summary.unreadable.push(error.to_string());
                continue;
            }
        };
        let to = out.join("weights").join(settings.file_name().unwrap_or_default());
        let there = match RunRecord::read(&to) {
            Err(RecordError::NewerSchema { .. }) => continue,
            found => found.ok(),
        };
        let stated = record.weights.as_ref().map(|weights| &weights.sha256);
        let is_done = record.status == Status::Done;
        let reached = |record: &RunRecord| record.weights.as_ref().map_or(0, |w| w.step);
        if let Some(there) = there {
            let hash = there.weights.as_ref().map(|weights| &weights.sha256);
            let is_same = hash.is_some() && hash == stated;
            if there.status == Status::Done {
                if is_done && !is_same {
                    let text = format!(
                        "{}: the weights differ from the weights of {}, which are kept",
                        settings.display(),
                        to.display()
                    );
                    summary.differences.push(text);
                }
                continue;
            }
            if !is_done && (is_same || reached(&there) >= reached(&record)) {
                continue;
            }
        }
        // Missing weights have no hash either.
        let bytes = fs::read(&tensors).unwrap_or_default();
        if stated != Some(&store::hex(&Sha256::digest(&bytes))) {
            let message = format!(
                "{}: the weights do not have the hash that their settings file states",
                tensors.display()
            );
            summary.unreadable.push(message);
            continue;
        }
        // The weights first: settings without them would be believed.
        write(&to.with_extension("safetensors"), &bytes)?;
        copy(&settings, &to)?;
        summary.weights += 1;
    }
    Ok(())
}

/// Copies the checkpoints of cells without a result, from the folder in which the cell got furthest.
pub(super) fn checkpoints(
    sources: &[PathBuf],
    out: &Path,
    with_result: &BTreeSet<&str>,
    summary: &mut MergeSummary,
) -> anyhow::Result<()> {
    let mut furthest = BTreeMap::<String, (usize, &PathBuf)>::new();
    for source in sources {
        let running = running(source)?;
        for (key, process) in &running {
            summary.running.push(format!("{key} in {}, by {process}", source.display()));
        }
        let Ok(cells) = fs::read_dir(source.join("checkpoints")) else { continue };
        for cell in cells.flatten() {
            let Ok(key) = cell.file_name().into_string() else { continue };
            if with_result.contains(key.as_str()) || running.contains_key(&key) {
                continue;
            }
            let Some(step) = CheckpointFolder::new(source, &key).newest_step() else { continue };
            if furthest.get(&key).is_none_or(|(other, _)| *other < step) {
                furthest.insert(key, (step, source));
            }
        }
    }
    for (key, (_, source)) in furthest {
        let mut copied = false;
        for path in CheckpointFolder::new(source, &key).newest_first()? {
            let name = path.file_name().unwrap_or_default();
            copied |= copy(&path, &out.join("checkpoints").join(&key).join(name))?;
        }
        summary.checkpoints += usize::from(copied);
    }
    Ok(())
}

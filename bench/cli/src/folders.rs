//! Results folders that a command reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use analysis::frame::Frames;
use analysis::packed::PACKED;
use anyhow::Context as _;
use records::RunRecord;
use records::store::RecordError;
use sweep::{CellFile, SweepOptions};

use super::conflict;
use super::out::complain;

/// Maximum depth of a results folder below a named one: `results`, `contextual`, `machine_2026-11`.
const DEPTH: usize = 3;

/// Results folders at or below the named paths, without duplicates; below `results` if none is named.
///
/// Paths may come from a shell that expands `results/*`: files and folders without results are skipped with a note.
///
/// # Errors
/// If a named path does not exist, or there are no results at all.
pub(super) fn or_all(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let root = [PathBuf::from("results")];
    let asked = if named.is_empty() { &root } else { named };
    for path in asked {
        anyhow::ensure!(
            path.exists() || named.is_empty(),
            "{}: there is no such folder, expected a results folder of `pe-bench run`",
            path.display()
        );
        let below = at_or_below(path, DEPTH);
        if below.is_empty() && named.len() > 1 {
            complain(&format!("{}: skipped, because it has no results", path.display()));
        }
        found.extend(below.into_iter().filter(|folder| seen.insert(folder.clone())));
    }
    anyhow::ensure!(
        !found.is_empty(),
        "{}: no records: there is neither a folder `cells` nor a file {PACKED}; run a suite first (`pe-bench run \
         quick`), or give its results folder",
        names(asked)
    );
    Ok(found)
}

/// Creates a folder and those that it is in, unless they exist.
///
/// # Errors
/// With the path, and the reason if something else is in its place.
pub(super) fn create(folder: &Path) -> anyhow::Result<()> {
    refuse_other(folder)?;
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))
}

/// Refuses the path of a folder, which need not exist, if something else is there or at a folder that it is in.
///
/// # Errors
/// With the path of what is there.
pub(super) fn refuse_other(folder: &Path) -> anyhow::Result<()> {
    let is_other = |place: &&Path| place.symlink_metadata().is_ok() && !place.is_dir();
    match folder.ancestors().find(is_other) {
        None => Ok(()),
        Some(place) => anyhow::bail!(
            "{} is a file, or a link that leads to no folder, expected a folder; remove it, or choose another folder",
            place.display()
        ),
    }
}

/// Whether a folder contains a `cells` folder or packed records.
pub(super) fn has_results(folder: &Path) -> bool {
    folder.join("cells").is_dir() || folder.join(PACKED).is_file()
}

/// Folders at or below `folder` that contain a `cells` folder or packed records, sorted by name; the search stops at each
/// of them.
fn at_or_below(folder: &Path, depth: usize) -> Vec<PathBuf> {
    if has_results(folder) {
        return vec![folder.to_owned()];
    }
    if depth == 0 {
        return Vec::new();
    }
    folders_in(folder).iter().flat_map(|folder| at_or_below(folder, depth - 1)).collect()
}

/// Folders directly inside another one, sorted by name.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Folders with results at or below `folder` and inside the folders of it that have results themselves: records of the
/// same suite that are kept, for example `results/zoo/machine_2026-11` below `results/zoo`.
pub(super) fn kept_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = at_or_below(folder, DEPTH);
    found.extend(folders_in(folder).iter().flat_map(|inner| at_or_below(inner, DEPTH - 1)));
    found.dedup();
    found
}

/// Question whether the results folders below these folders were meant; empty if there are none.
pub(super) fn meant(folders: &[PathBuf]) -> String {
    let below: Vec<PathBuf> =
        folders.iter().flat_map(|folder| at_or_below(folder, DEPTH)).collect();
    if below.is_empty() { String::new() } else { format!("; did you mean {}?", names(&below)) }
}

/// Paths of folders in a sentence, of many only the first.
pub(super) fn names(folders: &[PathBuf]) -> String {
    const SHOWN: usize = 4;
    let shown = folders.iter().take(SHOWN).map(|folder| folder.display().to_string());
    let shown = shown.collect::<Vec<_>>().join(", ");
    match folders.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} other folders"),
    }
}

/// Frames of the records of each folder, with the errors of files that are no readable records.
///
/// # Errors
/// If a folder cannot be listed, or two folders, or the files and the pack of one, have different results of a cell.
pub(super) fn frames(folders: &[PathBuf]) -> anyhow::Result<Vec<(Frames, Vec<RecordError>)>> {
    let read = folders.iter().map(|folder| analysis::frame::read_frames(folder));
    let read = read.collect::<Result<Vec<_>, _>>()?;
    let pairs = folders.iter().zip(&read).map(|(folder, (frames, _))| (folder.as_path(), frames));
    conflict::refuse_in(&pairs.collect::<Vec<_>>())?;
    conflict::refuse_within(folders)?;
    Ok(read)
}

/// Reads all records of the folders, with the errors of files that are no readable records.
///
/// # Errors
/// If there is no record, and those of [`found`].
pub(super) fn readable(folders: &[PathBuf]) -> anyhow::Result<(Vec<RunRecord>, Vec<RecordError>)> {
    let (records, errors) = found(folders)?;
    if records.is_empty() {
        anyhow::bail!(errors.into_iter().next().map_or_else(
            || {
                format!(
                    "{}: no records: there is neither a folder `cells` nor a file {PACKED}; expected a results folder \
                     of `pe-bench run`{}",
                    names(folders),
                    meant(folders)
                )
            },
            |error| error.to_string()
        ));
    }
    Ok((records, errors))
}

/// Reads all records of the folders, which may have none, with the errors of files that are no readable records.
///
/// # Errors
/// If a folder cannot be listed, or two folders, or the files and the pack of one, have different results of a cell.
pub(super) fn found(folders: &[PathBuf]) -> anyhow::Result<(Vec<RunRecord>, Vec<RecordError>)> {
    let (mut records, mut errors) = (Vec::new(), Vec::new());
    for folder in folders {
        for record in analysis::folder::read_each(folder)? {
            match record {
                Ok(record) => records.push((folder.as_path(), record)),
                Err(error) => errors.push(error),
            }
        }
    }
    conflict::refuse(records.iter().map(|(folder, record)| (*folder, record)))?;
    conflict::refuse_within(folders)?;
    Ok((records.into_iter().map(|(_, record)| record).collect(), errors))
}

/// Reads all records of the folders.
///
/// # Errors
/// If a record cannot be read, there is none, or two folders have different results of a cell.
pub(super) fn records(folders: &[PathBuf]) -> anyhow::Result<Vec<RunRecord>> {
    let (records, errors) = readable(folders)?;
    match errors.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(records),
    }
}

/// Messages of errors of records.
pub(super) fn messages(errors: &[RecordError]) -> Vec<String> {
    let place = |error: &RecordError| match error.path() {
        Some(path) if path.file_name().is_some_and(|name| name == PACKED) => "packed cells",
        _ => "one cell",
    };
    errors.iter().map(|error| format!("{}: {error}", place(error))).collect()
}

/// Refuses to run cells whose results may be among damaged packed records, unless all are to run again; without such cells
/// the damage is only told.
///
/// # Errors
/// The first of the damages, which says what to do.
pub(super) fn refuse_lost(
    damaged: &[RecordError],
    cells: &[CellFile],
    options: &SweepOptions,
) -> anyhow::Result<()> {
    let is_lost = !options.retry.force && !cells.iter().all(CellFile::is_settled);
    for error in damaged {
        anyhow::ensure!(!is_lost, "{error}");
        complain(&error.to_string());
    }
    Ok(())
}

/// Refuses results from which records are left out, after the others were shown; `what` is what they are missing in.
///
/// # Errors
/// If messages say that records are left out.
pub(super) fn refuse_left_out(what: &str, messages: &[String]) -> anyhow::Result<()> {
    const SHOWN: usize = 3;
    let shown = messages.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    let more = match messages.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more, {} in total", messages.len()),
    };
    anyhow::ensure!(messages.is_empty(), "left out of the {what}: {shown}{more}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_below_what_a_shell_names_and_the_rest_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for folder in ["b/cells", "a/machine_1/cells", "a/machine_1/cells/deeper/cells", "empty"] {
            std::fs::create_dir_all(path(folder)).unwrap();
        }
        std::fs::write(path("README.md"), "").unwrap();
        let named = ["README.md", "a", "b", "b", "empty"].map(path);
        assert_eq!(or_all(&named).unwrap(), [path("a/machine_1"), path("b")]);
        assert_eq!(or_all(&[path("b")]).unwrap(), [path("b")]);
        let said = or_all(&[path("empty")]).unwrap_err().to_string();
        assert!(said.contains("neither a folder `cells` nor a file records.parquet"), "{said}");
        let said = or_all(&[path("b"), path("c")]).unwrap_err().to_string();
        assert!(said.contains("there is no such folder"), "{said}");
    }
}

//! Folders of results that a command reads.

use std::path::{Path, PathBuf};

use reports::RunRecord;

/// The folders that were named; none: every folder below `results` that has cells, in the order of their names.
///
/// # Errors
/// If none were named and there is none.
pub(super) fn or_all(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let root = Path::new("results");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|folder| folder.join("cells").is_dir())
        .collect();
    folders.sort();
    anyhow::ensure!(
        !folders.is_empty(),
        "there are no results below `results`; run a suite first (`pe-bench run quick`), or name a folder that it \
         wrote to"
    );
    Ok(folders)
}

/// All records of folders.
///
/// # Errors
/// A record that cannot be read, and a folder without any.
pub(super) fn records(folders: &[PathBuf]) -> anyhow::Result<Vec<RunRecord>> {
    let mut records = Vec::new();
    for folder in folders {
        let found = reports::read_dir(folder)?;
        anyhow::ensure!(
            !found.is_empty(),
            "{}: no records in its `cells` folder; give the folder that `pe-bench run` wrote to",
            folder.display()
        );
        records.extend(found);
    }
    Ok(records)
}

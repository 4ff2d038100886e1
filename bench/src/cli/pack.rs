//! `pe-bench pack`: the records of a results folder in one file.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use reports::store::{PACKED, pack, write_atomically};

use super::folders;
use super::out::say;

/// Arguments of `pack`.
#[derive(Args, Clone)]
pub(crate) struct PackArgs {
    /// Results folder.
    results: PathBuf,
    /// Folder of the file; default: the results folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Leave out results by sample property, and of cells that only chose a rate also curves, gates and single answers.
    #[arg(long)]
    lean: bool,
}

pub(super) fn run(arguments: &PackArgs) -> anyhow::Result<()> {
    let PackArgs { results, out, lean } = arguments;
    let mut records = folders::records(std::slice::from_ref(results))?;
    if *lean {
        records.iter_mut().for_each(reports::RunRecord::lean);
    }
    let bytes = pack(&records)?;
    let folder = out.as_deref().unwrap_or(results);
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create --out {}", folder.display()))?;
    let path = folder.join(PACKED);
    write_atomically(&path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
    // A report of the packed records has the suite's title, criteria and question.
    let stored = Path::new(super::report::STORED);
    if folder != results && results.join(stored).exists() {
        std::fs::copy(results.join(stored), folder.join(stored))
            .with_context(|| format!("cannot copy {} to {}", stored.display(), folder.display()))?;
    }
    say(&format!("{}: {} records, {} bytes", path.display(), records.len(), bytes.len()));
    Ok(())
}

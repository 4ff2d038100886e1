//! `pe-bench records pack`: the records of a results folder in one file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::folder::packed_only;
use analysis::packed::{PACKED, lean, pack};
use anyhow::Context as _;
use clap::Args;
use records::RunRecord;
use records::store::write_atomically;

use super::folders;
use super::out::{counted, say};

/// Arguments of `records pack`.
#[derive(Args, Clone)]
pub(crate) struct PackArgs {
    /// Results folder.
    results: PathBuf,
    /// Folder to write the file to; default: the results folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Make the file smaller. Leave out slices (results by sample property). Round times and the numbers of curves and
    /// validations. Round the loss of each question to one of 86 evenly spaced values from the smallest to the largest
    /// loss of the evaluation. For cells that were only run to choose a learning rate, also leave out curves, gates,
    /// individual answers, validations of splits, and all validations except the last.
    #[arg(long = "lean")]
    is_lean: bool,
}

pub(super) fn run(arguments: &PackArgs) -> anyhow::Result<()> {
    let PackArgs { results, out, is_lean } = arguments;
    let mut records = folders::records(std::slice::from_ref(results))?;
    let whole = records.clone();
    if *is_lean {
        lean(&mut records);
    }
    let bytes = pack(&records)?;
    let folder = out.as_deref().unwrap_or(results);
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create --out {}", folder.display()))?;
    check_loses_nothing(folder, whole, &records)?;
    let path = folder.join(PACKED);
    write_atomically(&path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
    // A report of the packed records has the suite's title, criteria and question.
    let stored = Path::new(super::report::STORED);
    let is_other = folder.canonicalize().ok() != results.canonicalize().ok();
    if is_other && results.join(stored).exists() {
        let text = std::fs::read(results.join(stored)).with_context(|| {
            format!("cannot read {} in {}", stored.display(), results.display())
        })?;
        write_atomically(&folder.join(stored), &text).with_context(|| {
            format!("cannot write {} to {}", stored.display(), folder.display())
        })?;
    }
    say(&format!(
        "{}: {}, {} bytes",
        path.display(),
        counted(records.len(), "record"),
        bytes.len()
    ));
    Ok(())
}

/// Refuses to replace packed records that have no file of their own by fewer records, or by ones with less in them; `whole`
/// are the new records before anything is left out.
fn check_loses_nothing(
    folder: &Path,
    whole: Vec<RunRecord>,
    records: &[RunRecord],
) -> anyhow::Result<()> {
    // Records with NaN do not equal themselves, their texts do.
    let text = |record: &RunRecord| serde_json::to_string(record);
    let new: BTreeMap<&str, &RunRecord> = records.iter().map(|r| (r.key.as_str(), r)).collect();
    let (mut absent, mut fuller) = (0, 0);
    let old: Vec<RunRecord> = packed_only(folder)?.into_iter().collect::<Result<_, _>>()?;
    // What is left out of a record depends on the others.
    let mut leaner: BTreeMap<String, RunRecord> =
        whole.into_iter().map(|record| (record.key.clone(), record)).collect();
    leaner.extend(old.iter().map(|record| (record.key.clone(), record.clone())));
    let mut leaner: Vec<RunRecord> = leaner.into_values().collect();
    lean(&mut leaner);
    let leaner: BTreeMap<&str, &RunRecord> = leaner.iter().map(|r| (r.key.as_str(), r)).collect();
    for old in &old {
        let key = old.key.as_str();
        let Some(new) = new.get(key) else {
            absent += 1;
            continue;
        };
        let is_leaner = text(new)? == text(leaner[key])? && text(new)? != text(old)?;
        fuller += usize::from(is_leaner);
    }
    let path = folder.join(PACKED);
    anyhow::ensure!(
        absent == 0,
        "{} has {absent} records that would be lost, because the folder to pack lacks them; join the folders with \
         `pe-bench records merge` and pack the result, or use another --out",
        path.display()
    );
    anyhow::ensure!(
        fuller == 0,
        "--lean would delete the only copy of some data of {} in {}; use another --out",
        counted(fuller, "record"),
        path.display()
    );
    Ok(())
}

//! `pe-bench count`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use pe_zoo::Combination;
use reports::{RunRecord, Status};

use super::folders;
use super::out::{complain, say};
use crate::inspect::retrain::cell_of;
use crate::instructions::{CountError, step_instructions};
use crate::run::counts::take_steps;

/// Arguments of `count`.
#[derive(Args, Clone)]
pub(crate) struct CountArgs {
    /// Folder with the results.
    results: PathBuf,
    /// This workload instead of the first that each encoding has.
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// These encodings only, separated by commas: names of the suite.
    #[arg(long)]
    encodings: Option<String>,
}

/// Counts and keeps. A machine that cannot count is no error: the records then say nothing, and who compares them says
/// that.
pub(super) fn run(arguments: &CountArgs) -> anyhow::Result<()> {
    let records = folders::records(std::slice::from_ref(&arguments.results))?;
    let chosen = chosen(&records, arguments);
    anyhow::ensure!(
        !chosen.is_empty(),
        "{}: no finished cell of that workload and those encodings; run the suite first, or name some that it has",
        arguments.results.display()
    );
    for record in chosen {
        let mut record = record.clone();
        let file = arguments.results.join("cells").join(format!("{}.json", record.key));
        let counted = match step_instructions(&file) {
            Ok(counted) => counted,
            Err(CountError::NotHere) => {
                complain(&format!("instructions: {}", CountError::NotHere));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        record.step_instructions = Some(counted);
        record.write(&arguments.results)?;
        let RunRecord { encoding, workload, seed, .. } = &record;
        say(&format!(
            "{} on {workload}, seed {seed}: {counted} instructions a step",
            encoding.name
        ));
    }
    Ok(())
}

/// Of each encoding the first finished cell by workload, seed and key.
fn chosen<'a>(records: &'a [RunRecord], arguments: &CountArgs) -> Vec<&'a RunRecord> {
    let names = arguments.encodings.as_deref().map(Combination::split_list);
    let place = |r: &RunRecord| (r.workload.clone(), r.seed, r.key.clone());
    let mut chosen: BTreeMap<&str, &RunRecord> = BTreeMap::new();
    let wanted = |r: &&RunRecord| {
        r.status == Status::Done
            && arguments.workload.as_ref().is_none_or(|name| r.workload == *name)
            && names.as_ref().is_none_or(|names| names.contains(&r.encoding.name.as_str()))
    };
    for record in records.iter().filter(wanted) {
        let held = chosen.entry(&record.encoding.name).or_insert(record);
        if place(record) < place(held) {
            *held = record;
        }
    }
    chosen.into_values().collect()
}

/// Takes steps of a record's cell, to be counted from outside; prints what each asked of the allocator.
pub(super) fn steps(record: &Path, count: usize) -> anyhow::Result<()> {
    let (cell, task) = cell_of(&RunRecord::read(record)?)?;
    let asked = take_steps(&cell, &*task, count).map_err(anyhow::Error::msg)?;
    for two in asked.windows(2) {
        let (count, bytes) = (two[1].count - two[0].count, two[1].bytes - two[0].bytes);
        say(&format!("{count} allocations, {bytes} bytes"));
    }
    Ok(())
}

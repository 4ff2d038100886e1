//! `pe-bench count`: instruction counts of training steps.

mod instructions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use records::RunRecord;

use super::compute::ComputeArgs;
use super::folders;
use super::out::{complain, say};
use instructions::{CountError, step_instructions};
use train::experiment::of_record;
use train::run::counts::take_steps;

/// Arguments of `count`.
#[derive(Args, Clone)]
pub(crate) struct CountArgs {
    /// Results folder.
    results: PathBuf,
    /// Workload to count; default: the first of each encoding.
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// Encodings to count, separated by commas, by their names in the suite; default: all.
    #[arg(long)]
    encodings: Option<String>,
    #[command(flatten)]
    compute: ComputeArgs,
}

/// Counts the instructions and adds them to the records. A machine without valgrind is not an error: the records then
/// have no counts, and `nightly` reports which comparisons are missing.
pub(super) fn run(arguments: &CountArgs) -> anyhow::Result<()> {
    let records = folders::records(std::slice::from_ref(&arguments.results))?;
    let CountArgs { results, workload, encodings, .. } = arguments;
    let finished = folders::finished(results, &records, workload.as_deref(), encodings.as_deref())?;
    let chosen = first_of_each(finished);
    for record in &chosen {
        of_record(record)?;
    }
    analysis::folder::unpack(results)?;
    for record in chosen {
        let mut record = record.clone();
        let file = arguments.results.join("cells").join(format!("{}.json", record.key));
        let counted = match step_instructions(&file, &arguments.compute.arguments()) {
            Ok(counted) => counted,
            Err(CountError::NotHere) => {
                complain(&format!("instructions: {}", CountError::NotHere));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let note = if arguments.compute.is_default() {
            record.step_instructions = Some(counted);
            record.write(&arguments.results)?;
            ""
        } else {
            ", not stored, because the command line changes where the record's cell computes"
        };
        let RunRecord { encoding, workload, seed, .. } = &record;
        say(&format!(
            "{} on {workload}, seed {seed}: {counted} instructions per step{note}",
            encoding.name
        ));
    }
    Ok(())
}

/// Selects the first finished cell of each encoding, in order of workload, seed and key.
fn first_of_each(records: Vec<&RunRecord>) -> Vec<&RunRecord> {
    let place = |r: &RunRecord| (r.workload.clone(), r.seed, r.key.clone());
    let mut chosen: BTreeMap<&str, &RunRecord> = BTreeMap::new();
    for record in records {
        let held = chosen.entry(&record.encoding.name).or_insert(record);
        if place(record) < place(held) {
            *held = record;
        }
    }
    chosen.into_values().collect()
}

/// Runs training steps of a record's cell for an external instruction counter and prints the allocations of each step.
pub(super) fn steps(record: &Path, count: usize, compute: &ComputeArgs) -> anyhow::Result<()> {
    let (mut cell, task) = of_record(&RunRecord::read(record)?)?;
    compute.apply(&mut cell)?;
    let asked = take_steps(&cell, &*task, count).map_err(anyhow::Error::msg)?;
    for two in asked.windows(2) {
        let (count, bytes) = (two[1].count - two[0].count, two[1].bytes - two[0].bytes);
        say(&format!("{count} allocations, {bytes} bytes"));
    }
    Ok(())
}

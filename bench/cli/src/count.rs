//! Instruction counts of training steps.

mod instructions;

use std::collections::BTreeMap;
use std::path::Path;

use records::RunRecord;

use super::cells::CellSelection;
use super::folders;
use super::out::{complain, say};
use instructions::step_instructions;
use train::experiment::of_record;
use train::run::counts::take_steps;

/// Counts the instructions of the first cell of each encoding and adds them to its record. Where they cannot be counted,
/// the night continues, and its verdict lists them as missing.
pub(super) fn add_instructions(results: &Path) -> anyhow::Result<()> {
    // The verdict names those that cannot be read.
    let (records, _) = folders::readable(&[results.to_owned()])?;
    let chosen = first_of_each(CellSelection::default().finished(&records)?);
    for record in &chosen {
        of_record(record)?;
    }
    analysis::folder::unpack(results)?;
    for record in chosen {
        let file = results.join("cells").join(format!("{}.json", record.key));
        let counted = match step_instructions(&file) {
            Ok(counted) => counted,
            Err(error) => {
                complain(&format!("CPU instructions are not counted on this machine: {error:#}"));
                return Ok(());
            }
        };
        RunRecord { step_instructions: Some(counted), ..record.clone() }.write(results)?;
        let RunRecord { encoding, workload, seed, .. } = record;
        complain(&format!(
            "{} on {workload}, seed {seed}: {counted} instructions per step",
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
pub(super) fn steps(record: &Path, count: usize) -> anyhow::Result<()> {
    let (cell, task) = of_record(&RunRecord::read(record)?)?;
    let asked = take_steps(&cell, &*task, count)?;
    for two in asked.windows(2) {
        let (count, bytes) = (two[1].count - two[0].count, two[1].bytes - two[0].bytes);
        say(&format!("{count} allocations, {bytes} bytes"));
    }
    Ok(())
}

//! `pe-bench nightly`: the gate of the nightly run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analysis::nightly::history::Night;
use analysis::nightly::{NightlyVerdict, history, judge};
use analysis::packed::PACKED;
use anyhow::Context;
use clap::Args;
use records::{RunRecord, store};
use reports::{html_document, markdown_document, trend};

use super::count;
use super::folders;
use super::out::{complain, counted, say};

/// Exit status when the gate fails.
const GATE: u8 = 3;

/// Arguments of `nightly`.
#[derive(Args, Clone)]
pub(crate) struct NightlyArgs {
    /// Results folder of this night.
    results: PathBuf,
    /// Results folder of the accepted baseline.
    #[arg(long, value_name = "DIR")]
    baseline: PathBuf,
    /// Folder of earlier nightly results. The command adds the results of this night to the folder, and writes
    /// `trend.html` and `trend.md` there.
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// First count the CPU instructions of a training step of each encoding, and add the counts to the records of this
    /// night; needs valgrind.
    #[arg(long)]
    count: bool,
    /// Make the results of this night the new baseline, even if the gate fails.
    #[arg(long)]
    accept: bool,
    /// Print the verdict as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &NightlyArgs) -> anyhow::Result<ExitCode> {
    if arguments.count {
        count::add_instructions(&arguments.results)?;
    }
    let (night, mut errors) = folders::readable(std::slice::from_ref(&arguments.results))?;
    let (baseline, of_baseline) = folders::found(std::slice::from_ref(&arguments.baseline))?;
    if baseline.is_empty() {
        folders::refuse_left_out("baseline", &folders::messages(&of_baseline))?;
    }
    errors.extend(of_baseline);
    let verdict = (!baseline.is_empty()).then(|| judge(&night, &baseline));
    anyhow::ensure!(
        verdict.is_some() || arguments.accept,
        "{}: no baseline yet; check the report of this night, then make its results the baseline with --accept",
        arguments.baseline.display()
    );
    let passed = verdict.as_ref().map(NightlyVerdict::passes);
    match (&verdict, arguments.json) {
        (Some(verdict), true) => say(&serde_json::to_string_pretty(verdict)?),
        (Some(verdict), false) => verdict.lines().iter().for_each(|line| say(line)),
        (None, _) => complain("there is no baseline to compare with"),
    }
    folders::refuse_left_out("verdict", &folders::messages(&errors))?;
    if let Some(folder) = &arguments.history {
        keep(&night, passed, folder)?;
    }
    if arguments.accept {
        replace(&night, &arguments.baseline)?;
        complain(&format!("accepted: {} in the new baseline", counted(night.len(), "cell")));
        return Ok(ExitCode::SUCCESS);
    }
    if passed == Some(false) {
        complain("the gate failed; if the change is intended, accept this night with --accept");
        return Ok(ExitCode::from(GATE));
    }
    Ok(ExitCode::SUCCESS)
}

fn keep(records: &[RunRecord], passed: Option<bool>, folder: &Path) -> anyhow::Result<()> {
    if let Some(night) = Night::of(records, passed) {
        night.write(folder)?;
    }
    let nights = history::read(folder)?;
    let trend = trend::document(&nights);
    for (name, text) in
        [("trend.html", html_document(&trend)), ("trend.md", markdown_document(&trend))]
    {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    complain(&format!(
        "trend of {}: {}",
        counted(nights.len(), "night"),
        folder.join("trend.html").display()
    ));
    Ok(())
}

/// Replaces the records of a folder. New records are written before old ones are removed, so that there is always a
/// baseline.
fn replace(records: &[RunRecord], folder: &Path) -> anyhow::Result<()> {
    let written = records
        .iter()
        .map(|record| record.write(folder))
        .collect::<Result<std::collections::BTreeSet<_>, _>>()?;
    for path in store::record_files(folder)?.iter().filter(|path| !written.contains(*path)) {
        std::fs::remove_file(path).with_context(|| path.display().to_string())?;
    }
    let packed = folder.join(PACKED);
    match std::fs::remove_file(&packed) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| packed.display().to_string())
        }
        _ => Ok(()),
    }
}

//! `pe-bench report`: reports from existing records.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::folders;
use super::out::say;

/// Default output folder of a report over several results folders.
pub(super) const ALL: &str = "results/report";

/// Criteria of a report: when a run counts as solved, and the base of an ablation.
#[derive(Args, Clone, Default)]
pub(crate) struct Criteria {
    /// TOML file with the criteria of the report; fields as in the `[report]` section of a suite.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Encoding that all others are compared with as ablations, by its name in the suite.
    #[arg(long, value_name = "NAME")]
    ablation_base: Option<String>,
}

impl Criteria {
    /// Settings of the report: those of the file if one is given, otherwise `suite`'s; with the ablation base, if given.
    ///
    /// # Errors
    /// If the file cannot be read, or a field is unknown or out of range; the error names it.
    pub(super) fn over(&self, suite: reports::Settings) -> anyhow::Result<reports::Settings> {
        let mut settings = match &self.settings {
            Some(path) => read(path)?,
            None => suite,
        };
        if let Some(base) = &self.ablation_base {
            settings.ablation_base = Some(base.clone());
        }
        settings.check()?;
        Ok(settings)
    }
}

fn read(path: &Path) -> anyhow::Result<reports::Settings> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read --settings {}", path.display()))?;
    toml::from_str(&text).map_err(|error| {
        let said = pe_zoo::settings::explain(&error.to_string());
        anyhow::anyhow!("--settings {}: {said}", path.display())
    })
}

/// Arguments of `report`.
#[derive(Args, Clone)]
pub(crate) struct ReportArgs {
    /// Results folders (with a `cells` folder), or folders that contain some.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Output folder; default: the results folder itself, or results/report for several.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Formats to write, separated by commas; default: all.
    #[arg(long, value_delimiter = ',', value_name = "NAME", value_parser = formats())]
    formats: Vec<String>,
    #[command(flatten)]
    criteria: Criteria,
}

fn formats() -> clap::builder::PossibleValuesParser {
    reports::formats::FORMATS.iter().map(|format| format.name()).collect::<Vec<_>>().into()
}

pub(super) fn report(arguments: &ReportArgs) -> anyhow::Result<()> {
    let ReportArgs { results, out, formats, criteria } = arguments;
    let settings = criteria.over(reports::Settings::default())?;
    let folders = folders::or_all(results)?;
    let named = results.iter().map(|r| r.display().to_string()).collect::<Vec<_>>();
    let (frames, meta) = gathered(&folders, &named.join(" "))?;
    let out = out.clone().unwrap_or_else(|| match folders.as_slice() {
        [one] => one.clone(),
        // The report of several folders is not written to any of them.
        _ => PathBuf::from(ALL),
    });
    let rendered = reports::render_report(frames, &meta, &settings, formats)?;
    reports::write_files(&rendered.files, &out)?;
    for sentence in &rendered.sentences {
        say(sentence);
    }
    let first = rendered.files.first().map_or_else(|| out.clone(), |file| out.join(&file.path));
    say(&format!("Report: {}", first.display()));
    let skipped = &meta.skipped;
    anyhow::ensure!(skipped.is_empty(), "not in the report: {}", some(skipped));
    Ok(())
}

/// Formats the first few messages and the number of the others.
fn some(skipped: &[String]) -> String {
    const SHOWN: usize = 3;
    let more = skipped.len().saturating_sub(SHOWN);
    let shown = skipped.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    if more == 0 { shown } else { format!("{shown}; and {more} more of {} in all", skipped.len()) }
}

/// Reads the records of the folders as frames and builds the metadata of a report; `named` are the arguments of the
/// command.
pub(super) fn gathered(
    folders: &[PathBuf],
    named: &str,
) -> anyhow::Result<(reports::Frames, reports::ReportMeta)> {
    let (frames, errors) = folders::frames(folders)?;
    let skipped: Vec<String> = errors.iter().map(|error| format!("one cell: {error}")).collect();
    let looked = folders.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ");
    let suites = frames.suites()?;
    anyhow::ensure!(
        !suites.is_empty(),
        "{looked}: no readable record, expected a results folder of `pe-bench run`; {}",
        if skipped.is_empty() { "its `cells` folder is empty".to_owned() } else { some(&skipped) }
    );
    let command = format!("pe-bench report {named}");
    Ok((frames, reports::ReportMeta { title: suites.join(", "), command, skipped }))
}

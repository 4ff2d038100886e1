//! `pe-bench report`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::out::say;

/// What "solved" and the like mean in a report, and what an ablation compares with.
#[derive(Args, Clone, Default)]
pub(crate) struct Criteria {
    /// A TOML file with criteria of the report, as a suite's `[report]` section has them.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Compare all other encodings with this one, as changes of it: its name in the suite.
    #[arg(long, value_name = "NAME")]
    ablation_base: Option<String>,
}

impl Criteria {
    /// The settings: those of the file if there is one, otherwise `suite`'s, with the base put in.
    ///
    /// # Errors
    /// A file that cannot be read, or a field that is unknown or out of its range, by name.
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
        .with_context(|| format!("--settings {}: check the path", path.display()))?;
    toml::from_str(&text).map_err(|error| {
        let said = pe_zoo::settings::explain(&error.to_string());
        anyhow::anyhow!("--settings {}: {said}", path.display())
    })
}

pub(super) fn report(
    results: &[PathBuf],
    out: Option<PathBuf>,
    criteria: &Criteria,
) -> anyhow::Result<()> {
    let settings = criteria.over(reports::Settings::default())?;
    let (mut records, mut skipped) = (Vec::new(), Vec::new());
    for folder in results {
        let before = records.len();
        for found in reports::read_each(folder)? {
            match found {
                Ok(record) => records.push(record),
                Err(error) => skipped.push(format!("one cell: {error}")),
            }
        }
        anyhow::ensure!(
            records.len() > before || !skipped.is_empty(),
            "{}: no records in its `cells` folder; give the folder that `pe-bench run` wrote to",
            folder.display()
        );
    }
    anyhow::ensure!(!records.is_empty(), "no record can be read: {}", skipped.join("; "));
    let out = out.unwrap_or_else(|| results[0].clone());
    let mut suites = records.iter().map(|record| record.suite.as_str()).collect::<Vec<_>>();
    suites.sort_unstable();
    suites.dedup();
    let folders = results.iter().map(|r| r.display().to_string()).collect::<Vec<_>>();
    let meta = reports::ReportMeta {
        title: suites.join(", "),
        command: format!("pe-bench report {}", folders.join(" ")),
        skipped: skipped.clone(),
    };
    let summary = reports::write_report_with(records, &out, &meta, &settings)?;
    for sentence in &summary.sentences {
        say(sentence);
    }
    say(&format!("Report: {}", summary.html.display()));
    anyhow::ensure!(skipped.is_empty(), "left out of the report: {}", skipped.join("; "));
    Ok(())
}

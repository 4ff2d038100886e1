//! `pe-bench judge`: the report of trainings that other programs made.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::page::{LinkArgs, OpenArgs};
use super::report::{self, Criteria, ReportArgs};
use analysis::packed::PACKED;
use analysis::scores::{PROGRAM, records_of_scores};
use records::RunRecord;

/// File in the folder of a judged table, a copy of the table.
const TABLE: &str = "scores.csv";

/// Arguments of `judge`.
#[derive(Args)]
pub(super) struct JudgeArgs {
    /// CSV table of scores, with one line for each encoding, task, seed, split and length.
    scores: PathBuf,
    /// Folder for the records and the report; default: results/<name of the table>.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Formats to write, separated by commas; default: all.
    #[arg(long, value_delimiter = ',', value_name = "NAME", value_parser = report::formats())]
    formats: Vec<String>,
    #[command(flatten)]
    criteria: Criteria,
    #[command(flatten)]
    links: LinkArgs,
    #[command(flatten)]
    page: OpenArgs,
}

pub(super) fn run(arguments: &JudgeArgs) -> anyhow::Result<()> {
    let JudgeArgs { scores, out, formats, criteria, links, page } = arguments;
    let csv = tasks::read_text(scores)?;
    let records =
        records_of_scores(csv.as_bytes(), label).with_context(|| scores.display().to_string())?;
    let name = scores.file_stem().unwrap_or_default();
    let out = out.clone().unwrap_or_else(|| Path::new("results").join(name));
    anyhow::ensure!(
        !out.join(PACKED).exists(),
        "{} has packed records; give another folder with --out",
        out.display()
    );
    let old = records::store::record_files(&out)?;
    for path in &old {
        let is_judged = RunRecord::read(path)?.backend == PROGRAM;
        anyhow::ensure!(
            is_judged,
            "{} has records of training runs; give another folder with --out",
            out.display()
        );
    }
    for record in &records {
        record.write(&out)?;
    }
    // Those of an earlier table.
    let is_new = |path: &Path| {
        path.file_stem().is_some_and(|stem| records.iter().any(|own| *stem == *own.key))
    };
    for path in old.iter().filter(|path| !is_new(path)) {
        std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    records::store::write_atomically(&out.join(TABLE), csv.as_bytes())
        .with_context(|| format!("cannot write {TABLE}"))?;
    report::report(&ReportArgs {
        results: vec![out],
        out: None,
        formats: formats.clone(),
        criteria: criteria.clone(),
        links: links.clone(),
        page: *page,
    })
}

/// Display name of an encoding; the name itself if pe-zoo does not have it.
fn label(encoding: &str) -> String {
    train::encodings::parse(encoding)
        .map_or_else(|_| encoding.to_owned(), |combination| combination.card().label.clone())
}

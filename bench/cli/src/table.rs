//! `pe-bench table`: results in the layout of papers' tables.

use std::path::PathBuf;

use analysis::Report;
use anyhow::Context;
use clap::{Args, ValueEnum};
use records::Metric;
use reports::document::tables::{PaperLayout, Spread, paper};
use reports::formats::{TexWidth, table_csv, tex_table, whole_table};

use super::out::say_part;
use super::parsers::{Suggested, one_of};
use super::{folders, report};

/// Format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// LaTeX, as wide as a page.
    Tex,
    /// LaTeX, as wide as one column of a two-column page.
    TexColumn,
    /// Markdown table.
    Markdown,
    /// CSV, with the spread in a separate column.
    Csv,
    /// BibTeX references of the encodings and tasks of all workloads.
    Bibtex,
}

/// Metrics by name.
const METRICS: [(&str, Metric); 3] = [
    ("exact-match", Metric::ExactMatch),
    ("token-accuracy", Metric::TokenAccuracy),
    ("perplexity", Metric::Perplexity),
];

/// Spreads by name.
const SPREADS: [(&str, Spread); 3] =
    [("deviation", Spread::Deviation), ("interval", Spread::Interval), ("none", Spread::Omitted)];

/// Arguments of `table`.
#[derive(Args, Clone)]
pub(crate) struct TableArgs {
    /// Results folders (with `cells` or `records.parquet`), or folders that contain results folders.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Workloads to print, each as one table, separated by commas; default: all.
    #[arg(long, alias = "workload", value_name = "NAMES", value_delimiter = ',', value_parser = Suggested::TASKS)]
    workloads: Vec<String>,
    /// Metric to print; default: the metric that ranks encodings.
    #[arg(long, value_parser = one_of(METRICS))]
    metric: Option<Metric>,
    /// Spread next to each mean: the standard deviation over seeds, the 95% confidence interval, or none.
    #[arg(long, value_parser = one_of(SPREADS), default_value = "deviation")]
    spread: Spread,
    /// Encodings to print, one per row and in this order, separated by commas; default: all.
    #[arg(long, value_delimiter = ',', value_name = "NAME", value_parser = Suggested::ENCODINGS)]
    encodings: Vec<String>,
    /// Splits to print as columns, separated by commas; default: all.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    splits: Vec<String>,
    /// Lengths to print as columns, in the task's unit, separated by commas; default: all.
    #[arg(long, value_delimiter = ',', value_name = "LEN")]
    lens: Vec<u64>,
    /// Format of the table.
    #[arg(long, value_enum, default_value = "markdown")]
    format: Form,
}

pub(super) fn run(arguments: &TableArgs) -> anyhow::Result<()> {
    let folders = folders::or_all(&arguments.results)?;
    let (frames, meta, settings) = report::gathered(&folders, "")?;
    if arguments.format == Form::Bibtex {
        say_part(&meta.references);
        return Ok(());
    }
    let layout = PaperLayout {
        metric: arguments.metric,
        spread: arguments.spread,
        encodings: arguments.encodings.clone(),
        splits: arguments.splits.clone(),
        lens: arguments.lens.clone(),
    };
    let wanted = &arguments.workloads;
    let known = frames.workloads()?;
    if let Some(name) = wanted.iter().find(|name| !known.contains(name)) {
        let known = known.join(", ");
        anyhow::bail!("--workloads {name}: there is no such workload, expected one of {known}");
    }
    let report = Report::of_workloads(frames, &meta, &settings, wanted)?;
    for (index, workload) in report.workloads.iter().enumerate() {
        let table = paper(&report, workload, &layout)?;
        let text = match arguments.format {
            Form::Tex => tex_table(&table, TexWidth::Page),
            Form::TexColumn => tex_table(&table, TexWidth::Column),
            Form::Markdown => whole_table(&table),
            Form::Csv => String::from_utf8(table_csv(&table)?).context("the table is not UTF-8")?,
            Form::Bibtex => continue,
        };
        let between = if index > 0 && arguments.format == Form::Csv { "\n" } else { "" };
        say_part(&format!("{between}{text}"));
    }
    folders::refuse_left_out("table", &meta.skipped)
}

//! `pe-bench extend`.

mod plan;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use reports::{ReportMeta, RunRecord, Status};

use super::out::{complain, say};
use crate::backend::{self, EngineChoice};
use crate::extend::{Context, ExtendCell, Method};
use crate::pretrained::Pretrained;
use crate::process;
use crate::runner::RunContext;
use plan::Prepared;

pub(super) use plan::read_parts;

/// What a model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Asked {
    /// Perplexity of real text.
    Text,
    /// A number hidden in filler.
    Passkey,
}

/// Which weights learn before the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Learns {
    /// All.
    All,
    /// Low-rank adapters, and the encoding's own.
    Lora,
    /// The encoding's own alone.
    Encoding,
}

/// Arguments of `extend`.
#[derive(Args, Clone)]
pub(super) struct ExtendArgs {
    /// A model's folder, a .gguf file, or a name (`pe-bench pretrained list`).
    model: String,
    /// Lengths in tokens, separated by commas; default: 1, 2 and 4 times the trained context.
    #[arg(long, value_delimiter = ',')]
    lens: Vec<usize>,
    /// Ways of changing the rotation, separated by commas; default: all.
    #[arg(long, value_enum, value_delimiter = ',')]
    methods: Vec<Method>,
    /// MatmulPrecision of the methods that have one; default: each length over the trained context.
    #[arg(long, value_delimiter = ',')]
    factors: Vec<f64>,
    /// Encodings instead of the methods, or beside them if both are given; separated by commas.
    #[arg(long)]
    encodings: Option<String>,
    /// What is asked, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["text", "passkey"])]
    tasks: Vec<Asked>,
    /// The text: a corpus (`pe-bench data fetch`) or any UTF-8 file.
    #[arg(long, default_value = "tinyshakespeare")]
    data: String,
    /// Windows of text at each length, as far as there are.
    #[arg(long, default_value_t = 4)]
    samples: usize,
    /// Depths at which the pass key is hidden.
    #[arg(long, default_value_t = 5)]
    depths: usize,
    /// Pass keys at each depth and length.
    #[arg(long, default_value_t = 1)]
    repeats: usize,
    /// Seed of pass keys, adapters and training windows.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Learn from the text before evaluating.
    #[arg(long, value_enum)]
    tune: Option<Learns>,
    /// Training steps.
    #[arg(long, default_value_t = 100, requires = "tune")]
    steps: usize,
    /// Tokens of a training window; default: the trained context.
    #[arg(long, requires = "tune")]
    train_len: Option<usize>,
    /// Windows per step.
    #[arg(long, default_value_t = 1, requires = "tune")]
    batch: usize,
    /// Peak learning rate; warm-up over a tenth of the steps, then constant.
    #[arg(long, default_value_t = 2e-5, requires = "tune")]
    learning_rate: f64,
    /// Attend within so many shifted groups of each training window, as LongLoRA (4 there).
    #[arg(long, requires = "tune")]
    groups: Option<usize>,
    /// Rank of the adapters.
    #[arg(long, default_value_t = 8, requires = "tune")]
    rank: usize,
    /// Scale of the adapters, divided by their rank.
    #[arg(long, default_value_t = 16.0, requires = "tune")]
    alpha: f64,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Attention engine.
    #[arg(long, value_enum, default_value_t)]
    engine: EngineChoice,
    /// Folder of the results; default: results/extend-MODEL.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Run finished cells again.
    #[arg(long)]
    force: bool,
    /// Print the cells and stop.
    #[arg(long)]
    dry_run: bool,
    /// Run this cell in this process; used for the processes that `extend` starts.
    #[arg(long, hide = true)]
    only: Option<String>,
}

/// Name of the backend: pretrained weights are f32 on the CPU.
const BACKEND: &str = "flex";

pub(super) fn extend(arguments: &ExtendArgs) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(arguments.threads > 0, "--threads is 0, expected at least 1");
    let device = backend::device(BACKEND)?;
    let pretrained = Pretrained::open(&arguments.model, &device)?;
    let prepared = Prepared::new(arguments, &pretrained)?;
    let cells = prepared.cells();
    let run = RunContext {
        suite: format!("extend-{}", pretrained.name),
        threads: arguments.threads,
        jobs: 1,
    };
    let context = Context {
        pretrained: &pretrained,
        run: &run,
        backend: (BACKEND, &device),
        engine: backend::engine(arguments.engine, BACKEND)?,
        seed: arguments.seed,
    };
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("results").join(&run.suite));
    if let Some(key) = &arguments.only {
        let cell = cells.iter().find(|cell| cell.key(&context) == *key);
        let cell = cell.with_context(|| format!("no cell has the key {key}"))?;
        cell.run(&context, &mut |what| complain(what)).write(&out)?;
        return Ok(ExitCode::SUCCESS);
    }
    for cell in &cells {
        cell.check(&context).with_context(|| cell.variant.name.clone())?;
    }
    let records = work(arguments, &cells, &context, &out)?;
    if arguments.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    for line in table::lines(&records) {
        say(&line);
    }
    let meta = ReportMeta {
        title: format!("{}: longer than trained", pretrained.name),
        command: format!("pe-bench extend {}", arguments.model),
        skipped: Vec::new(),
    };
    let summary = reports::write_report(&records, &out, &meta)?;
    say(&format!("Report: {}", summary.html.display()));
    let failed = records.iter().filter(|record| matches!(record.status, Status::Failed { .. }));
    let failed = failed.count();
    if failed > 0 {
        complain(&format!(
            "{failed} cells failed; the report says why, the same command tries them again"
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the cells that have no finished record, each in a process of its own.
fn work(
    arguments: &ExtendArgs,
    cells: &[ExtendCell<'_>],
    context: &Context<'_>,
    out: &std::path::Path,
) -> anyhow::Result<Vec<RunRecord>> {
    let existing = reports::read_dir(out)?;
    let mut records = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        let key = cell.key(context);
        let found = existing.iter().find(|record| record.key == key && record.is_finished());
        let of = cells.len();
        let name = format!("{}/{of} {}, {}", number + 1, cell.variant.name, cell.task.meta().id);
        if let Some(record) = found.filter(|_| !arguments.force) {
            say(&format!("{name}: kept"));
            records.push(record.clone());
            continue;
        }
        say(&name);
        if arguments.dry_run {
            continue;
        }
        if let Err(reason) = elsewhere(&key, arguments.threads) {
            let failed = Status::Failed { reason: format!("{reason:#}") };
            RunRecord { status: failed, ..cell.blank(context) }.write(out)?;
        }
        records.push(RunRecord::read(out.join("cells").join(format!("{key}.json")))?);
    }
    Ok(records)
}

/// The same command for one cell, in a process whose peak memory is the cell's own.
fn elsewhere(key: &str, threads: usize) -> anyhow::Result<()> {
    let mut command = process::dependent(threads)?;
    command.args(std::env::args_os().skip(1)).args(["--only", key]);
    let status = process::status(command).context("the process of a cell cannot be started")?;
    anyhow::ensure!(status.success(), "the process of the cell ended with {status}");
    Ok(())
}

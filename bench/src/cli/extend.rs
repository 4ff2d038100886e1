//! `pe-bench extend`.

mod cells;
mod plan;
mod table;

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use reports::{ReportMeta, RunRecord};

use super::out::{complain, say};
use super::run::seconds;
use super::stop::StopFlag;
use crate::backend::{self, EngineChoice};
use crate::experiment::Budget;
use crate::extend::{Context, Method};
use crate::pretrained::Pretrained;
use crate::run::RunContext;
use crate::sweep::{self, Cells, Retry, RetryPolicy, Shard, SweepOptions};
use cells::ExtendSweep;
use plan::Prepared;

pub(super) use plan::read_parts;

/// Task that a pretrained model is evaluated on.
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
    /// Tasks, separated by commas.
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
    /// Number of training steps.
    #[arg(long, default_value_t = 100, requires = "tune")]
    steps: usize,
    /// Tokens of a training window; default: the trained context.
    #[arg(long, requires = "tune")]
    train_len: Option<usize>,
    /// Number of windows per step.
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
    /// Number of CPU threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Attention engine to use.
    #[arg(long, value_enum, default_value_t)]
    engine: EngineChoice,
    /// Folder of the results; default: results/extend-MODEL.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Run finished cells again.
    #[arg(long)]
    force: bool,
    /// Seconds between two checkpoints of a tuning.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    checkpoint_seconds: f64,
    /// A cell that another `pe-bench` has claimed and not touched for so long is taken over.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    claim_seconds: f64,
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
        let (input, output) = (BufReader::new(std::io::stdin()), std::io::stdout());
        sweep::serve(input, output, |_, execute| execute(cell.plan(&context)))
            .map_err(anyhow::Error::msg)?;
        return Ok(ExitCode::SUCCESS);
    }
    for cell in &cells {
        cell.check(&context).with_context(|| cell.variant.name.clone())?;
    }
    let cells = ExtendSweep::new(&cells, &context);
    let options = SweepOptions {
        out,
        jobs: 1,
        threads: arguments.threads,
        retry: RetryPolicy {
            force: arguments.force,
            // What failed or ran out of something is tried again by the same command.
            retry: BTreeSet::from([Retry::Failed, Retry::TimedOut, Retry::OutOfMemory]),
        },
        shard: Shard::WHOLE,
        budget: Budget::default(),
        checkpoint_seconds: arguments.checkpoint_seconds,
        claim_seconds: arguments.claim_seconds,
        wait: true,
    };
    cells.show_found(&options, arguments.dry_run);
    if arguments.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let stop = StopFlag::install()?;
    // In the order of the command line.
    let seconds = vec![0.0; cells.keys().len()];
    let outcome = sweep::sweep(&cells, &options, &seconds, stop.flag(), &mut |event| {
        cells.show(&event);
    })?;
    for error in &outcome.unreadable {
        complain(&error.to_string());
    }
    if outcome.interrupted {
        complain(&format!(
            "interrupted by {}: {} of {} cells are finished and safe in {}; run the same command to go on",
            stop.signal().name(),
            outcome.records.len(),
            seconds.len(),
            options.out.display()
        ));
        return Ok(ExitCode::from(stop.signal().exit_status()));
    }
    for line in table::lines(&outcome.records) {
        say(&line);
    }
    let meta = ReportMeta {
        title: format!("{}: longer than trained", pretrained.name),
        command: format!("pe-bench extend {}", arguments.model),
        skipped: outcome.unreadable.iter().map(ToString::to_string).collect(),
    };
    let summary = reports::write_report(&outcome.records, &options.out, &meta)?;
    say(&format!("Report: {}", summary.html.display()));
    let failed = |record: &&RunRecord| !record.is_finished();
    let failed = outcome.records.iter().filter(failed).count();
    if failed > 0 {
        complain(&format!(
            "{failed} cells failed; the report says why, the same command tries them again"
        ));
    }
    let whole = failed == 0 && outcome.open.is_empty() && outcome.unreadable.is_empty();
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

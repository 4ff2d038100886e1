//! `pe-bench extend`: evaluation of a pretrained model beyond its trained length.

mod cells;
mod plan;
mod table;

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analysis::ReportMeta;
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use records::{RunRecord, WeightsAt};
use tasks::{FileError, corpus};

use super::CELLS_OPEN;
use super::compute::ComputeArgs;
use super::folders;
use super::out::{complain, counted, say};
use super::page::OpenArgs;
use super::parsers::{MOST, Suggested, number, seconds};
use super::references::known_of;
use super::stop::StopFlag;
use super::trained;
use cells::ExtendSweep;
use llm::export::check_target;
use llm::extend::{Context, ExtendCell, Method};
use llm::pretrained::{known, place};
use plan::Prepared;
use sweep::{self, Retry, RetryPolicy, Shard, SweepCells, SweepOptions};
use train::experiment::Budget;
use train::run::RunContext;
use train::run::kept::{self, Reuse, WeightsPolicy, weights_path};

pub(super) use plan::read_parts;

/// Task that a pretrained model is evaluated on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EvalTask {
    /// Perplexity of real text.
    Text,
    /// Retrieval of a number hidden in filler text.
    Passkey,
    /// Perplexity of the outputs of the items in --items.
    Outputs,
}

/// Weights that are trained before the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TunedWeights {
    /// No weights.
    None,
    /// All weights.
    All,
    /// Low-rank adapters and the weights of the encoding.
    Lora,
    /// As in LongLoRA: adapters, embeddings, normalisations and the weights of the encoding, with attention within
    /// shifted groups (--groups, 4 by default).
    LongLora,
    /// The weights of the encoding only.
    Encoding,
}

/// Arguments of `extend`.
#[derive(Args, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct ExtendArgs {
    /// Model: a folder, a .gguf file, a name from `pe-bench data list`, or weights that `pe-bench run` saved (the path
    /// of the .safetensors file, or the key of the record).
    model: String,
    /// Lengths to evaluate, in tokens, separated by commas; default: 1, 2 and 4 times the trained context.
    #[arg(long, value_delimiter = ',')]
    lens: Vec<usize>,
    /// Methods that modify the rotary encoding, separated by commas; default: all. In the descriptions below, `s` is
    /// the scaling factor (--factors).
    #[arg(long, value_enum, value_delimiter = ',')]
    methods: Vec<Method>,
    /// Scaling factors for the methods that take one, separated by commas; default: each length above the trained
    /// context, divided by the trained context.
    #[arg(long, value_delimiter = ',')]
    factors: Vec<f64>,
    /// Encodings to evaluate, separated by commas. They replace the methods unless --methods is also given. `nope` with
    /// `--tune all` removes the positions and recalibrates the model without them, as DroPE does.
    #[arg(long, value_parser = Suggested::ENCODINGS)]
    encodings: Option<String>,
    /// Tasks to evaluate on, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "text,passkey")]
    tasks: Vec<EvalTask>,
    /// Text for evaluation and tuning: a corpus (`pe-bench data list`), or the path of a file or folder.
    #[arg(long, default_value = "tinyshakespeare")]
    data: String,
    /// Leave out the special token, such as <s>, that the model's tokenizer puts before a text. By default each window
    /// of a text begins with this token.
    #[arg(long)]
    no_begin_token: bool,
    /// Maximum number of text windows to evaluate per length.
    #[arg(long, default_value_t = 4)]
    samples: usize,
    /// Number of depths of the filler text at which pass keys are hidden.
    #[arg(long, default_value_t = 5)]
    depths: usize,
    /// Number of pass keys per depth and length.
    #[arg(long, default_value_t = 1)]
    repeats: usize,
    /// Seed of pass keys, adapters and training windows.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Weights to fine-tune before the evaluation, on the text or items of --tune-data; default: none. With several
    /// values, separated by commas, each encoding is tuned and evaluated once for each value.
    #[arg(long, value_enum, value_delimiter = ',')]
    tune: Vec<TunedWeights>,
    /// Text to tune on, or a JSON Lines file of items to tune on (`pe-bench benchmark --help` lists the fields);
    /// default: the training part of --data.
    #[arg(long, requires = "tune")]
    tune_data: Option<String>,
    /// JSON Lines file of items for `--tasks outputs`.
    #[arg(long)]
    items: Option<PathBuf>,
    /// Number of fine-tuning steps.
    #[arg(long, default_value_t = 100, requires = "tune")]
    steps: usize,
    /// Number of tokens per training window; default: the trained context.
    #[arg(long, requires = "tune")]
    train_len: Option<usize>,
    /// Number of training windows per step.
    #[arg(long, default_value_t = 1, requires = "tune")]
    batch: usize,
    /// Number of training windows per forward pass. Gradients are accumulated over each step. Default: all windows of
    /// a step.
    #[arg(long, requires = "tune")]
    micro_batch: Option<usize>,
    /// Recompute cheap activations in the backward pass instead of storing them. This saves memory and takes more time.
    #[arg(long, requires = "tune")]
    gradient_checkpointing: bool,
    /// Peak learning rate. The rate rises over the first tenth of the steps and is then constant.
    #[arg(long, default_value_t = 2e-5, requires = "tune")]
    learning_rate: f64,
    /// Number of shifted attention groups per training window, as in LongLoRA (which uses 4).
    #[arg(long, requires = "tune")]
    groups: Option<usize>,
    /// Rank of the low-rank adapters.
    #[arg(long, default_value_t = 8, requires = "tune")]
    rank: usize,
    /// LoRA alpha: the adapters are scaled by alpha / rank.
    #[arg(long, default_value_t = 16.0, requires = "tune")]
    alpha: f64,
    /// Number of CPU threads.
    #[arg(long, default_value_t = 2, value_parser = number(1..=MOST))]
    threads: usize,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Results folder; default: results/extend-MODEL.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Folder for the tuned models, with one subfolder for each model. If Hugging Face Transformers supports the rotary
    /// encoding of a model, the model is written in the format of that library, otherwise in a format that only
    /// pe-bench reads.
    #[arg(long, value_name = "DIR", requires = "tune")]
    export: Option<PathBuf>,
    /// Run finished cells again.
    #[arg(long)]
    force: bool,
    /// Seconds between checkpoints during fine-tuning.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds, requires = "tune")]
    checkpoint_seconds: f64,
    /// Take over a cell of another `pe-bench` process if that process has not renewed its claim for this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    claim_seconds: f64,
    /// Print the cells without running them.
    #[arg(long)]
    dry_run: bool,
    /// Run only this cell, in this process; `extend` starts its processes with this option.
    #[arg(long, hide = true)]
    only: Option<String>,
}

fn tunes(arguments: &ExtendArgs) -> bool {
    arguments.tune.iter().any(|tuned| *tuned != TunedWeights::None)
}

/// Whether windows of a text are evaluated or tuned on.
fn reads_text(arguments: &ExtendArgs) -> bool {
    let is_text = |path: &String| !plan::has_items(path);
    arguments.tasks.contains(&EvalTask::Text)
        || (tunes(arguments) && arguments.tune_data.as_ref().is_none_or(is_text))
}

/// Fails if a dry run would have to fetch the model or its text.
fn on_this_machine(arguments: &ExtendArgs) -> anyhow::Result<()> {
    if !arguments.dry_run {
        return Ok(());
    }
    let ExtendArgs { model, data, .. } = arguments;
    let absent = |what: &str, command: &str| {
        anyhow::anyhow!(
            "{what} is not on this machine, and --dry-run fetches nothing; fetch it with `pe-bench {command}`"
        )
    };
    if known(model).is_some_and(|meta| !place(meta).exists()) {
        return Err(absent(&format!("model `{model}`"), &format!("data fetch {model}")));
    }
    if (arguments.tasks.contains(&EvalTask::Text)
        || (tunes(arguments) && arguments.tune_data.is_none()))
        && corpus::find(data)
            .is_ok_and(|text| matches!(corpus::state(text), corpus::CorpusState::Absent))
    {
        return Err(absent(&format!("corpus `{data}`"), &format!("data fetch {data}")));
    }
    Ok(())
}

pub(super) fn extend(arguments: &ExtendArgs) -> anyhow::Result<ExitCode> {
    plan::check_lists(arguments)?;
    on_this_machine(arguments)?;
    let compute = arguments.compute.open()?;
    let pretrained = trained::pretrained(&arguments.model, &compute.device)?;
    let prepared = Prepared::new(arguments, &pretrained)?;
    let cells = prepared.cells();
    let run = RunContext {
        suite: format!("extend-{}", pretrained.name),
        suite_sha256: None,
        threads: arguments.threads,
        jobs: 1,
    };
    let context = Context {
        pretrained: &pretrained,
        run: &run,
        backend: (&compute.backend, &compute.device),
        engine: compute.engine,
        precision: compute.precision(),
        seed: arguments.seed,
    };
    let out = results_folder(arguments, &run.suite)?;
    if let Some(key) = &arguments.only {
        return serve(key, &cells, &context);
    }
    for cell in &cells {
        cell.check(&context).with_context(|| cell.variant.name.clone())?;
    }
    // Found before anything is tuned.
    if arguments.export.is_some() {
        for cell in cells.iter().filter(|cell| cell.tune.is_some()) {
            cell.check_export(&context)?;
        }
    }
    let (all, cells) = (&cells, ExtendSweep::new(&cells, &context));
    let options = sweep_options(arguments, &out);
    cells.show_found(&options, arguments.dry_run);
    if arguments.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    create_export(arguments, all, &context)?;
    let damaged = analysis::folder::unpack(&out)?;
    if arguments.force {
        remove_tunings(all, &context, &out)?;
    }
    let stop = StopFlag::install()?;
    // In the order of the command line.
    let seconds = vec![0.0; cells.keys().len()];
    let found = sweep::look_up_all(&cells, &options.out, &options.retry, options.packed);
    folders::refuse_lost(&damaged, &found, &options)?;
    let outcome = sweep::sweep(&cells, &options, &found, &seconds, stop.flag(), &mut |event| {
        cells.show(&event);
    })?;
    for error in &outcome.unreadable {
        complain(&error.to_string());
    }
    if outcome.interrupted {
        return Ok(stop.interrupted(
            outcome.records.len(),
            seconds.len(),
            &options.out,
            arguments.force,
        ));
    }
    for line in table::lines(&outcome.records) {
        say(&line);
    }
    for line in table::skipped(&outcome.records) {
        complain(&line);
    }
    let meta = ReportMeta {
        title: format!("{} beyond its trained length", pretrained.name),
        command: format!("pe-bench extend {}", arguments.model),
        skipped: outcome.unreadable.iter().map(ToString::to_string).collect(),
        ..known_of(&outcome.records)
    };
    let summary = reports::write_report(
        &outcome.records,
        &options.out,
        &meta,
        &records::settings::Settings::default(),
    )?;
    OpenArgs::default().show("Report", &summary.html);
    let is_exported = match &arguments.export {
        Some(folder) => export(all, &context, &out, folder),
        None => true,
    };
    let failed = |record: &&RunRecord| !record.is_finished();
    let failed = outcome.records.iter().filter(failed).count();
    if failed > 0 {
        complain(&format!(
            "{} failed; the report gives the reasons; run the same command again to retry failed cells",
            counted(failed, "cell")
        ));
    }
    Ok(if !outcome.open.is_empty() {
        ExitCode::from(CELLS_OPEN)
    } else if failed == 0 && outcome.unreadable.is_empty() && is_exported {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs one cell as a worker process.
fn serve(key: &str, cells: &[ExtendCell<'_>], context: &Context<'_>) -> anyhow::Result<ExitCode> {
    let cell = cells.iter().find(|cell| cell.key(context) == key);
    let cell = cell.with_context(|| format!("no cell has the key {key}"))?;
    let (input, output) = (BufReader::new(std::io::stdin()), std::io::stdout());
    sweep::serve(input, output, |_, execute| execute(cell.plan(context)))?;
    Ok(ExitCode::SUCCESS)
}

/// Creates the folder of tuned models, and checks before anything is tuned that they can be written there.
fn create_export(
    arguments: &ExtendArgs,
    cells: &[ExtendCell<'_>],
    context: &Context<'_>,
) -> anyhow::Result<()> {
    let Some(folder) = &arguments.export else { return Ok(()) };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("--export: cannot create {}", folder.display()))?;
    for name in cells.iter().filter_map(|cell| cell.folder_name(context)) {
        check_target(&folder.join(name)).context("--export")?;
    }
    Ok(())
}

/// Folder of the results, which need not exist.
fn results_folder(arguments: &ExtendArgs, suite: &str) -> anyhow::Result<PathBuf> {
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("results").join(suite));
    folders::refuse_other(&out)?;
    Ok(out)
}

/// Options of the sweep with results in `out`.
fn sweep_options(arguments: &ExtendArgs, out: &Path) -> SweepOptions {
    SweepOptions {
        out: out.to_owned(),
        jobs: 1,
        threads: arguments.threads,
        retry: RetryPolicy {
            force: arguments.force,
            // The same command retries cells that failed or exceeded a limit.
            retry: BTreeSet::from([Retry::Failed, Retry::TimedOut, Retry::OutOfMemory]),
            before: None,
        },
        shard: Shard::WHOLE,
        worker: None,
        budget: Budget::default(),
        // A tuning is done once for all tasks.
        weights: WeightsPolicy {
            results: out.to_owned(),
            keep: Some(WeightsAt::Last),
            reuse: Reuse::IfKept,
        },
        checkpoint_seconds: arguments.checkpoint_seconds,
        claim_seconds: arguments.claim_seconds,
        packed: analysis::folder::packed_only,
        wait: true,
        data_parallel: 1,
        devices: Vec::new().into(),
    }
}

/// Removes the weights of all tunings, so that each tuning is done again once.
fn remove_tunings(
    cells: &[ExtendCell<'_>],
    context: &Context<'_>,
    out: &Path,
) -> Result<(), FileError> {
    let mut trainings = cells.iter().filter_map(|cell| cell.training(context));
    trainings.try_for_each(|training| kept::remove(&weights_path(out, &training, WeightsAt::Last)))
}

/// Writes each tuned model of the results to a folder of its own. A model that cannot be written is reported, and the others
/// are written; returns whether all are.
fn export(cells: &[ExtendCell<'_>], context: &Context<'_>, results: &Path, folder: &Path) -> bool {
    let (mut written, mut is_complete) = (BTreeSet::new(), true);
    for cell in cells {
        let Some(name) = cell.folder_name(context) else { continue };
        if written.insert(name.clone()) {
            let folder = folder.join(name);
            match cell.export(context, results, &folder) {
                Ok(()) => say(&format!("Tuned model: {}", folder.display())),
                Err(error) => {
                    is_complete = false;
                    complain(&format!("cannot write {}: {error}", folder.display()));
                }
            }
        }
    }
    is_complete
}

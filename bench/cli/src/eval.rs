//! `pe-bench eval`: other evaluations of trained cells, from their kept weights.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use records::{RunRecord, WeightsAt};

use super::cells::CellSelection;
use super::compute::DeviceArgs;
use super::folders;
use super::out::complain;
use super::page::OpenArgs;
use super::parsers::number;
use super::report;
use super::report::{BASE, StoredReport};
use super::run::{PoolArgs, SweepArgs, Watched};
use super::stop::StopFlag;
use sweep::{FLOPS_PER_SECOND, SweepPlan};
use train::experiment::check::{MOST_EVAL_TOKENS, MOST_SEQUENCES, repeated};
use train::experiment::{Experiment, of_record};
use train::run::kept::{Reuse, WeightsPolicy, weights_path};
use train::suite::Suite;

/// Arguments of `eval`. Options of a training are refused.
#[derive(Args, Clone)]
#[command(mut_arg("keep_weights", |option| option.hide(true)))]
pub(super) struct EvalArgs {
    /// Results folder with saved weights.
    results: PathBuf,
    /// Lengths to evaluate, separated by commas, in the task's unit; default: the lengths of each record.
    #[arg(long, value_delimiter = ',')]
    lens: Vec<usize>,
    /// Maximum number of sequences per split and length; default: as in each record.
    #[arg(long, value_parser = number(1..=MOST_SEQUENCES as u64))]
    samples: Option<usize>,
    /// Maximum number of tokens per split and length; default: as in each record.
    #[arg(long, value_parser = number(1..=MOST_EVAL_TOKENS as u64))]
    tokens: Option<usize>,
    /// Splits to evaluate, separated by commas; default: the splits of each record.
    #[arg(long, value_delimiter = ',')]
    splits: Vec<String>,
    /// Evaluate the weights of the best validation (`run --keep-weights best`) instead of the last weights.
    #[arg(long)]
    best: bool,
    #[command(flatten)]
    selection: CellSelection,
    /// Index of the device among the devices of the records' backend.
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: usize,
    #[command(flatten)]
    pool: PoolArgs,
    /// Folder for the new records and their report; default: RESULTS-eval.
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    criteria: report::Criteria,
    #[command(flatten)]
    page: OpenArgs,
    #[command(flatten)]
    sweep: SweepArgs,
}

/// Refuses an option that lists a value twice.
pub(super) fn each_once<T: PartialEq + Display>(option: &str, values: &[T]) -> anyhow::Result<()> {
    match repeated(values) {
        None => Ok(()),
        Some(value) => anyhow::bail!("{option} lists {value} twice, expected each value once"),
    }
}

pub(super) fn eval(arguments: &EvalArgs) -> anyhow::Result<ExitCode> {
    each_once("--lens", &arguments.lens)?;
    each_once("--splits", &arguments.splits)?;
    anyhow::ensure!(
        arguments.sweep.keep_weights.is_none(),
        "--keep-weights applies only to `run`, because `eval` trains nothing; leave out --keep-weights"
    );
    anyhow::ensure!(
        arguments.results.is_dir(),
        "{}: there is no such folder, expected a results folder of `pe-bench run`",
        arguments.results.display()
    );
    let (records, errors) = folders::readable(std::slice::from_ref(&arguments.results))?;
    for message in folders::messages(&errors) {
        complain(&format!("{message}; the evaluation leaves out records that cannot be read"));
    }
    let cells = cells(arguments, &records)?;
    let suite = records[0].suite.clone();
    let title = format!("{suite}: other evaluations");
    let backend = cells[0].backend.clone();
    let suite = Suite { name: suite, title: title.clone(), cells, ..Suite::default() };
    if let Some(base) = arguments.criteria.ablation_base() {
        suite.check_encoding(BASE, base)?;
    }
    let stored = StoredReport::read(&arguments.results)?;
    let criteria = stored.map(|stored| stored.settings).unwrap_or_default();
    let settings = arguments.criteria.over(criteria)?;
    let out = arguments.out.clone().unwrap_or_else(|| beside(&arguments.results));
    let place = DeviceArgs::new(&backend, arguments.device);
    let mut options = arguments.pool.options(&arguments.sweep, out, &place, 1, true)?;
    let results = arguments.results.clone();
    options.weights = WeightsPolicy { results, keep: None, reuse: Reuse::Only };
    let plan = SweepPlan::new(suite)?;
    let watched = Watched {
        stop: StopFlag::install()?,
        options,
        arguments: &arguments.sweep,
        page: arguments.page,
        stored: StoredReport { title, settings },
        command: format!("pe-bench eval {}", arguments.results.display()),
        beside: Vec::new(),
        rate: &|| FLOPS_PER_SECOND,
    };
    watched.run(plan, None)
}

/// Returns the default output folder, `RESULTS-eval`.
fn beside(results: &Path) -> PathBuf {
    // A path such as `.` ends with no name.
    let whole = results.file_name().is_none().then(|| results.canonicalize().ok()).flatten();
    let whole = whole.as_deref().unwrap_or(results);
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    whole.with_file_name(format!("{name}-eval"))
}

/// Returns the experiments of the trained cells, with the evaluation of the command line.
fn cells(arguments: &EvalArgs, records: &[RunRecord]) -> anyhow::Result<Vec<Experiment>> {
    let folder = arguments.results.display();
    let chosen = arguments.selection.finished(records).with_context(|| folder.to_string())?;
    let (mut cells, mut keys, mut without) = (Vec::new(), BTreeSet::new(), Vec::new());
    for record in chosen {
        let (mut cell, task) = of_record(record)?;
        let at = if arguments.best { WeightsAt::Best } else { WeightsAt::Last };
        let training = cell.training(&*task);
        if !weights_path(&arguments.results, &training, at).with_extension("json").exists() {
            without.push(format!("{} {} seed {}", cell.workload, cell.name, cell.seed));
            continue;
        }
        let eval = &mut cell.eval;
        if !arguments.lens.is_empty() {
            eval.lens.clone_from(&arguments.lens);
        }
        if !arguments.splits.is_empty() {
            eval.splits = Some(arguments.splits.clone());
        }
        eval.samples = arguments.samples.unwrap_or(eval.samples);
        eval.tokens = arguments.tokens.or(eval.tokens);
        (eval.weights, eval.trained_for) = (at, None);
        // The encoding stays the one that was trained, however long the inputs are.
        let [_, tokens] = cell.built_lens(&*task);
        cell.eval.trained_for = (tokens != training.tokens).then_some(training.tokens);
        if keys.insert(cell.key(&*task)) {
            cells.push(cell);
        }
    }
    let which = if arguments.best { "best" } else { "last" };
    let advice = format!(
        "{folder}/weights has no weights of these cells: {}; train them again and save their weights with `pe-bench \
         run SUITE --force --keep-weights {which}`",
        without.join(", ")
    );
    anyhow::ensure!(!cells.is_empty(), "{advice}");
    if !without.is_empty() {
        complain(&advice);
    }
    Ok(cells)
}

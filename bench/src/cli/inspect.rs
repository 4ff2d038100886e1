//! `pe-bench inspect`: page about a retrained cell.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use reports::{GateScore, RunRecord, Status};
use tasks::Task;

use super::compute::ComputeArgs;
use super::folders;
use super::list::aligned;
use super::out::{complain, say};
use crate::backend;
use crate::experiment::Experiment;
use crate::inspect::page::{InspectedCell, MAX_TOKENS};
use crate::inspect::retrain::{Retrained, cell_of, trained};
use crate::run::Progress;
use crate::run::{GATE_SAMPLES, gate_scores, observe};
use crate::suite::{self, Overrides};

/// Arguments that name the cell to retrain.
#[derive(Args, Clone)]
pub(super) struct CellArgs {
    /// Key of a record or a prefix of it, or SUITE WORKLOAD ENCODING.
    #[arg(num_args = 1..=3, value_names = ["CELL"])]
    pub(super) cell: Vec<String>,
    /// Results folder to search for the record; may be repeated. Default: every folder below `results` with a `cells`
    /// folder.
    #[arg(long, value_name = "DIR")]
    results: Vec<PathBuf>,
    /// Seed of the cell, with SUITE WORKLOAD ENCODING; default: the suite's first.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    pub(super) compute: ComputeArgs,
}

/// Arguments of `inspect`.
#[derive(Args, Clone)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    which: CellArgs,
    /// Index of the sample in its evaluation set, from 0.
    #[arg(long, default_value_t = 0)]
    sample: usize,
    /// Split of the sample; default: the training split.
    #[arg(long)]
    split: Option<String>,
    /// Length of the sample, in the task's unit; default: the training length.
    #[arg(long)]
    len: Option<usize>,
    /// Output folder; default: results/inspect/KEY.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print all data of the page as JSON instead of the gate scores.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &InspectArgs) -> anyhow::Result<()> {
    let (cell, task, record) = find(&arguments.which)?;
    let split = match &arguments.split {
        Some(split) => split.clone(),
        None => task.splits().first().map_or_else(String::new, |split| split.name.to_owned()),
    };
    let len = arguments.len.unwrap_or(cell.train.len);
    let count = arguments.sample.checked_add(1).context("--sample is too large")?;
    let most = task.max_eval_samples(len).unwrap_or(usize::MAX);
    anyhow::ensure!(
        count <= most,
        "--sample is {}, expected less than {most}, the number of samples",
        arguments.sample
    );
    let sample = task.eval_set(&split, len, count, cell.eval.seed)?.pop().context("no sample")?;
    anyhow::ensure!(
        sample.tokens.len() <= MAX_TOKENS + 1,
        "the sample has {} tokens, expected at most {}; choose a smaller --len",
        sample.tokens.len(),
        MAX_TOKENS + 1
    );
    let key = cell.key(&*task);
    let again = train_again(&cell, &*task, record.as_ref())?;
    let id = cell.encoding.id();
    let seen = observe(&again.model, id, std::slice::from_ref(&sample), &again.device)?;
    let seen = seen.first().context("the model returned no attention maps")?;
    let sizes = [cell.train.len, GATE_SAMPLES];
    let gates = gate_scores(&again.model, id, &*task, sizes, cell.eval.seed, &again.device)?;
    let subject = InspectedCell {
        key: &key,
        workload: &cell.workload,
        encoding: &cell.name,
        seed: cell.seed,
        split: &split,
        index: arguments.sample,
        sample: &sample,
        task: &*task,
        seen,
        gates: &gates,
    };
    let folder =
        arguments.out.clone().unwrap_or_else(|| PathBuf::from("results/inspect").join(&key));
    let page = subject.write(&folder)?;
    if arguments.json {
        say(&subject.json().to_string());
    } else {
        print(&gates, &*task, &sample);
    }
    complain(&format!("Page: {}", page.display()));
    Ok(())
}

/// Experiment, its task, and its record if it was found by key.
pub(super) type FoundCell = (Experiment, Box<dyn Task>, Option<RunRecord>);

pub(super) fn find(arguments: &CellArgs) -> anyhow::Result<FoundCell> {
    match arguments.cell.as_slice() {
        [key] => {
            anyhow::ensure!(
                arguments.seed.is_none(),
                "--seed applies only to SUITE WORKLOAD ENCODING; a record has its own seed"
            );
            let record = by_key(key, &arguments.results)?;
            let (mut cell, task) = cell_of(&record)?;
            arguments.compute.apply(&mut cell)?;
            Ok((cell, task, Some(record)))
        }
        [suite, workload, encoding] => {
            let mut cell = by_name([suite, workload, encoding], arguments.seed)?;
            arguments.compute.apply(&mut cell)?;
            let task = cell.task.build()?;
            Ok((cell, task, None))
        }
        _ => anyhow::bail!(
            "expected the key of a record, or three names SUITE WORKLOAD ENCODING such as `quick flip-flop cope`"
        ),
    }
}

/// Finds the record whose key begins with `key`.
fn by_key(key: &str, results: &[PathBuf]) -> anyhow::Result<RunRecord> {
    let folders = folders::or_all(results)?;
    let mut found: Vec<RunRecord> = Vec::new();
    for record in folders::records(&folders)? {
        // Several folders may contain the same cell.
        if record.key.starts_with(key) && found.iter().all(|other| other.key != record.key) {
            found.push(record);
        }
    }
    let places = folders.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ");
    match found.as_slice() {
        [record] => Ok(record.clone()),
        [] => anyhow::bail!(
            "no record has a key that begins with `{key}` in {places}; keys are the file names in `cells`, and reports \
             list them under \"Every cell\""
        ),
        several => {
            let keys = several.iter().map(|r| r.key.as_str()).collect::<Vec<_>>().join(", ");
            anyhow::bail!(
                "`{key}` is ambiguous, {} keys begin with it: {keys}; give more of the key",
                several.len()
            )
        }
    }
}

/// Finds a cell by its names in a suite.
fn by_name(
    [suite, workload, encoding]: [&str; 3],
    seed: Option<u64>,
) -> anyhow::Result<Experiment> {
    let (name, text) = suite::text(suite)?;
    let overrides = Overrides {
        seeds: seed.into_iter().collect(),
        backend: Some("flex".to_owned()),
        engine: Some(backend::engine(backend::EngineChoice::Auto, "flex")?),
        encodings: vec![encoding.to_owned()],
        ..Overrides::default()
    };
    let suite = suite::parse(&name, &text, &overrides)?;
    let names: std::collections::BTreeSet<String> =
        suite.cells.iter().map(|cell| cell.workload.clone()).collect();
    suite.cells.into_iter().find(|cell| cell.workload == workload).with_context(|| {
        let near = pe_zoo::settings::nearest(workload, names.iter().map(String::as_str));
        let near = near.map(|name| format!(", did you mean `{name}`?")).unwrap_or_default();
        let all = names.iter().cloned().collect::<Vec<_>>().join(", ");
        format!("suite {name} has no workload `{workload}` with {encoding}{near}; it has: {all}")
    })
}

/// Retrains a cell and reports whether its final loss equals that of the record.
pub(super) fn train_again(
    cell: &Experiment,
    task: &dyn Task,
    record: Option<&RunRecord>,
) -> anyhow::Result<Retrained> {
    let again = train(cell, task)?;
    if let Some(record) = record {
        complain(&repeated(record, &again));
    }
    Ok(again)
}

fn train(cell: &Experiment, task: &dyn Task) -> anyhow::Result<Retrained> {
    let bar = ProgressBar::new(cell.train.steps as u64);
    if let Ok(style) =
        ProgressStyle::with_template("retraining {bar:30} {pos}/{len} steps, {eta} left {msg}")
    {
        bar.set_style(style);
    }
    if bar.is_hidden() {
        complain(&format!(
            "retraining {} on {}: {} steps",
            cell.name, cell.workload, cell.train.steps
        ));
    }
    let mut told = Instant::now();
    let again = trained(cell, task, &mut |progress| {
        if let Progress::Train { done, of, loss } = progress
            && (told.elapsed() > Duration::from_millis(100) || done == of)
        {
            told = Instant::now();
            bar.set_position(done as u64);
            bar.set_message(loss.map_or_else(String::new, |loss| format!("(loss {loss:.3})")));
        }
    });
    bar.finish_and_clear();
    Ok(again?)
}

/// Message on whether the retrained model equals that of the record, by the final loss.
fn repeated(record: &RunRecord, again: &Retrained) -> String {
    let show =
        |loss: Option<f64>| loss.map_or_else(|| "none".to_owned(), |loss| format!("{loss:.6}"));
    let (then, now) = (record.train.final_loss, again.final_loss);
    let equal = match (then, now) {
        // Records keep 15 digits.
        (Some(then), Some(now)) => (then - now).abs() <= 1e-12 * then.abs(),
        (then, now) => then == now,
    };
    match (&record.status, equal) {
        (_, true) => "the final loss equals that of the record".to_owned(),
        (Status::Done, false) => format!(
            "warning: the final loss is {}, expected {} from the record; the machine or the program version differs, \
             and the output describes the retrained model",
            show(now),
            show(then)
        ),
        (status, false) => format!(
            "warning: the final loss cannot be compared, the status of the record is {}",
            status.name()
        ),
    }
}

fn print(gates: &[GateScore], task: &dyn Task, sample: &tasks::Sample) {
    if gates.is_empty() {
        let reason = match task.counted(sample) {
            None => format!("{} counts no tokens", task.meta().id),
            Some(_) => "the encoding has no gates".to_owned(),
        };
        say(&format!("No gate scores: {reason}."));
        return;
    }
    say(
        "Gate scores: area under the ROC curve of gates against the tokens that the task counts (0.5: no relation)",
    );
    let mut rows = vec![["gate", "layer", "head", "score", "rows"].map(str::to_owned).to_vec()];
    rows.extend(gates.iter().map(|score| {
        vec![
            score.gate.clone(),
            (score.layer + 1).to_string(),
            (score.head + 1).to_string(),
            format!("{:.3}", score.auc),
            score.rows.to_string(),
        ]
    }));
    for line in aligned(&rows) {
        say(&line);
    }
}

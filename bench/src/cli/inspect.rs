//! `pe-bench inspect`: page about a trained cell.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use reports::GateScore;
use tasks::Task;

use super::list::aligned;
use super::out::{complain, say};
use super::trained::{CellArgs, TrainedCell};
use crate::inspect::page::{InspectedCell, MAX_TOKENS};
use crate::run::{GATE_SAMPLES, gate_scores, observe};

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
    let TrainedCell { experiment: cell, task, record, model, device } =
        TrainedCell::open(&arguments.which)?;
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
    let id = cell.encoding.id();
    let seen = observe(&model, id, std::slice::from_ref(&sample), &device)?;
    let seen = seen.first().context("the model returned no attention maps")?;
    let sizes = [cell.train.len, GATE_SAMPLES];
    let gates = gate_scores(&model, id, &*task, sizes, cell.eval.seed, &device)?;
    let subject = InspectedCell {
        key: &record.key,
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
        arguments.out.clone().unwrap_or_else(|| PathBuf::from("results/inspect").join(&record.key));
    let page = subject.write(&folder)?;
    if arguments.json {
        say(&subject.json().to_string());
    } else {
        print(&gates, &*task, &sample);
    }
    complain(&format!("Page: {}", page.display()));
    Ok(())
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

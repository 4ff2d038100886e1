//! `pe-bench inspect`: page about a trained cell.

mod page;
mod svg;

use std::path::PathBuf;

use anyhow::Context;
use burn::tensor::Device;
use clap::Args;
use records::GateScore;
use tasks::Sample;

use super::columns::say_table;
use super::folders;
use super::out::{complain, say};
use super::page::{LinkArgs, OpenArgs};
use super::parsers::{MOST, number, one_of};
use super::trained::{CellArgs, CellChoice, TrainedCell};
use page::{InspectedCell, MAX_TOKENS};
use pe_zoo::model::Decoder;
use train::inspect::TextMarks;
use train::inspect::maps::{add_positions_alone, difference};
use train::run::{GATE_SAMPLES, GateSamples, Observed, gate_scores, observe};

/// Arguments of `inspect`.
#[derive(Args, Clone)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    which: CellArgs,
    /// Index of the sample in its evaluation set, from 0.
    #[arg(long, default_value_t = 0, value_parser = number(0..=MOST - 1))]
    sample: usize,
    /// Split of the sample; default: the training split.
    #[arg(long)]
    split: Option<String>,
    /// Length of the sample, in the task's unit; default: the training length.
    #[arg(long)]
    len: Option<usize>,
    /// Measure how well an encoding's gates (for example of CoPE or FoX) detect the tokens at which words, sentences or
    /// paragraphs end. Default: how well they detect the tokens that the task counts.
    #[arg(long, value_parser = one_of(MARKS))]
    marks: Option<TextMarks>,
    /// Second cell, as a key or the path of saved weights. The maps then show the values of the first cell minus the
    /// values of the second cell.
    #[arg(long, value_name = "CELL")]
    against: Option<String>,
    /// Output folder; default: results/inspect/KEY.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print all data of the page as JSON instead of the table of gate scores.
    #[arg(long, conflicts_with = "open")]
    json: bool,
    #[command(flatten)]
    links: LinkArgs,
    #[command(flatten)]
    page: OpenArgs,
}

/// Largest number of tokens that are drawn for a sample.
const MOST_DRAWN: usize = 1 << 26;

/// Units of text by name.
const MARKS: [(&str, TextMarks); 3] = [
    ("word", TextMarks::Word),
    ("sentence", TextMarks::Sentence),
    ("paragraph", TextMarks::Paragraph),
];

pub(super) fn run(arguments: &InspectArgs) -> anyhow::Result<()> {
    let TrainedCell { experiment: cell, task, record, model, device } =
        TrainedCell::open(&arguments.which)?;
    let split = match &arguments.split {
        Some(split) => split.clone(),
        None => task.splits().first().map_or_else(String::new, |split| split.name.to_owned()),
    };
    let len = arguments.len.unwrap_or(cell.train.len);
    let count = arguments.sample + 1;
    let most = task.max_eval_samples(len).unwrap_or(usize::MAX);
    anyhow::ensure!(
        count <= most,
        "--sample is {}, expected less than {most}, the number of samples",
        arguments.sample
    );
    // The samples before it are drawn as well.
    let drawn = task.max_tokens(len).saturating_mul(count);
    anyhow::ensure!(
        drawn <= MOST_DRAWN,
        "drawing sample {} at length {len} takes up to {drawn} tokens, expected at most {MOST_DRAWN}; choose a smaller \
         --sample or --len",
        arguments.sample
    );
    let sample = task
        .eval_set(&split, len, count, cell.eval.seed)?
        .pop()
        .context("the task returned no sample")?;
    anyhow::ensure!(
        sample.tokens.len() <= MAX_TOKENS + 1,
        "the sample has {} tokens, expected at most {}; choose a smaller --len",
        sample.tokens.len(),
        MAX_TOKENS + 1
    );
    let other = arguments.against.as_ref().map(|other| against(arguments, other)).transpose()?;
    if let Some(TrainedCell { task: others, .. }) = &other {
        let theirs = others.eval_set(&split, len, count, cell.eval.seed)?.pop();
        anyhow::ensure!(
            theirs.is_some_and(|theirs| theirs.tokens == sample.tokens),
            "--against {}: its sample of split `{split}` at length {len} differs from that of this cell; choose a cell \
             with the same task and settings",
            arguments.against.as_deref().unwrap_or_default()
        );
    }
    // Everything is checked by now.
    let id = cell.encoding.id();
    let text_marks = arguments.marks;
    let mut seen = observed(&model, id, &sample, &device)?;
    if let Some(TrainedCell { experiment, model, device, .. }) = &other {
        let theirs = observed(model, experiment.encoding.id(), &sample, device)?;
        seen = difference(&seen, &theirs)?;
    }
    let samples = GateSamples { len: cell.train.len, count: GATE_SAMPLES, seed: cell.eval.seed };
    let marked = |sample: &Sample| match text_marks {
        Some(marks) => Some(marks.of(&*task, sample)),
        None => task.counted(sample),
    };
    let gates = gate_scores(&model, id, &*task, &marked, samples, &device)?;
    let marks = match text_marks {
        Some(marks) => format!("ends of a {}", marks.id()),
        None => "tokens that the task counts".to_owned(),
    };
    let subject = InspectedCell {
        key: &record.key,
        started: &record.started_utc,
        links: &arguments.links.links,
        workload: &cell.workload,
        encoding: &cell.name,
        label: if cell.name == record.encoding.id { &record.encoding.label } else { &cell.name },
        seed: cell.seed,
        split: &split,
        index: arguments.sample,
        sample: &sample,
        task: &*task,
        seen: &seen,
        gates: &gates,
        marked: marked(&sample),
        marks: &marks,
        against: other.as_ref().map(|other| other.experiment.name.as_str()),
    };
    let folder =
        arguments.out.clone().unwrap_or_else(|| PathBuf::from("results/inspect").join(&record.key));
    folders::refuse_other(&folder)?;
    let page = subject.write(&folder)?;
    if arguments.json {
        say(&subject.json().to_string());
    } else {
        print(&gates, subject.marked.is_some(), &marks, task.meta().id);
    }
    if arguments.json {
        complain(&format!("Page: {}", page.display()));
    } else {
        arguments.page.show("Page", &page);
    }
    Ok(())
}

/// Observes a sample, with the attention of positions alone.
fn observed(
    model: &Decoder,
    id: &str,
    sample: &Sample,
    device: &Device,
) -> anyhow::Result<Observed> {
    let seen = observe(model, id, std::slice::from_ref(sample), device)?;
    let mut seen = seen.into_iter().next().context("the model returned no attention maps")?;
    add_positions_alone(&mut seen);
    Ok(seen)
}

/// Opens the second cell, in the same results folders and on the same device as the first.
fn against(arguments: &InspectArgs, cell: &str) -> anyhow::Result<TrainedCell> {
    let CellArgs { choice, compute } = arguments.which.clone();
    let choice = CellChoice { cell: vec![cell.to_owned()], seed: None, ..choice };
    TrainedCell::open(&CellArgs { choice, compute })
}

fn print(gates: &[GateScore], is_marked: bool, marks: &str, task: &str) {
    if gates.is_empty() {
        let reason = if is_marked {
            "the encoding has no gates".to_owned()
        } else {
            format!(
                "the task {task} counts no tokens; use --marks to measure how well gates detect the ends of words, \
                 sentences or paragraphs"
            )
        };
        say(&format!("No gate scores: {reason}."));
        return;
    }
    say(&format!(
        "Gate scores: area under the ROC curve (AUC) when gates are used to detect {marks}. 0.5 means no relation."
    ));
    let rows = gates.iter().map(|score| {
        vec![
            score.gate.clone(),
            (score.layer + 1).to_string(),
            (score.head + 1).to_string(),
            format!("{:.3}", score.auc),
            score.rows.to_string(),
        ]
    });
    say_table(["gate", "layer", "head", "score", "rows"], rows);
}

//! `pe-bench stability`: change of attention under shifted positions.

use burn::tensor::Device;
use clap::Args;
use pe_zoo::Combination;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;
use tasks::Task;

use super::columns::say_table;
use super::extend::read_parts;
use super::out::{counted, say};
use super::parsers::{MOST, number};
use super::trained::{self, CellArgs, TrainedCell};
use llm::extend::{LongText, TextWindows};
use pe_zoo::model::Decoder;
use train::inspect::{LayerStability, Shift, stability};

/// Maximum number of tokens of a sample; the attention weights of all heads and layers are held in memory.
const MOST_TOKENS: usize = 4096;

/// Largest offset: larger positions are not exact in f32.
const MOST_OFFSET: u64 = 1 << 24;

/// Arguments of `stability`.
#[derive(Args, Clone)]
pub(super) struct StabilityArgs {
    #[command(flatten)]
    which: CellArgs,
    /// Pretrained model to measure instead of a cell: a folder, a .gguf file, or a name from `pe-bench data list`.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["cell", "seed", "results", "best"], required_unless_present = "cell")]
    pretrained: Option<String>,
    /// Encoding of the pretrained model; default: the encoding that it was trained with.
    #[arg(long, alias = "encodings", requires = "pretrained", conflicts_with = "cell")]
    encoding: Option<String>,
    /// Text for --pretrained: a corpus, or the path of a file or folder; only the validation part of the text is used.
    #[arg(
        long,
        default_value = "tinyshakespeare",
        requires = "pretrained",
        conflicts_with = "cell"
    )]
    data: String,
    /// Number of tokens prepended to each sample.
    #[arg(long, default_value_t = 3, value_parser = number(0..=MOST_TOKENS as u64))]
    tokens: usize,
    /// Id of the prepended token; default: the tokenizer's begin token, or else the first token of the first sample.
    #[arg(long)]
    token: Option<u32>,
    /// Offset that is added to all positions, in the measurement without prepended tokens.
    #[arg(long, default_value_t = 3, value_parser = number(0..=MOST_OFFSET))]
    offset: usize,
    /// Number of samples to measure.
    #[arg(long, default_value_t = 8, value_parser = number(1..=MOST))]
    samples: usize,
    /// Length of the samples, in the task's unit; default: the training length, or 256 for pretrained models.
    #[arg(long)]
    len: Option<usize>,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
}

/// Model to measure.
struct Subject<'a> {
    name: String,
    encoding: &'a Combination,
    vocabulary: usize,
    model: &'a Decoder,
    device: &'a Device,
}

/// Stability measurements of one model.
struct Measured {
    name: String,
    /// Id and settings of the encoding.
    encoding: serde_json::Value,
    sequences: Vec<Vec<u32>>,
    prepended: Vec<LayerStability>,
    offset: Result<Vec<LayerStability>, String>,
}

pub(super) fn run(arguments: &StabilityArgs) -> anyhow::Result<()> {
    let measured = match &arguments.pretrained {
        Some(model) => of_pretrained(arguments, model)?,
        None => of_cell(arguments)?,
    };
    if arguments.json {
        say(&json_of(arguments, &measured).to_string());
    } else {
        print(arguments, &measured);
    }
    Ok(())
}

fn of_cell(arguments: &StabilityArgs) -> anyhow::Result<Measured> {
    let TrainedCell { experiment: cell, task, model, device, .. } =
        TrainedCell::open(&arguments.which)?;
    let len = arguments.len.unwrap_or(cell.train.len);
    let sequences = sequences(arguments, &*task, len, cell.eval.seed)?;
    let name = format!("{} on {}, seed {}", cell.name, cell.workload, cell.seed);
    let subject = Subject {
        name,
        encoding: &cell.encoding,
        vocabulary: task.vocab_size(),
        model: &model,
        device: &device,
    };
    measure(arguments, subject, sequences, None)
}

fn of_pretrained(arguments: &StabilityArgs, model: &str) -> anyhow::Result<Measured> {
    let compute = arguments.which.compute.open()?;
    let device = &compute.device;
    // Before the model, which takes long to read.
    let encoding = arguments.encoding.as_deref().map(train::encodings::parse).transpose()?;
    let parts = read_parts("--data", &arguments.data)?;
    let pretrained = trained::pretrained(model, device)?;
    let encoding: Combination = encoding.unwrap_or_else(|| pretrained.own_encoding());
    let (tokens, context) = (pretrained.tokenizer(), pretrained.context);
    let windows = TextWindows { context, before: Vec::new() };
    let text = LongText::new(&parts, tokens, pretrained.vocabulary, windows)?;
    let sequences = sequences(arguments, &text, arguments.len.unwrap_or(256), 0)?;
    let first = tokens.around().before.first().copied();
    let tokens = sequences.iter().map(Vec::len).max().unwrap_or(0);
    let longest = tokens.saturating_add(arguments.tokens).saturating_add(1);
    let mut decoder = pretrained.decoder(&encoding, longest, &mut ChaCha8Rng::seed_from_u64(0))?;
    (decoder.engine, decoder.precision) = (compute.engine, compute.precision());
    let name = format!("{} under {encoding}", pretrained.name);
    let vocabulary = pretrained.vocabulary;
    let subject = Subject { name, encoding: &encoding, vocabulary, model: &decoder, device };
    measure(arguments, subject, sequences, first)
}

fn sequences(
    arguments: &StabilityArgs,
    task: &dyn Task,
    len: usize,
    seed: u64,
) -> anyhow::Result<Vec<Vec<u32>>> {
    let most = task.max_tokens(len).saturating_add(arguments.tokens);
    anyhow::ensure!(
        most <= MOST_TOKENS,
        "samples with the prepended tokens have up to {most} tokens, expected at most {MOST_TOKENS}; choose a smaller \
         --len or --tokens"
    );
    let split = task.splits().first().map_or("", |split| split.name);
    let count = task.max_eval_samples(len).map_or(arguments.samples, |n| n.min(arguments.samples));
    let samples = task.eval_set(split, len, count, seed)?;
    // The last token is only a label.
    Ok(samples.into_iter().map(|s| s.tokens[..s.tokens.len() - 1].to_vec()).collect())
}

fn measure(
    arguments: &StabilityArgs,
    subject: Subject<'_>,
    sequences: Vec<Vec<u32>>,
    first: Option<u32>,
) -> anyhow::Result<Measured> {
    let Subject { name, encoding, vocabulary, model, device } = subject;
    let own = sequences.first().and_then(|tokens| tokens.first().copied());
    let token = arguments.token.or(first).or(own).unwrap_or(0);
    anyhow::ensure!(
        (token as usize) < vocabulary,
        "--token is {token}, expected less than {vocabulary}, the size of the vocabulary"
    );
    let measured = |shift| stability(model, encoding.id(), &sequences, shift, device);
    let prepended = measured(Shift::Prepend { token, count: arguments.tokens })?;
    // An encoding with a finite table may have no positions there; the output gives the reason.
    let offset = measured(Shift::Offset(arguments.offset)).map_err(|e| e.to_string());
    Ok(Measured { name, encoding: encoding.identity(), sequences, prepended, offset })
}

fn json_of(arguments: &StabilityArgs, measured: &Measured) -> serde_json::Value {
    let offset = match &measured.offset {
        Ok(layers) => json!(layers),
        Err(reason) => json!({ "refused": reason }),
    };
    json!({
        "model": measured.name,
        "encoding": measured.encoding,
        "samples": measured.sequences.len(),
        "tokens": measured.sequences.iter().map(Vec::len).max(),
        "prepended_tokens": arguments.tokens,
        "first_position": arguments.offset,
        "after_prepending": measured.prepended,
        "after_offset": offset,
        "commit": train::host::commit().0,
    })
}

fn print(arguments: &StabilityArgs, measured: &Measured) {
    say(&format!("{}, {}", measured.name, counted(measured.sequences.len(), "sample")));
    say(&format!(
        "Change in percent, with {} prepended tokens (tokens) and with positions that start at {} (offset). Attention: \
         total variation distance of the attention weights. Products: relative change of the products of positions.",
        arguments.tokens, arguments.offset
    ));
    let head =
        ["layer", "attention, tokens", "attention, offset", "products, tokens", "products, offset"];
    let percent =
        |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{:.2}", 100.0 * v));
    let offset = measured.offset.as_deref().unwrap_or_default();
    let rows = measured.prepended.iter().map(|layer| {
        let moved = offset.get(layer.layer);
        vec![
            (layer.layer + 1).to_string(),
            percent(Some(layer.attention)),
            percent(moved.map(|moved| moved.attention)),
            percent(layer.products),
            percent(moved.and_then(|moved| moved.products)),
        ]
    });
    say_table(head, rows);
    if let Err(reason) = &measured.offset {
        say(&format!(
            "The change with positions that start at {} cannot be measured: {reason}",
            arguments.offset
        ));
    }
}

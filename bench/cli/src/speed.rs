//! `pe-bench speed`: time and memory of a training step, per encoding.

use std::collections::BTreeSet;
use std::process::Stdio;

use anyhow::Context;
use clap::Args;
use pe_zoo::zoo::layers::ByLayer;
use pe_zoo::{Combination, PositionEncoding as _};

use super::compute::{Compute, ComputeArgs};
use super::out::{chain, complain, counted, say};
use super::parsers::{MOST, number};
use sweep::process;
use train::backend;
use train::speed::{SpeedRequest, SpeedRow, SpeedSize, measure};
use train::suite::{self, Overrides};

/// Arguments of `speed`.
#[derive(Args, Clone)]
pub(crate) struct SpeedArgs {
    /// Encodings or combinations, separated by commas; default: all encodings. `rope` is measured first.
    #[arg(long)]
    encodings: Option<String>,
    /// Measure the encodings of a suite (built-in or a TOML file) with the batch, length, model and vocabulary of its
    /// first workload.
    #[arg(long, conflicts_with_all = ["encodings", "batch", "len", "dim", "heads", "layers", "vocab", "attention"])]
    suite: Option<String>,
    /// Workload to measure instead of the first of the suite. If the suite varies settings of a task, the name includes
    /// their values, as in 'counting variables=3'.
    #[arg(long, alias = "workloads", requires = "suite", conflicts_with_all = ["encodings", "batch", "len", "dim", "heads", "layers", "vocab", "attention"])]
    workload: Option<String>,
    #[command(flatten)]
    size: SizeArgs,
    /// Number of rounds; each round measures every encoding once, and the medians are printed.
    #[arg(long, default_value_t = 1, value_parser = number(1..=MOST))]
    rounds: usize,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Print one JSON object per encoding instead of a table.
    #[arg(long)]
    json: bool,
}

/// Size of the measured work.
#[derive(Args, Clone, Copy)]
struct SizeArgs {
    /// Number of sequences per step.
    #[arg(long, default_value_t = 16)]
    batch: usize,
    /// Number of tokens per sequence.
    #[arg(long, default_value_t = 512)]
    len: usize,
    /// Width of the model.
    #[arg(long, default_value_t = 256)]
    dim: usize,
    /// Number of attention heads.
    #[arg(long, default_value_t = 4)]
    heads: usize,
    /// Number of transformer layers.
    #[arg(long, default_value_t = 4)]
    layers: usize,
    /// Size of the vocabulary.
    #[arg(long, default_value_t = 64)]
    vocab: usize,
    /// Number of timed steps, after two warm-up steps.
    #[arg(long, default_value_t = 7)]
    steps: usize,
    /// Number of CPU threads.
    #[arg(long, default_value_t = 2, value_parser = number(1..=MOST))]
    threads: usize,
    /// Time the forward and backward pass of one attention layer instead of the whole model.
    #[arg(long, conflicts_with_all = ["layers", "vocab"])]
    attention: bool,
}

impl SizeArgs {
    fn size(self) -> SpeedSize {
        let Self { batch, len, dim, heads, layers, vocab, steps, threads, attention } = self;
        SpeedSize { batch, len, dim, heads, layers, vocab, steps, threads, attention }
    }
}

/// Encoding that the ratios of the table are relative to.
const BASELINE: &str = "rope";

pub(super) fn speed(arguments: &SpeedArgs) -> anyhow::Result<()> {
    let rounds = arguments.rounds;
    if arguments.suite.is_none() {
        arguments.size.size().check()?;
    }
    let compute = arguments.compute.open()?;
    let (mut encodings, size) = asked(arguments, &compute)?;
    anyhow::ensure!(!encodings.is_empty(), "--encodings is empty, expected at least one encoding");
    // The others are shown relative to it.
    encodings.sort_by_key(|(name, _)| name != BASELINE);
    for (_, encoding) in &encodings {
        compute.speed_request(encoding, size).check()?;
    }
    let mut output = SpeedOutput::new(arguments.json, &encodings, &compute);
    let mut measured = vec![Vec::with_capacity(rounds); encodings.len()];
    let mut failed = BTreeSet::new();
    for round in 1..=rounds {
        for ((name, encoding), own) in encodings.iter().zip(&mut measured) {
            if failed.contains(name) {
                continue;
            }
            let request = compute.speed_request(encoding, size);
            match elsewhere(&request, arguments.compute.place.device) {
                Ok(row) => own.push(SpeedRow { encoding: name.clone(), ..row }),
                // The others are measured nevertheless.
                Err(error) => {
                    complain(&format!("error: {}", chain(&error)));
                    failed.insert(name);
                }
            }
            if round == rounds || failed.contains(name) {
                SpeedRow::median(own).map_or(Ok(()), |row| output.row(row))?;
            } else if let Some(row) = own.last() {
                let ms = row.step_seconds * 1e3;
                complain(&format!("round {round} of {rounds}: {name}: {ms:.1} ms per step"));
            }
        }
    }
    anyhow::ensure!(
        failed.is_empty(),
        "{} of {} cannot be measured; the messages above give the reasons",
        failed.len(),
        counted(encodings.len(), "encoding")
    );
    Ok(())
}

/// Name and expression of an encoding.
type NamedExpression = (String, String);

/// Encodings of the command line or of its suite, and the size at which they are measured.
fn asked(
    arguments: &SpeedArgs,
    compute: &Compute,
) -> anyhow::Result<(Vec<NamedExpression>, SpeedSize)> {
    let Some(suite) = &arguments.suite else {
        let size = arguments.size.size();
        let mut texts = arguments.encodings.as_deref().map_or_else(train::encodings::ids, |list| {
            Combination::split_list(list).into_iter().map(str::to_owned).collect()
        });
        if size.attention && arguments.encodings.is_none() {
            // One layer has one of the encodings of `layers`.
            texts.retain(|id| id != ByLayer::CARD.id);
        }
        return Ok((texts.into_iter().map(|text| (text.clone(), text)).collect(), size));
    };
    let (name, text) = suite::text(suite)?;
    let overrides = Overrides {
        backend: Some(compute.backend.clone()),
        engine: Some(compute.engine),
        workloads: arguments.workload.iter().cloned().collect(),
        ..Overrides::default()
    };
    let parsed = suite::parse(&name, &text, &overrides);
    let cells = parsed.map_err(|error| error.moved(suite::WORKLOADS, "--workload"))?.cells;
    let first = cells.first().with_context(|| format!("suite `{name}` has no cells"))?;
    let task = first.task.build()?;
    first.check(&*task)?;
    let size = SpeedSize {
        batch: first.train.batch_size,
        len: first.token_lens(&*task)[0],
        dim: first.model.width,
        heads: first.model.heads,
        layers: first.model.layers,
        vocab: task.vocab_size(),
        ..arguments.size.size()
    };
    let mut seen = BTreeSet::new();
    let own = cells.iter().filter(|cell| cell.workload == first.workload);
    let own = own.filter(|cell| seen.insert(&cell.name));
    Ok((own.map(|cell| (cell.name.clone(), cell.encoding.to_string())).collect(), size))
}

/// Measures in a separate process, so that the peak memory is that of this encoding alone.
pub(super) fn elsewhere(request: &SpeedRequest, device: usize) -> anyhow::Result<SpeedRow> {
    let mut command = process::dependent(request.size.threads)?;
    let device = device.to_string();
    command.args(["worker", "speed", &device, &serde_json::to_string(request)?]);
    let output = process::output(command.stderr(Stdio::piped()));
    let output = output.context("cannot start the process that measures")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let killed = process::killed(output.status);
    let killed = killed.map(|killed| format!("the process that measures {killed}; "));
    anyhow::ensure!(
        output.status.success(),
        "{}: {}",
        request.encoding,
        format!("{}{}", killed.unwrap_or_default(), said.trim().trim_start_matches("error: "))
            .trim_end_matches("; ")
    );
    serde_json::from_slice(&output.stdout)
        .context("cannot read the output of the process that measures")
}

/// Measures in this process, which [`elsewhere`] starts.
pub(super) fn here(device: usize, request: &str) -> anyhow::Result<()> {
    let request: SpeedRequest = serde_json::from_str(request)?;
    backend::select(&[device]);
    process::compute_on_this_thread(request.size.threads)?;
    say(&serde_json::to_string(&measure(&request)?)?);
    Ok(())
}

/// Output of measurements as they end: rows of a table, or JSON lines.
struct SpeedOutput {
    json: bool,
    widths: Vec<usize>,
    /// Seconds of a step with the baseline, which is measured first; `None` without it.
    baseline: Option<f64>,
}

impl SpeedOutput {
    /// Prints the head of the table.
    fn new(json: bool, encodings: &[NamedExpression], compute: &Compute) -> Self {
        let header = ["encoding", "backend", "engine", "step ms", "x rope", "tokens/s", "peak MiB"];
        let longest = encodings.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let widest = [longest, compute.backend.len(), compute.engine.id().len(), 8, 6, 9, 8];
        let widths = header.iter().zip(widest).map(|(title, width)| width.max(title.len()));
        let output = Self { json, widths: widths.collect(), baseline: None };
        if !json {
            output.line(&header.map(str::to_owned));
        }
        output
    }

    /// Prints the row of an encoding.
    fn row(&mut self, row: SpeedRow) -> anyhow::Result<()> {
        if row.encoding == BASELINE {
            self.baseline = Some(row.step_seconds);
        }
        if self.json {
            say(&serde_json::to_string(&row)?);
            return Ok(());
        }
        let ratio = self.baseline.map(|seconds| row.step_seconds / seconds);
        let mib = row.peak_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
        self.line(&[
            row.encoding,
            row.backend,
            row.engine,
            format!("{:.1}", row.step_seconds * 1e3),
            ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}")),
            format!("{:.0}", row.tokens_per_second),
            mib.map_or("–".to_owned(), |mib| format!("{mib:.0}")),
        ]);
        Ok(())
    }

    fn line(&self, cells: &[String]) {
        let cells = cells.iter().zip(&self.widths).map(|(cell, width)| format!("{cell:width$}"));
        say(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

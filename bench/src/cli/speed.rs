//! `pe-bench speed`: time and memory of a training step, and time of a forward pass, per encoding.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::process::Stdio;

use anyhow::Context;
use clap::Args;
use pe_zoo::Combination;

use super::columns::say_table;
use super::compute::{Compute, ComputeArgs};
use super::out::say;
use super::run::MOST;
use crate::process;
use crate::speed::{SpeedRequest, SpeedRow, SpeedSize, measure};
use crate::suite::{self, Overrides};

/// Arguments of `speed`.
#[derive(Args, Clone)]
pub(crate) struct SpeedArgs {
    /// Encodings or combinations, separated by commas; default: all.
    #[arg(long)]
    encodings: Option<String>,
    /// Measure the encodings of a suite, a built-in one or a TOML file, with the batch, length, model and vocabulary of
    /// its first workload.
    #[arg(long, conflicts_with_all = ["encodings", "batch", "len", "dim", "heads", "layers", "vocab", "attention"])]
    suite: Option<String>,
    /// Workload of the suite that is measured, with the values of its axes.
    #[arg(long, requires = "suite")]
    workload: Option<String>,
    #[command(flatten)]
    size: SpeedSize,
    /// Number of times that each encoding is measured, in turns; printed are the medians.
    #[arg(long, default_value_t = NonZeroUsize::MIN)]
    rounds: NonZeroUsize,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Print one JSON object per encoding instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure in this process; used for the processes that `speed` starts.
    #[arg(long, hide = true)]
    in_process: bool,
}

/// Encoding that the ratios of the table are relative to.
const BASELINE: &str = "rope";

pub(super) fn speed(arguments: &SpeedArgs) -> anyhow::Result<()> {
    let (threads, rounds) = (arguments.size.threads, arguments.rounds.get());
    anyhow::ensure!((1..=MOST).contains(&threads), "--threads is {threads}, expected 1 to {MOST}");
    anyhow::ensure!(rounds <= MOST, "--rounds is {rounds}, expected at most {MOST}");
    if arguments.suite.is_none() {
        arguments.size.check().map_err(anyhow::Error::msg)?;
    }
    let compute = arguments.compute.open()?;
    let (encodings, size) = asked(arguments, &compute)?;
    anyhow::ensure!(!encodings.is_empty(), "--encodings is empty, expected at least one encoding");
    let mut measured = vec![Vec::with_capacity(rounds); encodings.len()];
    let mut rows = Vec::new();
    for round in 1..=rounds {
        for ((name, encoding), own) in encodings.iter().zip(&mut measured) {
            own.push(if arguments.in_process {
                process::compute_on_this_thread(size.threads);
                measure(&SpeedRequest {
                    encoding: encoding.clone(),
                    backend: compute.backend.clone(),
                    engine: compute.engine,
                    precision: compute.precision(),
                    size,
                })
                .map_err(anyhow::Error::msg)?
            } else {
                let row = elsewhere(&arguments.compute, size, encoding)?;
                SpeedRow { encoding: name.clone(), ..row }
            });
            if round < rounds {
                continue;
            }
            let row = SpeedRow::median(own).context("nothing was measured")?;
            if arguments.json || arguments.in_process {
                say(&serde_json::to_string(&row)?);
            }
            rows.push(row);
        }
    }
    if !arguments.json && !arguments.in_process {
        print(&rows);
    }
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
        let texts = match &arguments.encodings {
            Some(list) => Combination::split_list(list).into_iter().map(str::to_owned).collect(),
            None => crate::encodings::ids(),
        };
        return Ok((texts.into_iter().map(|text| (text.clone(), text)).collect(), arguments.size));
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
        ..arguments.size
    };
    let mut seen = BTreeSet::new();
    let own = cells.iter().filter(|cell| cell.workload == first.workload);
    let own = own.filter(|cell| seen.insert(&cell.name));
    Ok((own.map(|cell| (cell.name.clone(), cell.encoding.to_string())).collect(), size))
}

/// Measures in a separate process, so that the peak memory is that of this encoding alone.
fn elsewhere(compute: &ComputeArgs, size: SpeedSize, encoding: &str) -> anyhow::Result<SpeedRow> {
    let mut command = process::dependent(size.threads)?;
    command
        .args(["speed", "--in-process", "--encodings", encoding])
        .args(compute.arguments())
        .args(size.arguments())
        .stderr(Stdio::piped());
    let output = process::output(command).context("cannot start the process that measures")?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "{encoding}: {}",
        said.trim().trim_start_matches("error: ")
    );
    serde_json::from_slice(&output.stdout)
        .context("cannot read the output of the process that measures")
}

fn print(rows: &[SpeedRow]) {
    let base = rows.iter().find(|row| row.encoding == BASELINE);
    let ratio = |row: &SpeedRow, of: fn(&SpeedRow) -> Option<f64>| {
        let ratio = of(row).zip(base.and_then(of)).map(|(own, base)| own / base);
        ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"))
    };
    let header = [
        "encoding",
        "backend",
        "engine",
        "step ms",
        "x rope",
        "forward ms",
        "x rope",
        "tokens/s",
        "peak MiB",
    ];
    let table = rows.iter().map(|row| {
        vec![
            row.encoding.clone(),
            row.backend.clone(),
            row.engine.clone(),
            format!("{:.1}", row.step_seconds * 1e3),
            ratio(row, |row| Some(row.step_seconds)),
            row.forward_seconds.map_or("–".to_owned(), |seconds| format!("{:.1}", seconds * 1e3)),
            ratio(row, |row| row.forward_seconds),
            format!("{:.0}", row.tokens_per_second),
            row.peak_bytes
                .map_or("–".to_owned(), |b| format!("{:.0}", b as f64 / f64::from(1 << 20))),
        ]
    });
    say_table(header, table);
}

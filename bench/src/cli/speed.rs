//! `pe-bench speed`: time and memory of a training step, and time of a forward pass, per encoding.

use std::process::Stdio;

use anyhow::Context;
use clap::Args;
use pe_zoo::Combination;

use super::columns::say_table;
use super::compute::ComputeArgs;
use super::out::say;
use crate::process;
use crate::speed::{SpeedRequest, SpeedRow, SpeedSize, measure};

/// Arguments of `speed`.
#[derive(Args, Clone)]
pub(crate) struct SpeedArgs {
    /// Encodings or combinations, separated by commas; default: all.
    #[arg(long)]
    encodings: Option<String>,
    #[command(flatten)]
    size: SpeedSize,
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
    let compute = arguments.compute.open()?;
    let encodings = match &arguments.encodings {
        Some(list) => Combination::split_list(list).into_iter().map(str::to_owned).collect(),
        None => crate::encodings::ids(),
    };
    let mut rows = Vec::new();
    for encoding in encodings {
        let row = if arguments.in_process {
            process::compute_on_this_thread(arguments.size.threads);
            measure(&SpeedRequest {
                encoding,
                backend: compute.backend.clone(),
                engine: compute.engine,
                precision: compute.precision(),
                size: arguments.size,
            })
            .map_err(anyhow::Error::msg)?
        } else {
            elsewhere(arguments, &encoding)?
        };
        if arguments.json || arguments.in_process {
            say(&serde_json::to_string(&row)?);
        }
        rows.push(row);
    }
    if !arguments.json && !arguments.in_process {
        print(&rows);
    }
    Ok(())
}

/// Measures in a separate process, so that the peak memory is that of this encoding alone.
fn elsewhere(arguments: &SpeedArgs, encoding: &str) -> anyhow::Result<SpeedRow> {
    let mut command = process::dependent(arguments.size.threads)?;
    command
        .args(["speed", "--in-process", "--encodings", encoding])
        .args(arguments.compute.arguments())
        .args(arguments.size.arguments())
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

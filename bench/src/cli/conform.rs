//! `pe-bench conform`.

use std::process::ExitCode;

use clap::Args;
use pe_zoo::testkit::{Finding, examine_on};
use pe_zoo::{Combination, PeError};

use super::list::aligned;
use super::out::{complain, say};
use crate::backend;

/// Arguments of `conform`.
#[derive(Args, Clone)]
pub(crate) struct ConformArgs {
    /// Encodings or combinations; default: all encodings.
    encodings: Vec<String>,
    /// Backend whose tensors and kernels are checked: flex, tch, cuda or wgpu.
    #[arg(long, default_value = "flex")]
    backend: String,
}

pub(super) fn conform(arguments: &ConformArgs) -> anyhow::Result<ExitCode> {
    let encodings = if arguments.encodings.is_empty() {
        pe_zoo::zoo::ALL.iter().map(|meta| meta.id.to_owned()).collect()
    } else {
        arguments.encodings.clone()
    };
    let encodings = encodings
        .iter()
        .map(|text| Combination::parse(text))
        .collect::<Result<Vec<_>, PeError>>()?;
    let device = backend::device(&arguments.backend)?;
    // A check that panics is a finding: it needs no second report on standard error.
    std::panic::set_hook(Box::new(|_| {}));
    let mut failed = 0;
    for encoding in &encodings {
        let mut findings = examine_on(encoding, &device);
        for part in encoding.parts() {
            findings.extend(part.examine_settings());
        }
        failed += usize::from(print(encoding, &findings) > 0);
    }
    if failed > 0 {
        complain(&format!("{failed} of {} fail", encodings.len()));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what was checked and what it found; returns how many checks failed.
fn print(encoding: &Combination, findings: &[Finding]) -> usize {
    let failures = findings.iter().filter(|finding| finding.outcome.is_err()).count();
    let verdict = match failures {
        0 => format!("all {} checks hold", findings.len()),
        _ => format!("{failures} of {} checks fail", findings.len()),
    };
    say(&format!("{encoding}: {verdict}"));
    let rows = findings.iter().map(|finding| {
        let (state, more) = match &finding.outcome {
            Ok(()) => ("ok", String::new()),
            Err(found) => ("FAILS", format!(": {found}")),
        };
        vec![
            format!("  {state}"),
            format!("{:?}", finding.check),
            format!("{}{more}", finding.check.statement()),
        ]
    });
    for line in aligned(&rows.collect::<Vec<_>>()) {
        say(&line);
    }
    failures
}

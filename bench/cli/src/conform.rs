//! `pe-bench conform`: the conformance kit on the command line.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Args;
use pe_zoo::card::Properties;
use pe_zoo::testkit::{CheckResult, Finding, check_takes, examine_on};
use pe_zoo::{Combination, PeError};

use super::columns::say_rows;
use super::compute::DeviceArgs;
use super::out::{complain, counted, say};
use super::parsers::Suggested;

/// Arguments of `conform`.
#[derive(Args, Clone)]
pub(crate) struct ConformArgs {
    /// Encodings or combinations to check; default: all encodings.
    #[arg(value_parser = Suggested::ENCODINGS)]
    encodings: Vec<String>,
    #[command(flatten)]
    place: DeviceArgs,
}

pub(super) fn conform(arguments: &ConformArgs) -> anyhow::Result<ExitCode> {
    let ids = train::encodings::ids();
    let encodings = if arguments.encodings.is_empty() { &ids } else { &arguments.encodings };
    let encodings = encodings
        .iter()
        .map(|text| train::encodings::parse(text))
        .collect::<Result<Vec<_>, PeError>>()?;
    for encoding in &encodings {
        check_takes(encoding).map_err(with_sizes)?;
    }
    let device = arguments.place.open()?;
    // A panic inside a check becomes a finding, so the default message on standard error would repeat it.
    std::panic::set_hook(Box::new(|_| {}));
    let mut failed = 0;
    for encoding in &encodings {
        let examined = catch_unwind(AssertUnwindSafe(|| examine_on(encoding, &device)));
        let findings = examined.map_err(|panic| outside_of_checks(encoding, &*panic))?;
        let findings = findings.map_err(with_sizes)?;
        failed += usize::from(print(encoding, &findings) > 0);
    }
    if failed > 0 {
        complain(&format!(
            "{failed} of {} failed at least one check; the lines with FAILS give the reasons",
            counted(encodings.len(), "encoding")
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Error about a panic of the kit outside of its checks.
fn outside_of_checks(encoding: &Combination, panic: &(dyn Any + Send)) -> anyhow::Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    anyhow::anyhow!("{encoding}: the conformance kit panicked outside of its checks: {text}")
}

/// Error of the kit, with its sizes if they may be the reason.
fn with_sizes(error: PeError) -> anyhow::Error {
    let refused = matches!(error, PeError::InvalidSetting { .. });
    let error = anyhow::Error::from(error);
    if !refused {
        return error;
    }
    error.context("the conformance kit builds models with 3 heads of 6 channels and 2 to 32 layers")
}

/// Prints the result of every check and returns the number of failed checks.
fn print(encoding: &Combination, findings: &[Finding]) -> usize {
    let count = |has: fn(&CheckResult) -> bool| {
        findings.iter().filter(|finding| has(&finding.verdict)).count()
    };
    let failures = count(|verdict| matches!(verdict, CheckResult::Fails(_)));
    let missing = count(|verdict| matches!(verdict, CheckResult::NotChecked(_)));
    let verdict = match (failures, missing) {
        (0, 0) => format!("all {} checks hold", findings.len()),
        (0, _) => format!("{} checks hold, {missing} could not be run", findings.len() - missing),
        _ => format!("{failures} of {} checks fail", findings.len()),
    };
    say(&format!("{encoding}: {verdict}"));
    let rows = findings.iter().map(|finding| {
        let (state, more) = match &finding.verdict {
            CheckResult::Holds => ("ok", String::new()),
            CheckResult::Fails(found) => ("FAILS", format!(": {found}")),
            CheckResult::NotChecked(reason) => ("-", format!(": not checked, {reason}")),
        };
        vec![
            format!("  {state}"),
            format!("{:?}", finding.check),
            format!("{}{more}", finding.check.statement()),
        ]
    });
    say_rows(rows.collect());
    if let Ok(properties) = encoding.properties() {
        found(&properties);
    }
    failures
}

/// Prints the probed properties of an encoding.
fn found(properties: &Properties) {
    let acts_on = properties.acts_on.iter().map(|part| part.label().to_owned()).collect();
    let or = |all: Vec<String>, none: &str| {
        if all.is_empty() { none.to_owned() } else { all.join(", ") }
    };
    say(&format!("  acts on: {}", or(acts_on, "nothing")));
    say(&format!("  properties: {}", or(properties.names(), "none")));
}

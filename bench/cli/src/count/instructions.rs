//! Instruction count of a training step, measured with valgrind.

use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result};

use sweep::process;
use train::run::counts::WARM_UP;

/// Number of steps counted together, to average over variation between steps.
const COUNTED: usize = 2;

/// User-space instructions of one training step of the cell of a record: the difference between two runs under
/// valgrind with different numbers of steps, divided by the difference in steps.
///
/// # Errors
/// If valgrind is not installed, or it or the program that it ran fails.
pub(super) fn step_instructions(record: &Path) -> Result<u64> {
    // Both run in parallel, because nothing is timed.
    let start = |steps| start(record, steps);
    let (few, more) = (start(WARM_UP)?, start(WARM_UP + COUNTED)?);
    let (few, more) = (instructions(few), instructions(more));
    Ok(more?.saturating_sub(few?) / COUNTED as u64)
}

/// Starts a process that runs `steps` training steps under valgrind.
fn start(record: &Path, steps: usize) -> Result<Child> {
    let tool = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"];
    let mut command = process::under("valgrind", &tool, 1)?;
    command.args(["worker", "steps"]).arg(record).arg(steps.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().context("valgrind cannot be started; install valgrind")
}

/// Returns the instruction count of a finished process.
fn instructions(child: Child) -> Result<u64> {
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let counted = said.lines().rev().find_map(references);
    counted.filter(|_| output.status.success()).with_context(|| {
        let mut last: Vec<&str> = said.lines().rev().take(5).collect();
        last.reverse();
        format!(
            "training steps under valgrind ended with {}: {}; check with `valgrind --tool=cachegrind pe-bench --version` that \
             valgrind works",
            output.status,
            last.join(" | ")
        )
    })
}

/// Parses the number in valgrind's line `==1== I   refs:      2,403,195`.
fn references(line: &str) -> Option<u64> {
    let (what, number) = line.split_once("refs:")?;
    if what.split_whitespace().last() != Some("I") {
        return None;
    }
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valgrind_is_understood() {
        assert_eq!(references("==21198== I   refs:      85,639,052"), Some(85_639_052));
        assert_eq!(references("==7== I refs:  12"), Some(12));
        assert_eq!(references("==7== LLi refs: 12"), None);
        assert_eq!(references("warning: specified LL cache: line_size 64"), None);
    }
}

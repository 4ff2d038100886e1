//! Instruction count of a training step, measured with valgrind.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};

use sweep::process;
use train::run::counts::WARM_UP;

/// Number of steps counted together, to average over variation between steps.
const COUNTED: usize = 2;

/// Error while instructions are counted.
#[derive(Debug, thiserror::Error)]
pub(super) enum CountError {
    /// Valgrind is not installed.
    #[error("not counted on this machine: valgrind is not installed")]
    NotHere,
    /// Valgrind, or the program that it ran, failed.
    #[error(
        "training steps under valgrind ended with {status}: {said}; check with `valgrind --tool=cachegrind pe-bench \
         --version` that valgrind works"
    )]
    Broke {
        /// Exit status of valgrind.
        status: ExitStatus,
        /// Last lines of valgrind's output.
        said: String,
    },
    /// Valgrind cannot be started or its output cannot be read.
    #[error("cannot run valgrind: {0}")]
    Io(#[from] std::io::Error),
}

/// User-space instructions of one training step of the cell of a record: the difference between two runs under
/// valgrind with different numbers of steps, divided by the difference in steps.
///
/// # Errors
/// [`CountError`].
pub(super) fn step_instructions(record: &Path) -> Result<u64, CountError> {
    // Both run in parallel, because nothing is timed.
    let start = |steps| start(record, steps);
    let (few, more) = (start(WARM_UP)?, start(WARM_UP + COUNTED)?);
    let (few, more) = (instructions(few), instructions(more));
    Ok(more?.saturating_sub(few?) / COUNTED as u64)
}

/// Starts a process that runs `steps` training steps under valgrind.
fn start(record: &Path, steps: usize) -> Result<Child, CountError> {
    let tool = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"];
    let mut command = process::under("valgrind", &tool, 1)?;
    command.arg("steps").arg(record).arg(steps.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => CountError::NotHere,
        _ => CountError::Io(error),
    })
}

/// Returns the instruction count of a finished process.
fn instructions(child: Child) -> Result<u64, CountError> {
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let counted = said.lines().rev().find_map(references);
    counted.filter(|_| output.status.success()).ok_or_else(|| {
        let mut last: Vec<&str> = said.lines().rev().take(5).collect();
        last.reverse();
        CountError::Broke { status: output.status, said: last.join(" | ") }
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

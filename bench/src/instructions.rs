//! Instructions of a training step, counted under valgrind.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};

use crate::process;
use crate::run::counts::WARM_UP;

/// Steps whose instructions are counted together, for a number that no single step's chance moves.
const COUNTED: usize = 2;

/// Instructions that could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// There is no valgrind.
    #[error("not counted on this machine: valgrind is not installed")]
    NotHere,
    /// Valgrind or the program under it did not come to its end.
    #[error(
        "the steps under valgrind ended with {status}: {said}; `valgrind --tool=cachegrind pe-bench --version` shows \
         whether it works here"
    )]
    Broke {
        /// Exit status of valgrind.
        status: ExitStatus,
        /// Last lines of its output.
        said: String,
    },
    /// It cannot be started or written to.
    #[error("valgrind cannot be run: {0}")]
    Io(#[from] std::io::Error),
}

/// Instructions of a training step of the cell that a record file is of, those of the system left out: the difference
/// between two runs under valgrind, one of which takes more steps, so that nothing but steps is in it.
///
/// # Errors
/// [`CountError`].
pub fn step_instructions(record: &Path) -> Result<u64, CountError> {
    // Side by side: neither sees the other, and nothing is timed.
    let (few, more) = (start(record, WARM_UP)?, start(record, WARM_UP + COUNTED)?);
    let (few, more) = (instructions(few), instructions(more));
    Ok(more?.saturating_sub(few?) / COUNTED as u64)
}

/// Starts a process that takes so many steps under valgrind.
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

/// Instructions of a whole process.
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

/// The number in valgrind's line `==1== I   refs:      2,403,195`.
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

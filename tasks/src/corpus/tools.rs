//! The package managers that bring corpora, and how they are run.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use super::CorpusError;

/// Lines of a program's error output that an error shows.
const STDERR_LINES: usize = 8;

/// The programs that bring packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// Runs as cargo.
    pub cargo: OsString,
    /// Runs as Python 3, which has pip.
    pub python: OsString,
}

impl Tools {
    /// The cargo that this program was started by (cargo says so in `CARGO`), otherwise that of the PATH; the
    /// `python3` of the PATH.
    pub fn of_this_process() -> Self {
        Self {
            cargo: std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            python: "python3".into(),
        }
    }
}

/// Runs a program and returns what it prints; `install` says what to do if it is not there.
pub(super) fn run<'a>(
    program: &OsStr,
    arguments: impl Iterator<Item = &'a OsStr>,
    install: &'static str,
) -> Result<Vec<u8>, CorpusError> {
    let arguments: Vec<&OsStr> = arguments.collect();
    let name = program.to_string_lossy().into_owned();
    let output = Command::new(program)
        .args(&arguments)
        .output()
        .map_err(|source| CorpusError::ToolMissing { program: name.clone(), install, source })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = stderr.trim_end().lines().collect();
    let said: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    Err(CorpusError::ToolFailed {
        command: format!("{name} {}", said.join(" ")),
        stderr: lines[lines.len().saturating_sub(STDERR_LINES)..].join("\n"),
        install,
    })
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), CorpusError> {
    std::fs::write(path, bytes).map_err(|e| CorpusError::io("write", path, e))
}

//! Package managers that fetch corpora.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use super::cache::installed_dir;
use super::error::CorpusError;

/// Number of lines of a program's error output in an error message.
const STDERR_LINES: usize = 8;

/// Where texts come from: a folder that is installed with the program, and programs that fetch packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// Program to run as cargo.
    pub cargo: OsString,
    /// Program to run as Python 3 with pip.
    pub python: OsString,
    /// Folder of what is installed with the program.
    pub installed: Option<PathBuf>,
}

impl Tools {
    /// Returns the cargo that started this program (from the variable `CARGO`), otherwise that of the PATH, and the
    /// `python3` of the PATH.
    pub fn of_this_process() -> Self {
        Self {
            cargo: std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            python: "python3".into(),
            installed: installed_dir(),
        }
    }
}

/// Runs a program and returns its standard output; `install` says how to install it.
pub(super) fn run(command: &mut Command, install: &'static str) -> Result<Vec<u8>, CorpusError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let missing = |cause| CorpusError::ToolMissing { program: program.clone(), install, cause };
    let output = command.output().map_err(missing)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = stderr.trim_end().lines().collect();
    let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    Err(CorpusError::ToolFailed {
        command: format!("{program} {}", arguments.join(" ")),
        stderr: lines[lines.len().saturating_sub(STDERR_LINES)..].join("\n"),
        install,
    })
}

//! This program in a process of its own, for work whose threads, time and memory are to be its own.

use std::io;
use std::process::Command;

/// Settings that a process reads once, when it starts.
///
/// Freed buffers are asked for again at once; giving them back to the system costs page faults, which were two thirds
/// of the main thread's time in evaluations of 16,384 tokens.
fn settings(threads: usize) -> [(&'static str, String); 2] {
    [("RAYON_NUM_THREADS", threads.to_string()), ("MIMALLOC_PURGE_DELAY", "-1".to_owned())]
}

/// This program once more, with so many threads.
///
/// # Errors
/// If the program's own path is not known.
pub(crate) fn again(threads: usize) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.envs(settings(threads));
    Ok(command)
}

/// The same under another program, which is given its own arguments first.
///
/// # Errors
/// If the program's own path is not known.
pub(crate) fn under(program: &str, arguments: &[&str], threads: usize) -> io::Result<Command> {
    let mut command = Command::new(program);
    command.args(arguments).arg(std::env::current_exe()?).envs(settings(threads));
    Ok(command)
}

/// Whether this process was started so.
pub(crate) fn is_set_up(threads: usize) -> bool {
    settings(threads).iter().all(|(name, value)| std::env::var(name).is_ok_and(|set| set == *value))
}

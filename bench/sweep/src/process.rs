//! Child processes of this program, for work with separate threads, time and memory.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use super::signals;

/// Environment variable of a process that ends when its standard input closes, and so with its parent.
const ENDS_WITH_STDIN: &str = "PE_BENCH_ENDS_WITH_STDIN";

/// Exit status of a process that ends because its parent ended.
pub const ORPHANED: i32 = 3;

/// Environment variables that a process reads once at its start.
///
/// Freed buffers are soon allocated again; returning them to the system causes page faults, which took two thirds of
/// the main thread's time in evaluations of 16,384 tokens.
fn settings(threads: usize) -> [(&'static str, String); 2] {
    [("RAYON_NUM_THREADS", threads.to_string()), ("MIMALLOC_PURGE_DELAY", "-1".to_owned())]
}

/// Path that starts this program again. On Linux it exists even if the program's file was deleted or replaced, as a
/// build beside a sweep does, and is that of the program that runs, not of the new one.
fn own_path() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    // The kernel adds " (deleted)" to the path of such a program and keeps its contents here.
    let kept = PathBuf::from("/proc/self/exe");
    Ok(if cfg!(target_os = "linux") && !path.exists() { kept } else { path })
}

/// Command that starts this program again with `threads` threads.
///
/// # Errors
/// If the program's own path is not known.
pub fn again(threads: usize) -> io::Result<Command> {
    let mut command = Command::new(own_path()?);
    command.envs(settings(threads)).env_remove(ENDS_WITH_STDIN);
    Ok(command)
}

/// Like [`again`], for a process that ends with this one, however this one ends: its standard input is a pipe that
/// then closes. Start it with [`status`] or [`output`].
///
/// # Errors
/// If the program's own path is not known.
pub fn dependent(threads: usize) -> io::Result<Command> {
    let mut command = again(threads)?;
    command.env(ENDS_WITH_STDIN, "1").stdin(Stdio::piped());
    Ok(command)
}

/// Runs a [`dependent`] process to its end.
///
/// # Errors
/// If it cannot be started or waited for.
pub fn status(command: &mut Command) -> io::Result<ExitStatus> {
    held_open(command.spawn()?, |mut child| child.wait())
}

/// Runs a [`dependent`] process to its end and collects its output.
///
/// # Errors
/// If it cannot be started or waited for.
pub fn output(command: &mut Command) -> io::Result<Output> {
    held_open(command.stdout(Stdio::piped()).spawn()?, Child::wait_with_output)
}

/// Returns how a process was ended from outside, such as `was killed by SIGKILL (signal 9)`; `None` if it ended by itself.
pub fn killed(status: ExitStatus) -> Option<String> {
    let signal = std::os::unix::process::ExitStatusExt::signal(&status)?;
    Some(format!("was killed by {} (signal {signal})", signals::name(signal)))
}

/// Waits for a child and keeps its standard input open until it ends; the wait would close it otherwise.
fn held_open<T>(mut child: Child, wait: impl FnOnce(Child) -> T) -> T {
    let input = child.stdin.take();
    let ended = wait(child);
    drop(input);
    ended
}

/// Ends this process when its standard input closes, if it was started as [`dependent`].
///
/// # Errors
/// If the thread that reads standard input cannot be started.
pub fn end_with_parent() -> io::Result<()> {
    if std::env::var_os(ENDS_WITH_STDIN).is_none() {
        return Ok(());
    }
    let watch = || {
        let mut bytes = [0; 64];
        while matches!(io::stdin().read(&mut bytes), Ok(1..)) {}
        std::process::exit(ORPHANED);
    };
    std::thread::Builder::new().name("parent".to_owned()).spawn(watch)?;
    Ok(())
}

/// Command that runs this program under another one, such as valgrind, with the arguments of the other one first.
///
/// # Errors
/// If the program's own path is not known.
pub fn under(program: &str, arguments: &[&str], threads: usize) -> io::Result<Command> {
    let mut command = Command::new(program);
    command.args(arguments).arg(std::env::current_exe()?).envs(settings(threads));
    Ok(command)
}

/// Whether this process has the environment variables of [`again`].
pub fn is_set_up(threads: usize) -> bool {
    settings(threads).iter().all(|(name, value)| std::env::var(name).is_ok_and(|set| set == *value))
}

/// Starts the threads that compute, unless this process was started by [`again`]: it decides later whether its first
/// thread is one of them.
///
/// # Errors
/// A thread cannot be started.
pub fn start_threads() -> anyhow::Result<()> {
    let again = std::env::var("RAYON_NUM_THREADS")
        .ok()
        .and_then(|threads| threads.parse().ok())
        .is_some_and(is_set_up);
    if again { Ok(()) } else { build(rayon::ThreadPoolBuilder::new()) }
}

/// Makes this thread one of the `threads` that compute, if the process was started by [`again`]. What it computes then
/// starts at once, while another thread would have to wake first, and only this one computes if `threads` is 1.
///
/// No other thread may compute while this one waits for it, except in a thread pool of its own.
///
/// # Errors
/// A thread cannot be started.
pub fn compute_on_this_thread(threads: usize) -> anyhow::Result<()> {
    if !is_set_up(threads) {
        return Ok(());
    }
    build(rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread())
}

fn build(pool: rayon::ThreadPoolBuilder) -> anyhow::Result<()> {
    match pool.build_global() {
        Err(error) if std::error::Error::source(&error).is_some() => Err(anyhow::anyhow!(
            "cannot start a thread that computes: {error}; raise the limit of processes, for instance with `ulimit -u \
             unlimited`"
        )),
        // Other errors say that something was computed before on other threads, which give the same results.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_killed_is_told_from_one_that_failed() {
        let ended = |raw: i32| killed(std::os::unix::process::ExitStatusExt::from_raw(raw));
        assert_eq!(ended(9).as_deref(), Some("was killed by SIGKILL (signal 9)"));
        assert_eq!((ended(0), ended(1 << 8)), (None, None));
    }
}

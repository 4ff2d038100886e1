//! Signals: requests to stop, and writes beyond a file-size limit.

use std::io;

/// Number of the signal of Ctrl-C.
pub const INTERRUPT: i32 = 2;

/// Exit status of a program ended by a signal, by convention 128 plus its number.
pub fn exit_status(signal: i32) -> u8 {
    128u8.saturating_add(u8::try_from(signal).unwrap_or(u8::MAX))
}

/// Name of a signal, such as `SIGKILL`; `signal 42` for one without a known name.
pub fn name(signal: i32) -> String {
    let known = nix::sys::signal::Signal::try_from(signal);
    known.map_or_else(|_| format!("signal {signal}"), |known| known.as_str().to_owned())
}

/// Calls `on_signal`, on a separate thread, with the number of each SIGINT, SIGTERM, SIGHUP and SIGUSR1, the signals that
/// terminals, Docker, Kubernetes and Slurm send to end a program. A SIGHUP that was ignored when the program began, as
/// under `nohup`, stays ignored.
///
/// # Errors
///
/// If a handler cannot be installed or the thread cannot be started.
pub fn on_stop(mut on_signal: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
    let hang_up = (!ignores(SIGHUP)).then_some(SIGHUP);
    let wanted = [SIGINT, SIGTERM, SIGUSR1].into_iter().chain(hang_up);
    let mut signals = signal_hook::iterator::Signals::new(wanted)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            on_signal(signal);
        }
    })?;
    Ok(())
}

/// Whether this process ignores a signal; `false` on systems other than Linux, where this is unknown.
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Bit 0 stands for signal 1.
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Makes writes beyond the file-size limit (`ulimit -f`) fail with an error, as on a full disk. By default they kill
/// the program and leave a partial file.
///
/// # Errors
///
/// If the handler cannot be installed.
pub fn survive_file_size_limit() -> io::Result<()> {
    let nobody_asks = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, nobody_asks).map(|_| ())
}

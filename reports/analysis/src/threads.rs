//! Threads of polars, which panics or hangs in a process that may not start them.

use std::io;
use std::num::NonZero;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, available_parallelism, scope};

/// Maximum number of threads of polars that read files; as many threads as there are processors compute.
const READERS: usize = 32;

/// Checks that this process may start the threads of polars, by starting and ending as many. A later call returns at once.
///
/// # Errors
/// If a thread cannot be started.
pub fn check() -> io::Result<()> {
    static CHECKED: AtomicBool = AtomicBool::new(false);
    if CHECKED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let processors = available_parallelism().map_or(1, NonZero::get);
    let count = processors + processors.min(READERS);
    let gate = RwLock::new(());
    let started = scope(|scope| {
        // All threads exist until the last one was started.
        let closed = gate.write();
        let started = (0..count)
            .try_for_each(|_| Builder::new().spawn_scoped(scope, || drop(gate.read())).map(drop));
        drop(closed);
        started
    });
    CHECKED.store(started.is_ok(), Ordering::Relaxed);
    started.map_err(|error| {
        let text = format!(
            "cannot start the {count} threads that read and sort records: {error}; raise the limits of processes and memory, \
             for instance with `ulimit -u unlimited`"
        );
        io::Error::new(error.kind(), text)
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::frame::Frames;

    /// In a process of its own, each of whose threads asks for more memory than there are addresses.
    #[test]
    fn threads_that_cannot_be_started_are_an_error() {
        const CHILD: &str = "PE_ZOO_TEST_OF_THREADS";
        if std::env::var_os(CHILD).is_none() {
            let mut child = Command::new(std::env::current_exe().unwrap());
            let test = "threads::tests::threads_that_cannot_be_started_are_an_error";
            child.args(["--exact", test, "--nocapture"]);
            child.envs([(CHILD, "1"), ("RUST_MIN_STACK", "9000000000000000")]);
            let output = child.output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && printed.contains("1 passed"), "{printed}{said}");
            return;
        }
        let errors = [
            Frames::of(&[]).unwrap_err().to_string(),
            crate::packed::pack(&[]).unwrap_err().to_string(),
        ];
        for error in errors {
            assert!(error.contains("cannot start the") && error.contains("ulimit -u"), "{error}");
        }
    }
}

//! Threads of a training beside the one that takes its steps.

use std::thread::{Builder, Scope, ScopedJoinHandle};

use anyhow::{Context as _, Result};

/// Starts a thread within `scope`; `purpose` completes "a thread that …" in the error.
///
/// # Errors
/// If the process may start no more threads.
pub(super) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    purpose: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, body).with_context(|| {
        format!(
            "cannot start a thread that {purpose}; raise the limits of processes and memory, for instance with `ulimit -u \
             unlimited`"
        )
    })
}

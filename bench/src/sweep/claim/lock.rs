//! A lock between processes that ends with its holder.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use super::ClaimError;

/// What is done under the lock takes milliseconds, on a slow network a second.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_TRIES: Duration = Duration::from_millis(2);

/// Held while it lives.
pub(super) struct Lock {
    /// The operating system gives the lock back when this is closed, also by death.
    _file: File,
}

impl Lock {
    pub(super) fn take(path: &Path) -> Result<Self, ClaimError> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(|error| ClaimError::io("open", path, error))?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(error)) => return Err(ClaimError::io("lock", path, error)),
                Err(TryLockError::WouldBlock) if start.elapsed() >= PATIENCE => {
                    let seconds = PATIENCE.as_secs();
                    return Err(ClaimError::Locked { path: path.to_owned(), seconds });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
            }
        }
    }
}

//! Lock between processes, released by the operating system when its holder ends.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// First pause between two tries to lock; each is half as long again as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Longest pause between two tries to lock. A thousand processes that wait then try at most 16,000 times a second.
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// Method and timeout for taking the lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Locking {
    /// Tries to lock once; [`File::try_lock`] outside tests.
    pub(super) try_lock: fn(&File) -> Result<(), TryLockError>,
    /// Timeout. Work under the lock takes milliseconds, or up to a second on a slow network file system.
    pub(super) patience: Duration,
}

impl Default for Locking {
    fn default() -> Self {
        Self { try_lock: File::try_lock, patience: Duration::from_secs(30) }
    }
}

/// Reason why the lock could not be taken.
#[derive(Debug)]
pub(super) enum NoLock {
    /// The file cannot be opened or locked.
    Io(io::Error),
    /// The file system has no locks.
    Unsupported(io::Error),
    /// Another process holds the lock for longer than [`Locking::patience`].
    Busy,
}

/// Held lock, released when dropped.
pub(super) struct Lock {
    /// Locked file; closing it releases the lock, and so does the end of the process.
    _file: File,
}

impl Lock {
    pub(super) fn take(path: &Path, locking: Locking) -> Result<Self, NoLock> {
        let options = File::options().create(true).truncate(false).write(true).open(path);
        let file = options.map_err(NoLock::Io)?;
        let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            match (locking.try_lock)(&file) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(error)) if is_unsupported(&error) => {
                    return Err(NoLock::Unsupported(error));
                }
                Err(TryLockError::Error(error)) => return Err(NoLock::Io(error)),
                Err(TryLockError::WouldBlock) if start.elapsed() >= locking.patience => {
                    return Err(NoLock::Busy);
                }
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(pause);
                    pause = (pause * 3 / 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

/// Whether an error means that the file system has no locks, as some network and overlay file systems.
fn is_unsupported(error: &io::Error) -> bool {
    let no_locks = nix::errno::Errno::ENOLCK as i32;
    error.raw_os_error() == Some(no_locks) || error.kind() == io::ErrorKind::Unsupported
}

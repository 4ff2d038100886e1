//! Claims on cells, so that several sweeps can share a results folder without running a cell twice, and on trainings, so
//! that one cell at a time trains the weights that several cells evaluate.
//!
//! A sweep that starts a cell writes `<results>/claims/<key>.json`, and `<results>/weights/claims/<training>.json` if it
//! keeps weights, and renews it by touching it every few seconds. A
//! claim expires if its process has ended (detected at once on the same machine), or if it was not touched for the
//! given time. That time is measured with this process's monotonic clock, from the last *change* of the file's
//! modification time; the modification time itself is not interpreted, so wrong clocks do no harm.
//!
//! A claim is taken and released under a lock of the operating system on `claims/.lock`, which is released when its
//! process dies. Of two sweeps that find the same expired claim, the second therefore sees the new claim of the first.
//! Claims that are held are read and touched without the lock, and under it a claim is written without waiting for the
//! disk and without listing the folder, so that a thousand sweeps can start together (`bench/cli/benches/shared_folder.rs`). A
//! claim that a loss of power leaves incomplete is damaged, and expires.
//!
//! Claims only save work; two runs of a cell give equal records. A file system without locks, a lock that is never
//! released or a deleted claims folder therefore do not stop a sweep: it continues without the lock, or creates the
//! folder and its claims again, with a warning ([`Claims::take_warning`]).

mod holder;
mod list;
mod lock;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use tasks::FileError;

pub use holder::ClaimHolder;
pub use list::{ListedClaim, list};
use lock::{Lock, Locking, NoLock};

/// Number of times that a claim is touched within its expiry time.
const TOUCHES: u32 = 6;

/// Maximum time between touches of a claim.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Result of trying to claim a cell.
#[derive(Debug)]
pub enum ClaimAttempt {
    /// The cell or training is claimed until the claim is dropped.
    Mine(Claim),
    /// This or another sweep holds it.
    Held(ClaimHolder),
}

/// The claims of one sweep.
#[derive(Debug)]
pub struct Claims {
    shared: Arc<Shared>,
    /// Sender whose drop ends the thread that touches claims.
    stop: Option<Sender<()>>,
    toucher: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    me: ClaimHolder,
    /// Time after which a claim that is not touched expires.
    patience: Duration,
    /// Held keys, with a flag that is set when the claim was lost.
    held: Mutex<BTreeMap<String, Arc<AtomicBool>>>,
    /// Stamps of other processes' claims, with the time when this process first saw the stamp.
    seen: Mutex<BTreeMap<String, (ClaimStamp, Instant)>>,
    locking: Locking,
    /// Whether locking has failed; it is not tried again.
    unlocked: AtomicBool,
    warning: Mutex<Option<String>>,
}

/// Stamp of a claim that changes when the claim is touched or changes hands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClaimStamp {
    touched: Option<SystemTime>,
    nonce: String,
}

impl Claims {
    /// Claims in the folder `claims` of a folder; they expire when they are not touched for `patience`.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn new(within: &Path, patience: Duration) -> Result<Self, FileError> {
        Self::with(within, patience, Locking::default())
    }

    fn with(within: &Path, patience: Duration, locking: Locking) -> Result<Self, FileError> {
        let folder = within.join("claims");
        fs::create_dir_all(&folder).map_err(FileError::of("create", &folder))?;
        let pause = (patience / TOUCHES).min(LONGEST_PAUSE);
        let shared = Arc::new(Shared {
            folder,
            me: ClaimHolder::this_process(pause),
            patience,
            held: Mutex::default(),
            seen: Mutex::default(),
            locking,
            unlocked: AtomicBool::new(false),
            warning: Mutex::default(),
        });
        // Reports an unusable folder now and not with the first cell.
        drop(shared.lock()?);
        shared.remove_leftovers();
        let (stop, stopped) = channel();
        let touching = shared.clone();
        let touch = move || {
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                touching.touch();
            }
        };
        let toucher = std::thread::Builder::new()
            .name("claims".to_owned())
            .spawn(touch)
            .map_err(FileError::of("start a thread for", &shared.folder))?;
        Ok(Self { shared, stop: Some(stop), toucher: Some(toucher) })
    }

    /// Takes the last warning about reduced protection by claims; `None` if there is no new one.
    pub fn take_warning(&self) -> Option<String> {
        guard(&self.shared.warning).take()
    }

    /// Whether there is a claim on a cell, expired or not.
    pub fn exists(&self, key: &str) -> bool {
        self.shared.path(key).exists()
    }

    /// Whether a holder is this sweep.
    pub fn are_held_by(&self, holder: &ClaimHolder) -> bool {
        self.shared.me == *holder
    }

    /// Claims a cell or a training, unless this or another sweep holds it.
    ///
    /// # Errors
    /// If the claim cannot be read or written.
    pub fn claim(&self, key: &str) -> Result<ClaimAttempt, FileError> {
        let shared = &self.shared;
        let path = shared.path(key);
        if let Some(holder) = shared.living_holder(key, &path) {
            return Ok(ClaimAttempt::Held(holder));
        }
        let lock = shared.lock()?;
        // Before the second look: the client of a network file system may answer from a cache for a minute that there is no
        // claim, until it changes the folder itself.
        let new = shared.write(key)?;
        // Another sweep may have taken the cell in the meantime.
        if let Some(holder) = shared.living_holder(key, &path) {
            // A leftover file does no harm.
            let _ = fs::remove_file(new);
            return Ok(ClaimAttempt::Held(holder));
        }
        fs::rename(&new, &path).map_err(FileError::of("write", &path))?;
        drop(lock);
        let lost = Arc::new(AtomicBool::new(false));
        guard(&shared.held).insert(key.to_owned(), lost.clone());
        guard(&shared.seen).remove(key);
        Ok(ClaimAttempt::Mine(Claim { shared: shared.clone(), key: key.to_owned(), lost }))
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(toucher) = self.toucher.take() {
            let _ = toucher.join();
        }
    }
}

/// Claim on a cell, released when dropped.
#[derive(Debug)]
pub struct Claim {
    shared: Arc<Shared>,
    key: String,
    lost: Arc<AtomicBool>,
}

impl Claim {
    /// Whether another process took over the cell, because this one did not renew the claim in time.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// Looks up whether the claim is still this sweep's.
    ///
    /// # Errors
    /// If the claim cannot be read.
    pub fn is_still_mine(&self) -> Result<bool, FileError> {
        self.shared.restore_if_deleted()?;
        let mine = self.shared.is_mine(&self.key)?;
        self.lost.fetch_or(!mine, Ordering::SeqCst);
        Ok(!self.is_lost())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        guard(&self.shared.held).remove(&self.key);
        // A claim that cannot be removed expires.
        let lock = self.shared.lock();
        if lock.is_ok() && matches!(self.shared.is_mine(&self.key), Ok(true)) {
            let _ = fs::remove_file(self.shared.path(&self.key));
        }
    }
}

impl Shared {
    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }

    /// Takes the lock; `None` if it is unavailable and the sweep continues without it.
    fn lock(&self) -> Result<Option<Lock>, FileError> {
        self.restore_if_deleted()?;
        if self.unlocked.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let path = self.folder.join(".lock");
        let why = match Lock::take(&path, self.locking) {
            Ok(lock) => return Ok(Some(lock)),
            Err(NoLock::Io(error)) => return Err(FileError::of("lock", &path)(error)),
            Err(NoLock::Unsupported(error)) => {
                format!("its file system does not support locks ({error})")
            }
            Err(NoLock::Busy) => {
                let seconds = self.locking.patience.as_secs_f64();
                format!("another process has held the lock for more than {seconds} s")
            }
        };
        self.unlocked.store(true, Ordering::SeqCst);
        self.warn(format!(
            "{} cannot be locked: {why}; the sweep continues without the lock, and two processes that start a cell at the \
             same moment may both run it, with equal results",
            path.display()
        ));
        Ok(None)
    }

    /// Creates the folder again with the claims that this sweep holds, if it was deleted.
    fn restore_if_deleted(&self) -> Result<(), FileError> {
        if self.folder.is_dir() {
            return Ok(());
        }
        fs::create_dir_all(&self.folder).map_err(FileError::of("create", &self.folder))?;
        for key in guard(&self.held).keys() {
            let path = self.path(key);
            fs::rename(self.write(key)?, &path).map_err(FileError::of("write", &path))?;
        }
        let folder = self.folder.display();
        self.warn(format!(
            "the folder {folder} was deleted during the sweep and has been created again"
        ));
        Ok(())
    }

    /// Writes a claim to a temporary file of this process, to be renamed.
    fn write(&self, key: &str) -> Result<PathBuf, FileError> {
        let temporary = self.folder.join(format!(".{key}.{}", self.me.nonce));
        let failed = FileError::of("write", &temporary);
        let text = serde_json::to_vec_pretty(&self.me).map_err(|error| failed(error.into()))?;
        fs::write(&temporary, text).map_err(|error| {
            // A full disk leaves an incomplete file, which no later process could assign to its writer.
            let _ = fs::remove_file(&temporary);
            failed(error)
        })?;
        Ok(temporary)
    }

    /// Removes temporary files of processes that were killed before they renamed them.
    fn remove_leftovers(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with('.') {
                continue;
            }
            let holder = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if holder.is_some_and(|holder| self.me.knows_to_be_gone(&holder)) {
                // A leftover file does no harm.
                let _ = fs::remove_file(&path);
            }
        }
    }

    fn warn(&self, text: String) {
        *guard(&self.warning) = Some(text);
    }

    /// Holder of a claim that has not expired. Without the lock, `None` may be out of date at once.
    fn living_holder(&self, key: &str, path: &Path) -> Option<ClaimHolder> {
        // One that cannot be read, for instance that of another user, expires like that of an unknown process.
        let holder = holder_in(path).unwrap_or_else(|_| Some(ClaimHolder::unknown()))?;
        if self.me.knows_to_be_gone(&holder) {
            return None;
        }
        let touched = fs::metadata(path).and_then(|data| data.modified()).ok();
        let looks = ClaimStamp { touched, nonce: holder.nonce.clone() };
        let mut seen = guard(&self.seen);
        let (last, since) =
            seen.entry(key.to_owned()).or_insert_with(|| (looks.clone(), Instant::now()));
        if *last != looks {
            (*last, *since) = (looks, Instant::now());
        }
        let lapsed = since.elapsed() >= self.patience.max(holder.pause() * 3);
        (!lapsed).then_some(holder)
    }

    /// Whether the claim on a cell is this sweep's.
    fn is_mine(&self, key: &str) -> Result<bool, FileError> {
        Ok(holder_in(&self.path(key))?.is_some_and(|holder| holder.nonce == self.me.nonce))
    }

    /// Touches every held claim and marks those that other processes have taken over as lost. Claims that could not be
    /// touched are checked again before a result is stored ([`Claim::is_still_mine`]).
    fn touch(&self) {
        if self.restore_if_deleted().is_err() {
            return;
        }
        for (key, lost) in guard(&self.held).iter() {
            match self.is_mine(key) {
                Ok(true) => {
                    // If it was taken over just now, the other sweep's claim is touched once more than needed.
                    let touched = File::options().write(true).open(self.path(key));
                    let _ = touched.and_then(|file| file.set_modified(SystemTime::now()));
                }
                Ok(false) => lost.store(true, Ordering::SeqCst),
                Err(_) => {}
            }
        }
    }
}

/// Reads a claim; `None` if there is none.
fn holder_in(path: &Path) -> Result<Option<ClaimHolder>, FileError> {
    match fs::read(path) {
        // Claims are written atomically; an unreadable one is damaged and expires like that of an unknown process.
        Ok(bytes) => {
            Ok(Some(serde_json::from_slice(&bytes).unwrap_or_else(|_| ClaimHolder::unknown())))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::of("read", path)(error)),
    }
}

/// Locks a mutex; the value that a panic left is usable, because no invariant spans two fields.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

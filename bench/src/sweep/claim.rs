//! Claims: several sweeps on one folder of results, and no cell is trained by two.
//!
//! A sweep that takes up a cell writes `<results>/claims/<key>.json` and touches it every few seconds.
//! A claim has lapsed if its process is gone (seen at once on the same machine), or if it was not
//! touched for so long. How long is measured by watching the file's time *change* on this process's own
//! steady clock; what the time says does not matter, so no clock that is wrong or jumps can harm.
//!
//! Every look at a claim and every change of one is made under a lock of the operating system on
//! `claims/.lock`, which a process that dies gives back. Two that find the same lapsed claim therefore
//! come one after the other, and the second finds the first one's.
//!
//! Claims save work, results do not depend on them: two runs of a cell give equal records. A file system without locks,
//! a lock that is never given back and a folder of claims that somebody deletes therefore stop no sweep. It goes on
//! without the lock, or makes the folder and its claims again, and says so ([`Claims::take_warning`]).

mod holder;
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

pub use holder::ClaimHolder;
use lock::{Lock, Locking, NoLock};

use crate::file_error::FileError;

/// Touches within the time after which a claim lapses.
const TOUCHES: u32 = 6;

/// However long claims last, they are touched at least this often.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A claim that can neither be taken nor be seen to be another's.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The file system said no.
    #[error("{0}; check that the results folder can be written and that there is space")]
    Io(#[from] FileError),
}

/// Result of trying to claim a cell.
#[derive(Debug)]
pub enum ClaimAttempt {
    /// The cell is this sweep's until the claim is dropped.
    Mine(Claim),
    /// Another one has it.
    Held(ClaimHolder),
}

/// The claims of one sweep.
#[derive(Debug)]
pub struct Claims {
    shared: Arc<Shared>,
    /// Dropped, it ends the thread that touches.
    stop: Option<Sender<()>>,
    toucher: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    me: ClaimHolder,
    /// A claim that was not touched for so long has lapsed.
    patience: Duration,
    /// Keys held, and whether each was lost.
    held: Mutex<BTreeMap<String, Arc<AtomicBool>>>,
    /// Last seen stamps of other processes' claims, and since when on this process's clock.
    seen: Mutex<BTreeMap<String, (ClaimStamp, Instant)>>,
    locking: Locking,
    /// The lock cannot be had; it is not tried again.
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
    /// Claims in a folder of results that lapse when they are not touched for `patience`.
    ///
    /// # Errors
    /// [`ClaimError::Io`] if the folder cannot be made.
    pub fn new(results: &Path, patience: Duration) -> Result<Self, ClaimError> {
        Self::with(results, patience, Locking::default())
    }

    fn with(results: &Path, patience: Duration, locking: Locking) -> Result<Self, ClaimError> {
        let folder = results.join("claims");
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
        // Seen at once and not with the first cell.
        drop(shared.lock()?);
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

    /// Takes what the user should know of claims that are less safe than they should be; `None`: nothing new.
    pub fn take_warning(&self) -> Option<String> {
        guard(&self.shared.warning).take()
    }

    /// Whether there is a claim on a cell, lapsed or not.
    pub fn exists(&self, key: &str) -> bool {
        self.shared.path(key).exists()
    }

    /// Claims a cell, unless another process has it.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub fn claim(&self, key: &str) -> Result<ClaimAttempt, ClaimError> {
        let shared = &self.shared;
        let _lock = shared.lock()?;
        let path = shared.path(key);
        if let Some(holder) = shared.living_holder(key, &path)? {
            return Ok(ClaimAttempt::Held(holder));
        }
        reports::store::remove_leftovers(&path);
        shared.write(&path)?;
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

/// A cell that is this sweep's; given back when dropped.
#[derive(Debug)]
pub struct Claim {
    shared: Arc<Shared>,
    key: String,
    lost: Arc<AtomicBool>,
}

impl Claim {
    /// Whether the cell was taken over by another process, because this one slept for too long.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// Looks up whether the claim is still this sweep's.
    ///
    /// # Errors
    /// [`ClaimError`] if it cannot be known.
    pub fn is_still_mine(&self) -> Result<bool, ClaimError> {
        let _lock = self.shared.lock()?;
        let mine = self.shared.is_mine(&self.key)?;
        self.lost.fetch_or(!mine, Ordering::SeqCst);
        Ok(!self.is_lost())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        guard(&self.shared.held).remove(&self.key);
        // A claim that cannot be given back lapses by itself.
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

    /// Takes the lock; `None` where it cannot be had and work goes on without it.
    fn lock(&self) -> Result<Option<Lock>, ClaimError> {
        if !self.folder.is_dir() {
            self.restore()?;
        }
        if self.unlocked.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let path = self.folder.join(".lock");
        let why = match Lock::take(&path, self.locking) {
            Ok(lock) => return Ok(Some(lock)),
            Err(NoLock::Io(error)) => return Err(FileError::of("lock", &path)(error).into()),
            Err(NoLock::Unsupported(error)) => format!("its file system has no locks ({error})"),
            Err(NoLock::Busy) => {
                let seconds = self.locking.patience.as_secs_f64();
                format!("another process has held it for more than {seconds} s")
            }
        };
        self.unlocked.store(true, Ordering::SeqCst);
        self.warn(format!(
            "{} cannot be locked: {why}; the sweep goes on without the lock, and two processes that begin a cell at the \
             same moment may both run it, with equal results",
            path.display()
        ));
        Ok(None)
    }

    /// Makes the folder again with the claims that this sweep holds.
    fn restore(&self) -> Result<(), ClaimError> {
        fs::create_dir_all(&self.folder).map_err(FileError::of("create", &self.folder))?;
        for key in guard(&self.held).keys() {
            self.write(&self.path(key))?;
        }
        self.warn(format!(
            "the folder {} was deleted while the sweep ran; it was made again",
            self.folder.display()
        ));
        Ok(())
    }

    fn write(&self, path: &Path) -> Result<(), ClaimError> {
        let failed = FileError::of("write", path);
        let text = serde_json::to_vec_pretty(&self.me).map_err(|error| failed(error.into()))?;
        Ok(reports::store::write_atomically(path, &text).map_err(failed)?)
    }

    fn warn(&self, text: String) {
        *guard(&self.warning) = Some(text);
    }

    /// Whoever holds a claim that has not lapsed. Under the lock.
    fn living_holder(&self, key: &str, path: &Path) -> Result<Option<ClaimHolder>, ClaimError> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(FileError::of("read", path))?,
        };
        // A claim is written whole; one that is none was damaged, and lapses like that of a stranger.
        let holder = serde_json::from_slice(&bytes).unwrap_or_else(|_| ClaimHolder::unknown());
        if self.me.knows_to_be_gone(&holder) {
            return Ok(None);
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
        Ok((!lapsed).then_some(holder))
    }

    /// Whether the claim on a cell is this sweep's. Under the lock.
    fn is_mine(&self, key: &str) -> Result<bool, ClaimError> {
        let path = self.path(key);
        match fs::read(&path) {
            Ok(bytes) => Ok(serde_json::from_slice::<ClaimHolder>(&bytes)
                .is_ok_and(|holder| holder.nonce == self.me.nonce)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(FileError::of("read", &path)(error).into()),
        }
    }

    /// Touches every claim held; one that is another's by now is lost. A claim that cannot be touched
    /// for a while is asked about before its result is kept ([`Claim::is_still_mine`]).
    fn touch(&self) {
        let Ok(_lock) = self.lock() else { return };
        for (key, lost) in guard(&self.held).iter() {
            match self.is_mine(key) {
                Ok(true) => {
                    let touched = File::options().write(true).open(self.path(key));
                    let _ = touched.and_then(|file| file.set_modified(SystemTime::now()));
                }
                Ok(false) => lost.store(true, Ordering::SeqCst),
                Err(_) => {}
            }
        }
    }
}

/// Locks a mutex; the value that a panic left is usable, because no invariant spans two fields.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

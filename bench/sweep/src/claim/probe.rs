//! Test of the locks of a file system, for sweeps on several machines.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tasks::FileError;

use super::lock::{Lock, Locking, NoLock};

/// Options of a mount with which locks hold on one machine only.
const LOCAL_LOCKS: [&str; 5] =
    ["nolock", "local_lock=all", "local_lock=flock", "localflock", "nobrl"];

/// File systems that lock within one machine, or not at all, unless configured otherwise.
const LOCAL_KINDS: [&str; 4] = ["9p", "beegfs", "fuse.", "v9fs"];

/// File systems that no other machine sees.
const OWN_KINDS: [&str; 8] = ["btrfs", "ext2", "ext3", "ext4", "overlay", "tmpfs", "xfs", "zfs"];

/// Result of testing the file system of a results folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockProbe {
    /// Locks hold, as far as one machine can tell.
    Holds,
    /// Locks hold, but other machines probably do not see the folder.
    OwnDisk {
        /// Kind of the file system.
        kind: String,
    },
    /// Locks do not hold between machines.
    Fails {
        /// Reason for the verdict.
        reason: String,
    },
}

impl LockProbe {
    /// Locks a file in the claims of a results folder twice, and looks at the kind and the options of its mount.
    ///
    /// # Errors
    /// [`FileError`] if the folder of claims cannot be created or written.
    pub fn of(results: &Path) -> Result<Self, FileError> {
        // Systems other than Linux have no such table; there the locks alone decide.
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self::with(results, &mounts, Locking::default())
    }

    fn with(results: &Path, mounts: &str, locking: Locking) -> Result<Self, FileError> {
        let folder = results.join("claims");
        fs::create_dir_all(&folder).map_err(FileError::of("create", &folder))?;
        let path = folder.join(format!(".probe.{}", std::process::id()));
        let locked = excludes(&path, locking);
        // A leftover file does no harm.
        let _ = fs::remove_file(&path);
        let mount = folder.canonicalize().ok().and_then(|folder| Mount::of(&folder, mounts));
        if let Err(reason) = locked? {
            return Ok(Self::Fails { reason });
        }
        Ok(mount.map_or(Self::Holds, |mount| mount.verdict()))
    }
}

/// Whether a second lock on a file is refused while the first is held; otherwise the reason why not.
fn excludes(path: &Path, locking: Locking) -> Result<Result<(), String>, FileError> {
    let at_once = Locking { patience: Duration::ZERO, ..locking };
    let first = match Lock::take(path, locking) {
        Ok(lock) => lock,
        Err(NoLock::Io(error)) => return Err(FileError::of("lock", path)(error)),
        Err(NoLock::Unsupported(error)) => {
            return Ok(Err(format!("the file system has no locks ({error})")));
        }
        Err(NoLock::Busy) => return Ok(Err("a new file is locked by another process".to_owned())),
    };
    let second = Lock::take(path, at_once);
    drop(first);
    Ok(match second {
        Err(NoLock::Busy) => Ok(()),
        Ok(_) => Err("a locked file could be locked again".to_owned()),
        Err(NoLock::Io(error) | NoLock::Unsupported(error)) => {
            Err(format!("a second lock failed ({error})"))
        }
    })
}

/// Mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    point: PathBuf,
    kind: String,
    /// Options of the mount and of its file system.
    options: Vec<String>,
}

impl Mount {
    /// Mount that holds a path, in the format of Linux's `mountinfo`.
    fn of(path: &Path, mounts: &str) -> Option<Self> {
        let holding = mounts.lines().filter_map(Self::parse).filter(|m| path.starts_with(&m.point));
        // A later mount on the same folder hides the earlier one.
        holding.max_by_key(|mount| mount.point.components().count())
    }

    /// Parses `36 35 98:0 /root /point rw,noatime shared:1 - nfs4 server:/x rw,local_lock=none`.
    fn parse(line: &str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(4);
        let (point, own) = (mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let (kind, _source, more) = (system.next()?, system.next()?, system.next()?);
        let options = own.split(',').chain(more.split(',')).map(str::to_owned).collect();
        // Blanks are written as octal escapes.
        let point = PathBuf::from(point.replace("\\040", " "));
        Some(Self { point, kind: kind.to_owned(), options })
    }

    fn verdict(&self) -> LockProbe {
        let Self { point, kind, options } = self;
        let local = options.iter().find(|option| LOCAL_LOCKS.contains(&option.as_str()));
        let is = |known: &str| kind == known || (known.ends_with('.') && kind.starts_with(known));
        if let Some(option) = local {
            let point = point.display();
            let reason = format!("{point} ({kind}) is mounted with `{option}`");
            return LockProbe::Fails { reason };
        }
        if LOCAL_KINDS.into_iter().any(is) {
            let reason = format!(
                "{} is of the kind {kind}, whose locks usually hold on one machine only",
                point.display()
            );
            return LockProbe::Fails { reason };
        }
        if OWN_KINDS.contains(&kind.as_str()) {
            return LockProbe::OwnDisk { kind: kind.clone() };
        }
        LockProbe::Holds
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, TryLockError};

    use super::*;

    const MOUNTS: &str = "\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
40 21 0:40 / /shared rw shared:20 - nfs4 server:/shared rw,vers=4.2,local_lock=none
41 21 0:41 / /scratch rw - nfs server:/scratch rw,vers=3,nolock
42 21 0:42 / /lustre rw,localflock - lustre mds:/fs rw
43 21 0:43 / /lustre/good\\040one rw,flock - lustre mds:/fs rw
44 21 0:44 / /mnt rw - fuse.sshfs host: rw
";

    #[test]
    fn a_mount_decides_by_its_kind_and_options() {
        let verdict = |path: &str| Mount::of(Path::new(path), MOUNTS).unwrap().verdict();
        assert_eq!(verdict("/shared/results"), LockProbe::Holds);
        assert_eq!(verdict("/lustre/good one/results"), LockProbe::Holds);
        assert_eq!(verdict("/shared-not"), LockProbe::OwnDisk { kind: "ext4".to_owned() });
        for (path, expected) in [
            ("/scratch/me", "/scratch (nfs) is mounted with `nolock`"),
            ("/lustre/me", "`localflock`"),
            ("/mnt/x", "of the kind fuse.sshfs"),
        ] {
            let LockProbe::Fails { reason } = verdict(path) else { panic!("{path}") };
            assert!(reason.contains(expected), "{reason}");
        }
        assert_eq!(Mount::of(Path::new("/x"), "nonsense\n1 2 3 - 4\n"), None);
    }

    #[test]
    fn locks_that_exclude_nobody_or_do_not_exist_fail() {
        let results = tempfile::tempdir().unwrap();
        let probe = |try_lock| {
            let locking = Locking { try_lock, patience: Duration::from_millis(10) };
            LockProbe::with(results.path(), "", locking).unwrap()
        };
        assert_eq!(probe(File::try_lock), LockProbe::Holds);
        let LockProbe::Fails { reason } = probe(|_| Ok(())) else { panic!("it holds") };
        assert!(reason.contains("could be locked again"), "{reason}");
        let none = |_: &File| {
            Err(TryLockError::Error(std::io::Error::from(std::io::ErrorKind::Unsupported)))
        };
        let LockProbe::Fails { reason } = probe(none) else { panic!("it holds") };
        assert!(reason.contains("has no locks"), "{reason}");
        assert_eq!(fs::read_dir(results.path().join("claims")).unwrap().count(), 0);
    }
}

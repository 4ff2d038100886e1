//! Claims of a results folder as an observer sees them, without taking or changing any.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use records::store::files_in;
use tasks::FileError;

use super::holder::ClaimHolder;

/// Silence after which a claim counts as expired: the default of `--claim-seconds`. The sweep that takes the cell over
/// applies its own value.
const SILENCE: Duration = Duration::from_mins(1);

/// Claim on a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedClaim {
    /// Key of the cell.
    pub key: String,
    /// Process that holds it.
    pub holder: ClaimHolder,
    /// Time since the claim was renewed, by the clocks of this machine and of the file system.
    pub silence: Duration,
    /// Whether the process is known to have ended.
    gone: bool,
}

impl ListedClaim {
    /// Whether the process that holds the claim seems to be at work.
    pub fn is_living(&self) -> bool {
        !self.gone && self.silence < SILENCE
    }
}

/// Lists the claims of a results folder, sorted by key. Unreadable claims and those released in the meantime are left
/// out.
///
/// # Errors
/// [`FileError`] if the folder cannot be listed; a missing folder counts as empty.
pub fn list(results: &Path) -> Result<Vec<ListedClaim>, FileError> {
    let folder = results.join("claims");
    let paths = files_in(&folder, "json").map_err(FileError::of("list", &folder))?;
    let me = ClaimHolder::this_process(Duration::ZERO);
    let now = SystemTime::now();
    let mut claims = Vec::new();
    for path in paths {
        let key = path.file_stem().unwrap_or_default().to_string_lossy();
        let holder = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let touched = fs::metadata(&path).and_then(|data| data.modified());
        let (Some(holder), Ok(touched)) = (holder, touched) else { continue };
        // A time in the future is that of a clock ahead of this one.
        let silence = now.duration_since(touched).unwrap_or_default();
        let gone = me.knows_to_be_gone(&holder);
        claims.push(ListedClaim { key: key.into_owned(), holder, silence, gone });
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::super::{ClaimAttempt, Claims};
    use super::*;

    #[test]
    fn claims_are_seen_with_their_holders_and_their_silence() {
        let results = tempfile::tempdir().unwrap();
        assert_eq!(list(results.path()).unwrap(), []);
        let claims = Claims::new(results.path(), Duration::from_mins(1)).unwrap();
        let claimed = ["b", "a"].map(|key| claims.claim(key).unwrap());
        assert!(claimed.iter().all(|claim| matches!(claim, ClaimAttempt::Mine(_))));
        let folder = results.path().join("claims");
        fs::write(folder.join("damaged.json"), "{").unwrap();
        let long_ago = SystemTime::now() - SILENCE * 2;
        let silent = fs::File::options().write(true).open(folder.join("b.json")).unwrap();
        silent.set_modified(long_ago).unwrap();
        let seen = list(results.path()).unwrap();
        let facts = seen.iter().map(|claim| (claim.key.as_str(), claim.is_living()));
        assert_eq!(facts.collect::<Vec<_>>(), [("a", true), ("b", false)]);
        assert_eq!(seen[0].holder.pid, std::process::id());
        assert!(seen[1].silence >= SILENCE);
        drop(claimed);
        assert_eq!(list(results.path()).unwrap(), []);
    }
}

use std::fs::TryLockError;
use std::io;

use super::*;

const KEY: &str = "0123456789abcdef";
const PATIENCE: Duration = Duration::from_millis(400);

fn claims(results: &Path) -> Claims {
    Claims::new(results, PATIENCE).unwrap()
}

fn mine(claims: &Claims) -> Claim {
    match claims.claim(KEY).unwrap() {
        ClaimAttempt::Mine(claim) => claim,
        ClaimAttempt::Held(by) => panic!("held by {}", by.text()),
    }
}

fn is_held(claims: &Claims) -> bool {
    matches!(claims.claim(KEY).unwrap(), ClaimAttempt::Held(_))
}

/// Writes a claim of a process on another machine, or of one that has ended.
fn foreign(results: &Path, change: impl Fn(&mut ClaimHolder)) -> PathBuf {
    let mut holder = ClaimHolder::this_process(Duration::ZERO);
    change(&mut holder);
    let path = results.join("claims").join(format!("{KEY}.json"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, serde_json::to_vec(&holder).unwrap()).unwrap();
    path
}

fn date(path: &Path, time: SystemTime) {
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn held_for(claims: &Claims, touch: impl Fn()) -> Duration {
    let start = Instant::now();
    while is_held(claims) {
        assert!(start.elapsed() < PATIENCE * 20, "the claim never lapses");
        touch();
        std::thread::sleep(Duration::from_millis(20));
    }
    start.elapsed()
}

#[test]
fn a_cell_is_claimed_once_until_it_is_given_back() {
    let results = tempfile::tempdir().unwrap();
    let (one, two) = (claims(results.path()), claims(results.path()));
    let claim = mine(&one);
    assert!(is_held(&two));
    // Longer than a claim lasts: the thread touches it.
    std::thread::sleep(PATIENCE * 3);
    assert!(is_held(&two) && claim.is_still_mine().unwrap());
    drop(claim);
    drop(mine(&two));
    assert!(!results.path().join("claims").join(format!("{KEY}.json")).exists());
}

#[test]
fn of_many_that_find_a_lapsed_claim_one_gets_it() {
    for _ in 0..20 {
        let results = tempfile::tempdir().unwrap();
        // No process has this start, so the claim has lapsed at once.
        foreign(results.path(), |holder| holder.started = Some("0".to_owned()));
        let sweeps = (0..8).map(|_| claims(results.path())).collect::<Vec<_>>();
        let won = std::thread::scope(|scope| {
            let tries = sweeps.iter().map(|claims| scope.spawn(|| claims.claim(KEY).unwrap()));
            let tries = tries.collect::<Vec<_>>();
            tries.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
        });
        let won = won.iter().filter(|one| matches!(one, ClaimAttempt::Mine(_))).count();
        assert_eq!(won, 1);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_is_gone_holds_nothing_whatever_the_files_date() {
    for date_of in [SystemTime::UNIX_EPOCH, SystemTime::now() + Duration::from_secs(1 << 30)] {
        let results = tempfile::tempdir().unwrap();
        let path = foreign(results.path(), |holder| holder.started = Some("0".to_owned()));
        date(&path, date_of);
        drop(mine(&claims(results.path())));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn unfinished_claims_of_killed_processes_are_removed_by_the_next() {
    let results = tempfile::tempdir().unwrap();
    let folder = results.path().join("claims");
    for (name, started) in [("killed", Some("0".to_owned())), ("living", None)] {
        let path = foreign(results.path(), |holder| {
            holder.started = started.clone().or(holder.started.take());
        });
        fs::rename(path, folder.join(format!(".{KEY}.{name}"))).unwrap();
    }
    drop(mine(&claims(results.path())));
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.collect::<std::collections::BTreeSet<_>>();
    let left = [".0123456789abcdef.living", ".lock"].map(std::ffi::OsString::from);
    assert_eq!(names, std::collections::BTreeSet::from(left));
}

#[test]
fn a_claim_from_elsewhere_lapses_by_not_being_touched_whatever_its_date() {
    for date_of in [SystemTime::UNIX_EPOCH, SystemTime::now() + Duration::from_secs(1 << 30)] {
        let results = tempfile::tempdir().unwrap();
        let path = foreign(results.path(), |holder| holder.place = Some("elsewhere".to_owned()));
        date(&path, date_of);
        let held = held_for(&claims(results.path()), || {});
        assert!(held >= PATIENCE, "lapsed after {held:?}");
    }
}

#[test]
fn a_claim_that_is_touched_does_not_lapse_though_its_clock_runs_backwards() {
    let results = tempfile::tempdir().unwrap();
    let path = foreign(results.path(), |holder| holder.place = Some("elsewhere".to_owned()));
    let (observer, start) = (claims(results.path()), Instant::now());
    while start.elapsed() < PATIENCE * 3 {
        date(&path, SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 20) - start.elapsed());
        assert!(is_held(&observer), "lapsed after {:?}", start.elapsed());
        std::thread::sleep(PATIENCE / 8);
    }
}

#[test]
fn a_holder_that_touches_seldom_is_given_its_time() {
    let results = tempfile::tempdir().unwrap();
    foreign(results.path(), |holder| {
        holder.place = Some("elsewhere".to_owned());
        holder.pause_milliseconds = 300;
    });
    let held = held_for(&claims(results.path()), || {});
    assert!(held >= Duration::from_millis(900), "lapsed after {held:?}");
}

#[test]
fn a_damaged_claim_lapses_like_a_strangers() {
    let results = tempfile::tempdir().unwrap();
    let path = foreign(results.path(), |_| {});
    fs::write(&path, "{\"host\": \"").unwrap();
    let observer = claims(results.path());
    assert!(held_for(&observer, || {}) >= PATIENCE);
}

#[test]
fn who_slept_while_its_cell_was_taken_over_is_told_and_takes_nothing_back() {
    let results = tempfile::tempdir().unwrap();
    let claims = claims(results.path());
    let claim = mine(&claims);
    assert!(!claim.is_lost());
    let path = foreign(results.path(), |holder| holder.nonce = "another".to_owned());
    assert!(!claim.is_still_mine().unwrap() && claim.is_lost());
    drop(claim);
    assert!(path.exists(), "it removed the other one's claim");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let results = tempfile::tempdir().unwrap();
    let file = results.path().join("file");
    fs::write(&file, "").unwrap();
    let said = Claims::new(&file, PATIENCE).unwrap_err().to_string();
    assert!(said.contains("cannot create") && said.contains("claims"), "{said}");
}

#[test]
fn without_locks_claims_go_on_and_say_so_once() {
    fn refused<const NUMBER: i32>(_: &File) -> Result<(), TryLockError> {
        Err(TryLockError::Error(io::Error::from_raw_os_error(NUMBER)))
    }
    fn busy(_: &File) -> Result<(), TryLockError> {
        Err(TryLockError::WouldBlock)
    }
    let patience = Duration::from_millis(20);
    for locking in [
        Locking { try_lock: refused::<37>, patience },
        Locking { try_lock: refused::<38>, patience },
        Locking { try_lock: refused::<95>, patience },
        Locking { try_lock: busy, patience },
    ] {
        let results = tempfile::tempdir().unwrap();
        let claims = Claims::with(results.path(), PATIENCE, locking).unwrap();
        let said = claims.take_warning().unwrap();
        assert!(said.contains("cannot be locked") && said.contains("continues without"), "{said}");
        let claim = mine(&claims);
        assert!(claim.is_still_mine().unwrap() && is_held(&self::claims(results.path())));
        drop(claim);
        assert!(!results.path().join("claims").join(format!("{KEY}.json")).exists());
        assert_eq!(claims.take_warning(), None);
    }
    // A disk error is not mistaken for a file system without locks.
    let results = tempfile::tempdir().unwrap();
    let locking = Locking { try_lock: refused::<5>, ..Locking::default() };
    let said = Claims::with(results.path(), PATIENCE, locking).unwrap_err().to_string();
    assert!(said.contains("cannot lock"), "{said}");
}

#[test]
fn a_deleted_folder_is_made_again_with_the_claims_in_it() {
    let results = tempfile::tempdir().unwrap();
    let one = claims(results.path());
    let claim = mine(&one);
    fs::remove_dir_all(results.path().join("claims")).unwrap();
    assert!(claim.is_still_mine().unwrap());
    assert!(one.take_warning().unwrap().contains("was deleted"));
    assert!(is_held(&claims(results.path())));
    // The thread that touches claims notices by itself, too.
    fs::remove_dir_all(results.path().join("claims")).unwrap();
    std::thread::sleep(PATIENCE);
    assert!(is_held(&claims(results.path())) && !claim.is_lost());
}

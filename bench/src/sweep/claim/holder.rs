//! Who holds a claim, and whether that process is known to be gone.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The process behind a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimHolder {
    /// Name of its machine, for people.
    pub host: String,
    /// Process id on that machine.
    pub pid: u32,
    /// When it claimed, RFC 3339, UTC; for people.
    pub since_utc: String,
    /// Told apart from every other sweep by this.
    pub(super) nonce: String,
    /// Where its id means something: this start of the machine, this container. `None`: not known.
    pub(super) place: Option<String>,
    /// When it started, in the system's own count: ids are used again, ids with starts are not.
    pub(super) started: Option<String>,
    /// It touches its claims this often, in milliseconds.
    pub(super) pause_milliseconds: u64,
}

impl ClaimHolder {
    pub(super) fn this_process(pause: Duration) -> Self {
        static SWEEPS: AtomicU64 = AtomicU64::new(0);
        let pid = std::process::id();
        let started = start_of(pid);
        let place = place();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let sweep = SWEEPS.fetch_add(1, Ordering::Relaxed);
        let told_apart = format!("{place:?} {pid} {started:?} {now:?} {sweep}");
        let digest = Sha256::digest(told_apart.as_bytes());
        Self {
            host: host_name(),
            pid,
            since_utc: crate::host::now_utc(),
            nonce: reports::store::hex(&digest[..16]),
            place,
            started,
            pause_milliseconds: pause.as_millis() as u64,
        }
    }

    /// The holder of a claim that cannot be read.
    pub(super) fn unknown() -> Self {
        Self {
            host: "an unknown machine".to_owned(),
            pid: 0,
            since_utc: String::new(),
            nonce: String::new(),
            place: None,
            started: None,
            pause_milliseconds: 0,
        }
    }

    pub(super) fn pause(&self) -> Duration {
        // A damaged claim must not say that it lasts for ever.
        Duration::from_millis(self.pause_milliseconds).min(super::LONGEST_PAUSE)
    }

    /// Whether `other` is a process that this one would see, and does not.
    pub(super) fn knows_to_be_gone(&self, other: &Self) -> bool {
        self.place.is_some()
            && self.place == other.place
            && other.started.is_some()
            && start_of(other.pid) != other.started
    }

    /// `process 17 on host`.
    pub fn text(&self) -> String {
        format!("process {} on {}", self.pid, self.host)
    }
}

/// This start of the machine and this container's processes, where the system tells (Linux).
fn place() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let processes = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), processes.display()))
}

/// Start of a process in ticks since the machine's; `None` if there is none of this id, or if the system
/// does not tell.
fn start_of(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // The second field is the program's name in parentheses, which may hold anything; the state stands
    // behind it, and the start 19 fields behind the state.
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace();
    let state = fields.next()?;
    // A zombie has ended; only its parent has not looked yet.
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18).map(str::to_owned)
}

fn host_name() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    text.map_or_else(|| "this machine".to_owned(), |text| text.trim().to_owned())
}

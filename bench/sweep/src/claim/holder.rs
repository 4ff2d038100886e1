//! Process that holds a claim, and whether it is known to have ended.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Process that holds a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimHolder {
    /// Name of its machine, for messages.
    pub host: String,
    /// Process id on that machine.
    pub pid: u32,
    /// Time of the claim, RFC 3339 in UTC, for messages.
    pub since_utc: String,
    /// Random value that distinguishes this sweep from all others.
    pub(super) nonce: String,
    /// Boot of the machine and container in which the process id is valid; `None` if unknown.
    pub(super) place: Option<String>,
    /// Start time of the process in the system's unit, because process ids are reused.
    pub(super) started: Option<String>,
    /// Milliseconds between touches of its claims.
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
            since_utc: train::host::now_utc(),
            nonce: records::store::hex(&digest[..16]),
            place,
            started,
            pause_milliseconds: pause.as_millis() as u64,
        }
    }

    /// The holder of a claim that cannot be read.
    pub(super) fn unknown() -> Self {
        Self { host: "an unknown machine".to_owned(), ..Self::default() }
    }

    pub(super) fn pause(&self) -> Duration {
        // A damaged claim must not be valid indefinitely.
        Duration::from_millis(self.pause_milliseconds).min(super::LONGEST_PAUSE)
    }

    /// Whether `other` ran where this process can see it and has ended.
    pub(super) fn knows_to_be_gone(&self, other: &Self) -> bool {
        self.place.is_some()
            && self.place == other.place
            && other.started.is_some()
            && sees_others()
            && start_of(other.pid) != other.started
    }

    /// `process 17 on host`.
    pub fn text(&self) -> String {
        format!("process {} on {}", self.pid, self.host)
    }
}

/// Boot id of the machine and process namespace; `None` on systems other than Linux.
fn place() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let processes = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), processes.display()))
}

/// Whether the processes of other users are visible: mounted with `hidepid`, `/proc` does not show those that live.
fn sees_others() -> bool {
    Path::new("/proc/1/stat").exists()
}

/// Start of a process in ticks since boot; `None` if there is no such process, or the system does not report it.
fn start_of(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // The second field is the program's name in parentheses, which may contain any character; the state
    // follows it, and the start time is 19 fields after the state.
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace();
    let state = fields.next()?;
    // A zombie has ended, although its parent has not waited for it yet.
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18).map(str::to_owned)
}

fn host_name() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    text.map_or_else(|| "this machine".to_owned(), |text| text.trim().to_owned())
}

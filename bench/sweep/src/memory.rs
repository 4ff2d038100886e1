//! Messages about the memory of workers, and detection of out-of-memory kills.
//!
//! Without Linux's counters of such kills, a worker killed by the system cannot be distinguished from one killed by a
//! user.

use std::fs;

use train::experiment::budget::bytes_text;

/// `; it had taken 1.5 GiB`, or empty if the memory is unknown.
pub(super) fn text(most_bytes: Option<u64>) -> String {
    most_bytes.map_or(String::new(), |bytes| format!("; it had taken {}", bytes_text(bytes)))
}

/// Number of processes that the system has killed because memory ran out.
#[derive(Debug, Clone, Copy)]
pub(super) struct SystemKills(Option<u64>);

impl SystemKills {
    pub(super) fn now() -> Self {
        let counted = |path: &str| {
            let text = fs::read_to_string(path).ok()?;
            let line = text.lines().find(|line| line.starts_with("oom_kill "))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        // The whole machine, and this control group (a container's limit).
        let counts = ["/proc/vmstat", "/sys/fs/cgroup/memory.events"].map(counted);
        Self(counts.into_iter().flatten().reduce(u64::saturating_add))
    }

    /// Whether the system has killed a process since; the count does not tell which one.
    pub(super) fn happened_since(&self) -> bool {
        matches!((self.0, Self::now().0), (Some(before), Some(now)) if now > before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_counted_from_a_moment_on() {
        assert!(!SystemKills(Some(u64::MAX)).happened_since());
        assert!(!SystemKills(None).happened_since());
    }
}

//! Memory of other processes. Linux only: elsewhere a budget of memory is refused
//! ([`is_told`]), and a worker that the system kills for want of memory is told from one killed by hand by
//! nothing.

use std::fs;

use crate::experiment::budget::bytes_text;

/// Resident memory of a process in bytes; `None` if it is gone or the system does not tell.
pub(super) fn resident_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Whether the memory of other processes can be seen here.
pub(super) fn is_told() -> bool {
    resident_bytes(std::process::id()).is_some()
}

/// `; it had taken 1.5 GiB`, or nothing where that is not known.
pub(super) fn text(most_bytes: Option<u64>) -> String {
    most_bytes.map_or(String::new(), |bytes| format!("; it had taken {}", bytes_text(bytes)))
}

/// How many processes the system has killed for want of memory.
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

    /// Whether there was one since. The count is the machine's: another process may have been meant.
    pub(super) fn happened_since(&self) -> bool {
        matches!((self.0, Self::now().0), (Some(before), Some(now)) if now > before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_memory_of_a_process_is_seen_as_long_as_it_lives() {
        assert!(is_told());
        assert!(resident_bytes(std::process::id()).unwrap() > 1 << 20);
        assert_eq!(resident_bytes(u32::MAX), None);
        assert!(!SystemKills(Some(u64::MAX)).happened_since());
        assert!(!SystemKills(None).happened_since());
    }
}

//! Machine of a run and the memory of its process.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reports::Host;

/// The machine, with the threads that one run uses and how many run side by side.
pub fn host(threads: usize, jobs: usize) -> Host {
    Host {
        cpu: cpu_model().unwrap_or_else(|| "unknown".to_owned()),
        logical_cpus: logical_cpus() as u64,
        os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        threads: threads as u64,
        jobs: jobs as u64,
    }
}

/// Processors that this process may use.
pub fn logical_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The processor's name; `None` where the system does not tell.
pub fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

/// The machine's memory; `None` where the system does not tell.
pub fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Largest resident size of this process so far, in bytes; `None` where the system does not tell.
pub fn peak_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Versions that a record carries.
pub fn versions() -> BTreeMap<String, String> {
    [
        ("pe-bench", env!("CARGO_PKG_VERSION")),
        ("burn", env!("PE_BENCH_BURN")),
        ("rustc", env!("PE_BENCH_RUSTC")),
    ]
    .into_iter()
    .map(|(name, version)| (name.to_owned(), version.to_owned()))
    .collect()
}

/// Commit that this program was built from, and whether the tree differed from it.
pub fn commit() -> (Option<String>, Option<bool>) {
    let commit = Some(env!("PE_BENCH_COMMIT")).filter(|commit| !commit.is_empty());
    (commit.map(str::to_owned), commit.map(|_| env!("PE_BENCH_DIRTY") == "true"))
}

/// The present time in UTC, RFC 3339.
pub fn now_utc() -> String {
    rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs())
}

/// Civil date from days since 1970 (Hinnant's algorithm), and the time of day.
fn rfc3339(seconds: u64) -> String {
    let (days, day_seconds) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (day_seconds / 3600, day_seconds / 60 % 60, day_seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_795_219_200), "2026-11-21T00:00:00Z");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn peak_memory_grows_with_what_is_touched() {
        let before = peak_bytes().unwrap();
        let block = vec![1u8; 64 << 20];
        assert!(block.iter().map(|b| u64::from(*b)).sum::<u64>() > 0);
        assert!(peak_bytes().unwrap() >= before.max(64 << 20));
    }
}

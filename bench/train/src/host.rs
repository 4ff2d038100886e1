//! Properties of the machine, and the memory of processes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jiff::Timestamp;
use records::Host;
use sysinfo::{
    CpuRefreshKind, MemoryRefreshKind, Pid, Process, ProcessRefreshKind, ProcessesToUpdate,
    RefreshKind, System,
};

/// Description of the machine for records, with the threads per run and the number of parallel runs.
pub fn host(threads: usize, jobs: usize) -> Host {
    Host {
        cpu: cpu_model().unwrap_or_else(|| "unknown".to_owned()),
        logical_cpus: logical_cpus() as u64,
        os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        threads: threads as u64,
        jobs: jobs as u64,
    }
}

/// Number of CPUs available to this process.
pub fn logical_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Name of the CPU; `None` if the system does not report it.
pub fn cpu_model() -> Option<String> {
    let cpus = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
    let system = System::new_with_specifics(cpus);
    let name = system.cpus().first().map(|cpu| cpu.brand().trim().to_owned());
    name.filter(|name| !name.is_empty())
}

/// Memory of the machine in bytes; `None` if the system does not report it.
pub fn memory_bytes() -> Option<u64> {
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    Some(System::new_with_specifics(memory).total_memory()).filter(|bytes| *bytes > 0)
}

/// Resident memory of a process in bytes; `None` if it has ended or the system does not report it.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let pid = Pid::from_u32(pid);
    let mut system = System::new();
    let memory = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, memory);
    system.process(pid).map(Process::memory)
}

/// Peak resident memory of this process in bytes; `None` on systems other than Linux.
pub fn peak_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Load average of the machine over the last minute: processes that run or wait. `None` on systems without one.
pub fn load() -> Option<f64> {
    cfg!(unix).then(|| System::load_average().one).filter(|load| load.is_finite())
}

/// Version of NVIDIA's driver; `None` on systems other than Linux and without it.
pub fn nvidia_driver() -> Option<String> {
    driver_version(&std::fs::read_to_string("/proc/driver/nvidia/version").ok()?)
}

/// Number in the first line of the driver's description: `NVRM version: ... Kernel Module  535.104.05  Sat ...`.
fn driver_version(text: &str) -> Option<String> {
    let is_version =
        |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
}

/// Model of the NVIDIA GPUs of this machine; `None` without any, or if they differ.
pub fn nvidia_model() -> Option<String> {
    let gpus = std::fs::read_dir("/proc/driver/nvidia/gpus").ok()?;
    let models = gpus.filter_map(|gpu| {
        let text = std::fs::read_to_string(gpu.ok()?.path().join("information")).ok()?;
        text.lines().find_map(|line| Some(line.strip_prefix("Model:")?.trim().to_owned()))
    });
    let models = models.collect::<std::collections::BTreeSet<_>>();
    if models.len() == 1 { models.into_iter().next() } else { None }
}

/// Sources and compiler of a program.
#[derive(Debug, Clone, Copy)]
pub struct Build {
    /// Commit of the sources; empty if unknown.
    pub commit: &'static str,
    /// Whether the sources differed from the commit.
    pub dirty: bool,
    /// Version of the compiler rustc.
    pub rustc: &'static str,
    /// Version of the tensor library Burn.
    pub burn: &'static str,
}

static BUILD: OnceLock<Build> = OnceLock::new();

/// States what this program was built from, for its records. Later calls have no effect.
pub fn set_build(build: Build) {
    let _ = BUILD.set(build);
}

/// Versions of the program, Burn and rustc, for records; the program's alone before [`set_build`].
pub fn versions() -> BTreeMap<String, String> {
    let program = [("pe-bench", env!("CARGO_PKG_VERSION"))];
    let build = BUILD.get().into_iter();
    let built = build.flat_map(|build| [("burn", build.burn), ("rustc", build.rustc)]);
    let versions = program.into_iter().chain(built);
    versions.map(|(name, version)| (name.to_owned(), version.to_owned())).collect()
}

/// Commit that this program was built from, and whether the working tree had changes; `None` if unknown.
pub fn commit() -> (Option<String>, Option<bool>) {
    let build = BUILD.get().filter(|build| !build.commit.is_empty());
    (build.map(|build| build.commit.to_owned()), build.map(|build| build.dirty))
}

/// Current time in UTC as RFC 3339, in whole seconds: `2026-11-21T00:00:00Z`.
pub fn now_utc() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_in_whole_seconds_and_utc() {
        let now = now_utc();
        assert!(now.len() == 20 && now.ends_with('Z') && now.as_bytes()[10] == b'T', "{now}");
        assert!(now.as_str() > "2026-11-21T00:00:00Z", "{now}");
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    fn the_machine_and_its_processes_are_seen() {
        assert!(cpu_model().is_some() && memory_bytes().unwrap() > 64 << 20);
        assert!(resident_bytes(std::process::id()).unwrap() > 1 << 20);
        assert_eq!(resident_bytes(u32::MAX), None);
    }

    #[test]
    fn the_version_of_a_driver_is_read() {
        let text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC";
        assert_eq!(driver_version(text).as_deref(), Some("535.104.05"));
        assert_eq!(driver_version(""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_processor_has_the_name_that_records_have_always_had() {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        if let Some(line) = text.lines().find(|line| line.starts_with("model name")) {
            assert_eq!(cpu_model().as_deref(), line.split_once(':').map(|(_, name)| name.trim()));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn peak_memory_grows_with_what_is_touched() {
        let before = peak_bytes().unwrap();
        let block = vec![1u8; 64 << 20];
        assert!(block.iter().map(|b| u64::from(*b)).sum::<u64>() > 0);
        let during = resident_bytes(std::process::id()).unwrap();
        drop(block);
        let peak = peak_bytes().unwrap();
        assert!(peak >= before.max(64 << 20));
        // The kernel's counters may be off by some pages.
        assert!(peak + (32 << 20) >= during, "{peak} after {during}");
    }
}

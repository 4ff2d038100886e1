//! Devices of a sweep: one for each worker, or several for data parallel training.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::{Hardware, meta, select};

/// Numbers of devices, written as `0-3` or `0,2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceList(Vec<usize>);

/// Most devices of a list.
const MOST: usize = 1024;

impl DeviceList {
    /// Number of workers with `each` devices.
    ///
    /// # Errors
    /// If the devices cannot be divided among them.
    pub fn workers(&self, each: usize) -> anyhow::Result<usize> {
        let count = self.0.len();
        ensure!(
            count.is_multiple_of(each),
            "--devices has {count} devices, expected a multiple of --data-parallel {each}; name more or fewer devices"
        );
        Ok(count / each)
    }

    /// List of `count` devices from `first` on.
    pub fn range(first: usize, count: usize) -> Self {
        Self((first..first + count).collect())
    }
}

impl FromStr for DeviceList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "`{text}` is not a list of devices, expected numbers or ranges without repetition, such as 0-3 or 0,2"
            )
        };
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<usize>().map_err(|_| refuse());
            let (first, last) = (number(first)?, number(last)?);
            if first > last || last - first >= MOST || all.len() >= MOST {
                return Err(refuse());
            }
            all.extend(first..=last);
        }
        let mut sorted = all.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() == all.len() { Ok(Self(all)) } else { Err(refuse()) }
    }
}

impl fmt::Display for DeviceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.0.iter().map(usize::to_string).collect::<Vec<_>>();
        f.write_str(&numbers.join(","))
    }
}

/// Devices of one worker, reserved until dropped.
#[derive(Debug)]
pub struct PooledDevices {
    /// Numbers of the devices in `--devices`.
    pub indices: Vec<usize>,
    environment: Option<(&'static str, String)>,
    inner: WorkerDevices,
    /// Locked files; `None` for those whose file system has no locks.
    _locks: Vec<Option<File>>,
}

impl PooledDevices {
    /// Environment variable of the worker, by which its backend sees only these devices.
    pub fn environment(&self) -> Option<(&'static str, &str)> {
        self.environment.as_ref().map(|(name, value)| (*name, value.as_str()))
    }

    /// Devices as the worker sees them.
    pub fn in_worker(&self) -> &WorkerDevices {
        &self.inner
    }
}

/// Devices within a worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerDevices {
    /// Indices among the devices that the worker sees.
    indices: Vec<usize>,
    /// Logical processors that the worker is bound to; empty: all.
    processors: Vec<usize>,
}

impl WorkerDevices {
    /// Makes this process compute on the devices. Threads that exist already keep their processors.
    ///
    /// # Errors
    /// If the system refuses the processors.
    pub fn take(&self) -> Result<()> {
        select(&self.indices);
        processors::bind(&self.processors)
    }
}

/// Variable with the GPUs that CUDA shows to a process.
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// Reserves devices of a backend, `each` for a worker, whose copies of the model have `threads` threads each. On a GPU
/// backend a device is a GPU; with CUDA it is counted among those of `CUDA_VISIBLE_DEVICES`. On a CPU backend device `i`
/// is the `i`-th group of `threads` processors that this process may use. Without `hold` they are checked and not locked.
///
/// # Errors
/// If a device does not exist or is in use, or the devices cannot be divided among the workers.
pub fn reserve(
    backend: &str,
    list: &DeviceList,
    threads: usize,
    each: usize,
    hold: bool,
) -> Result<Vec<PooledDevices>> {
    let hardware = meta(backend)?.hardware;
    let visible = std::env::var(VISIBLE).ok();
    list.workers(each)?;
    let places = list.0.iter().map(|index| {
        let place = place(backend, hardware, *index, threads, visible.as_deref())?;
        Ok((*index, place))
    });
    // All must exist before one is locked.
    let places = places.collect::<Result<Vec<_>>>()?;
    places.chunks(each).map(|places| pooled(places, hold)).collect()
}

/// Devices of one worker, locked with `hold`.
fn pooled(places: &[(usize, DevicePlace)], hold: bool) -> Result<PooledDevices> {
    let visible = places.iter().filter_map(|(_, place)| place.visible.as_deref());
    let visible = visible.collect::<Vec<_>>();
    let indices = if visible.is_empty() {
        places.iter().map(|(_, place)| place.index).collect()
    } else {
        (0..visible.len()).collect()
    };
    let held = if hold { places } else { &[] };
    let processors = places.iter().flat_map(|(_, place)| place.processors.clone()).collect();
    Ok(PooledDevices {
        indices: places.iter().map(|(index, _)| *index).collect(),
        environment: (!visible.is_empty()).then(|| (VISIBLE, visible.join(","))),
        inner: WorkerDevices { indices, processors },
        _locks: held.iter().map(|(i, place)| lock(*i, &place.name)).collect::<Result<_, _>>()?,
    })
}

/// Device of this machine, and the way by which a worker gets it.
#[derive(Debug)]
struct DevicePlace {
    /// Name that is the same for all backends and processes.
    name: String,
    /// Index among the devices of the backend.
    index: usize,
    /// Entry of `CUDA_VISIBLE_DEVICES`; `None` for other backends.
    visible: Option<String>,
    /// Logical processors; empty for GPUs.
    processors: Vec<usize>,
}

fn place(
    backend: &str,
    hardware: Hardware,
    index: usize,
    threads: usize,
    visible: Option<&str>,
) -> Result<DevicePlace> {
    let missing = |count: usize, about: &str| {
        format!("there is no device {index} for --devices, expected less than {count}: {about}")
    };
    Ok(match hardware {
        Hardware::Processor => {
            let usable = processors::usable().with_context(|| {
                format!(
                    "--devices with backend `{backend}` binds workers to processors, which needs Linux; leave out \
                     --devices"
                )
            })?;
            let mut groups = usable.chunks_exact(threads.max(1));
            let count = groups.len();
            let group = groups.nth(index).with_context(|| {
                let (usable, threads) = (usable.len(), threads);
                missing(count, &format!("{usable} processors in groups of --threads {threads}"))
            })?;
            let name = group.iter().map(usize::to_string).collect::<Vec<_>>().join("-");
            let name = format!("cpu-{name}");
            DevicePlace { name, index: 0, visible: None, processors: group.to_vec() }
        }
        Hardware::Cuda => {
            let name = match visible {
                None => index.to_string(),
                Some(visible) => {
                    let names = visible.split(',').map(str::trim).filter(|name| !name.is_empty());
                    let names = names.collect::<Vec<_>>();
                    let about = format!("{VISIBLE} is `{visible}`");
                    let name = names.get(index).with_context(|| missing(names.len(), &about))?;
                    (*name).to_owned()
                }
            };
            let (visible, processors) = (Some(name.clone()), Vec::new());
            DevicePlace { name: format!("cuda-{name}"), index, visible, processors }
        }
        Hardware::Metal if index > 0 => {
            bail!(missing(1, "this backend has one device"));
        }
        Hardware::Metal | Hardware::Wgpu => {
            let name = format!("{backend}-{index}");
            DevicePlace { name, index, visible: None, processors: Vec::new() }
        }
    })
}

/// Locks a file that stands for a device of this machine.
fn lock(index: usize, name: &str) -> Result<Option<File>> {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name = name.chars().map(safe).collect::<String>();
    let path = std::env::temp_dir().join(format!("pe-bench-{name}.lock"));
    let fault = || format!("cannot lock {}; make it writable or remove it", path.display());
    // The file of another user can be read and locked, but not written.
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.or_else(|error| File::open(&path).map_err(|_| error)).with_context(fault)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => bail!(
            "device {index} is used by another sweep, which has locked {}; name other --devices or wait until that \
             sweep ends",
            path.display()
        ),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
        Err(TryLockError::Error(source)) => Err(source).with_context(fault),
    }
}

/// Logical processors of this process.
#[cfg(target_os = "linux")]
mod processors {
    use anyhow::Context as _;
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    /// Processors that this process may use; `None` if the system does not tell.
    pub(super) fn usable() -> Option<Vec<usize>> {
        let set = sched_getaffinity(Pid::from_raw(0)).ok()?;
        Some((0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect())
    }

    /// Binds this thread, and those that it starts, to processors; to none: no change.
    pub(super) fn bind(processors: &[usize]) -> anyhow::Result<()> {
        if processors.is_empty() {
            return Ok(());
        }
        let mut set = CpuSet::new();
        let bound = processors.iter().try_for_each(|cpu| set.set(*cpu));
        bound
            .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
            .with_context(|| format!("cannot bind the worker to processors {processors:?}"))
    }
}

/// Logical processors of this process; systems other than Linux do not bind processes to them.
#[cfg(not(target_os = "linux"))]
mod processors {
    pub(super) fn usable() -> Option<Vec<usize>> {
        None
    }

    pub(super) fn bind(_processors: &[usize]) -> anyhow::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_nonsense_is_refused() {
        for (text, shown) in
            [("0", "0"), ("0-3", "0,1,2,3"), ("2,0", "2,0"), ("0-1, 4-5", "0,1,4,5")]
        {
            assert_eq!(text.parse::<DeviceList>().unwrap().to_string(), shown);
        }
        for text in ["", "a", "3-1", "0,0", "0-2,1", "-1", "1-", "0-99999999999"] {
            let said = text.parse::<DeviceList>().unwrap_err();
            assert!(said.contains("0-3"), "{text}: {said}");
        }
    }

    #[test]
    fn cuda_devices_are_counted_among_the_visible_ones() {
        let device = |index, visible| place("cuda", Hardware::Cuda, index, 1, visible);
        let second = device(1, Some("4, GPU-5")).unwrap();
        assert_eq!((second.visible.as_deref(), &*second.name), (Some("GPU-5"), "cuda-GPU-5"));
        assert_eq!(device(7, None).unwrap().visible.as_deref(), Some("7"));
        let said = device(2, Some("4,5")).unwrap_err().to_string();
        assert!(said.contains("device 2") && said.contains("less than 2"), "{said}");
    }

    #[test]
    fn a_worker_has_one_device_or_several() {
        let unlocked = |hardware, name: &str| {
            let name = format!("test-{name}-{}", std::process::id());
            [(1, 3), (2, 5)].map(|(number, index)| {
                let place = place("wgpu", hardware, index, 1, None).unwrap();
                (number, DevicePlace { name: format!("{name}-{index}"), ..place })
            })
        };
        let cuda = unlocked(Hardware::Cuda, "cuda");
        let two = pooled(&cuda, true).unwrap();
        assert_eq!((&two.indices[..], &two.inner.indices[..]), (&[1, 2][..], &[0, 1][..]));
        assert_eq!(two.environment(), Some((VISIBLE, "3,5")));
        let said = pooled(&cuda[1..], true).unwrap_err().to_string();
        assert!(said.contains("device 2 is used by another sweep"), "{said}");
        // Other GPUs keep their index in the worker.
        let two = pooled(&unlocked(Hardware::Wgpu, "wgpu"), true).unwrap();
        assert_eq!((&two.inner.indices[..], two.environment()), (&[3, 5][..], None));
        for (_, place) in cuda.iter().chain(&unlocked(Hardware::Wgpu, "wgpu")) {
            let file = format!("pe-bench-{}.lock", place.name);
            std::fs::remove_file(std::env::temp_dir().join(file)).unwrap();
        }
        assert!(place("tch-mps", Hardware::Metal, 1, 1, None).is_err());
        let said = reserve("flex", &DeviceList::range(0, 3), 1, 2, true).unwrap_err().to_string();
        assert!(said.contains("3 devices, expected a multiple of --data-parallel 2"), "{said}");
    }

    #[test]
    fn a_device_is_held_by_one_sweep_and_free_after_it() {
        // The lock is one of the machine, on which other tests may run.
        let name = format!("test-{}", std::process::id());
        let held = lock(3, &name).unwrap();
        let said = lock(3, &name).unwrap_err();
        assert!(said.to_string().contains("device 3 is used by another sweep"), "{said}");
        drop(held);
        lock(3, &name).unwrap();
        std::fs::remove_file(std::env::temp_dir().join(format!("pe-bench-{name}.lock"))).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn devices_of_the_processor_are_groups_of_processors() {
        let usable = processors::usable().unwrap();
        let group = |index, threads| {
            let device = place("flex", Hardware::Processor, index, threads, None);
            device.map(|device| device.processors)
        };
        assert_eq!(group(0, usable.len()).unwrap(), usable);
        assert_eq!(group(usable.len() - 1, 1).unwrap(), usable[usable.len() - 1..]);
        let said = group(1, usable.len()).unwrap_err().to_string();
        assert!(said.contains("device 1 for --devices, expected less than 1"), "{said}");
    }
}

//! Devices of a sweep.

use crate::compute::DeviceArgs;
use train::backend::pool::{self, DeviceList, PooledDevices};
use train::backend::{self, Hardware};

/// Reserves the devices that `--devices` or `--device` names, `each` for a cell; none if all workers use the first
/// devices of a CPU backend, or device 0. Without `hold` they are checked and not locked.
///
/// # Errors
///
/// Message, if a device does not exist or is in use, or `jobs` cells were to share one.
pub(crate) fn reserve(
    place: &DeviceArgs,
    list: Option<&DeviceList>,
    jobs: Option<usize>,
    threads: Option<usize>,
    each: usize,
    hold: bool,
) -> anyhow::Result<Vec<PooledDevices>> {
    let is_processor = backend::meta(place.backend())?.hardware == Hardware::Processor;
    let is_named = place.device > 0 || (each > 1 && !is_processor);
    let own = is_named.then(|| DeviceList::range(place.device, each));
    anyhow::ensure!(
        list.is_some() || own.is_none() || jobs.is_none_or(|jobs| jobs == 1),
        "--device {} with {each} devices for each cell runs one cell at a time; leave out --jobs, or name more --devices",
        place.device
    );
    match list.or(own.as_ref()) {
        Some(list) => Ok(pool::reserve(place.backend(), list, threads.unwrap_or(1), each, hold)?),
        None => Ok(Vec::new()),
    }
}

//! Devices of a sweep.

use crate::backend::pool::{self, DeviceList, PooledDevice};
use crate::cli::compute::DeviceArgs;

/// Reserves the devices that `--devices` or `--device` names; none if all workers use device 0.
///
/// # Errors
///
/// Message, if a device does not exist or is in use, or `jobs` cells were to share one.
pub(in crate::cli) fn reserve(
    place: &DeviceArgs,
    list: Option<&DeviceList>,
    [jobs, threads]: [Option<usize>; 2],
) -> anyhow::Result<Vec<PooledDevice>> {
    let one = (place.device() > 0).then(|| DeviceList::one(place.device()));
    anyhow::ensure!(
        one.is_none() || jobs.is_none_or(|jobs| jobs == 1),
        "--device {} runs one cell at a time; leave out --jobs, or name several --devices",
        place.device()
    );
    match list.or(one.as_ref()) {
        Some(list) => Ok(pool::reserve(place.backend(), list, threads.unwrap_or(1))?),
        None => Ok(Vec::new()),
    }
}

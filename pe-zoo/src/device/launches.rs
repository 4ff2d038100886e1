//! Kernels that a piece of work launches on GPUs, and the time that they take there.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use burn::backend::DispatchDevice;
use burn::tensor::Device;
use burn_cubecl::cubecl::config::{TypeNameFormatLevel, type_name_format};
use burn_cubecl::cubecl::future::block_on;
use burn_cubecl::cubecl::logging::{
    LaunchObservation, LaunchObserver, ProfileDuration, TimingMethod, TimingRequest,
};
use burn_cubecl::cubecl::profile::Instant;

/// Launch of a kernel with its time on the device.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedLaunch {
    /// Name of the kernel.
    pub kernel: String,
    /// Time from the begin of the observed work to the begin of the kernel.
    pub start_seconds: f64,
    /// Duration of the kernel.
    pub seconds: f64,
    /// Whether the device measured the time, and not the host.
    pub on_device: bool,
}

/// Runs `work` and returns the names of the kernels that this process launches meanwhile, in their order.
pub fn launches<R>(work: impl FnOnce() -> R) -> (R, Vec<String>) {
    let names = Arc::new(Names::default());
    let observation = LaunchObservation::new(names.clone());
    let result = work();
    drop(observation);
    let names = locked(&names.0).iter().map(|name| short(name)).collect();
    (result, names)
}

/// Runs `work` and returns the kernels that this process launches meanwhile, each timed by events of the device. Kernels
/// are not made to wait for each other; those without a measurement are left out.
pub fn timed_launches<R>(work: impl FnOnce() -> R) -> (R, Vec<TimedLaunch>) {
    let start = Instant::now();
    let unread = Arc::new(Unread::default());
    let observation = LaunchObservation::new(unread.clone());
    let result = work();
    drop(observation);
    let unread = std::mem::take(&mut *locked(&unread.0));
    let launches = unread.into_iter().filter_map(|(kernel, profile)| {
        let on_device = profile.timing_method() == TimingMethod::Device;
        let ticks = block_on(profile.resolve())?;
        Some(TimedLaunch {
            kernel: short(kernel),
            start_seconds: ticks.start_duration_since(start).as_secs_f64(),
            seconds: ticks.duration().as_secs_f64(),
            on_device,
        })
    });
    (result, launches.collect())
}

/// Runs `work` and returns the time between two events of the GPU around it.
///
/// # Errors
///
/// Message, if the device is no GPU or cannot measure.
pub fn device_time<R>(device: &Device, work: impl FnOnce() -> R) -> Result<(R, Duration), String> {
    let device = device.clone().inner();
    let DispatchDevice::Cube(device) = device.as_dispatch() else {
        return Err("this device cannot measure time with events, expected a GPU of cuda or wgpu"
            .to_owned());
    };
    let client = device.client();
    let window = client.profile_start().map_err(|error| format!("{error:?}"))?;
    let result = work();
    let profile = client.profile_end(window).map_err(|error| format!("{error:?}"))?;
    let ticks = block_on(profile.resolve())
        .ok_or("the GPU returned no time for the measured work; measure again")?;
    Ok((result, ticks.duration()))
}

fn short(kernel: &str) -> String {
    type_name_format(kernel, TypeNameFormatLevel::Balanced)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Names(Mutex<Vec<&'static str>>);

impl LaunchObserver for Names {
    fn launched(&self, kernel: &'static str) {
        locked(&self.0).push(kernel);
    }
}

#[derive(Default)]
struct Unread(Mutex<Vec<(&'static str, ProfileDuration)>>);

impl LaunchObserver for Unread {
    fn launched(&self, _kernel: &'static str) {}

    fn timing(&self) -> TimingRequest {
        TimingRequest::Deferred
    }

    fn profiled(&self, kernel: &'static str, profile: ProfileDuration) {
        locked(&self.0).push((kernel, profile));
    }
}

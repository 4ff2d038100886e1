//! Backends by name, their devices and attention engines.
//!
//! A process computes on one device of one backend, or on several in data parallel training. [`select`] chooses them by
//! their indices, before the first is opened.

pub mod pool;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, bail, ensure};
use burn::tensor::Device;
use pe_zoo::attention::Engine;
use pe_zoo::device::{DeviceFacts, facts, identity, open};
use pe_zoo::ops::MatmulPrecision;
use records::DeviceInfo;

use crate::{host, names};

/// Backend that can be named with `--backend`.
#[derive(Debug, Clone, Copy)]
pub struct BackendMeta {
    /// Name that `--backend` takes.
    pub id: &'static str,
    /// Cargo feature that compiles it in.
    pub feature: &'static str,
    /// Description of the hardware that it runs on.
    pub about: &'static str,
    /// Kind of its devices.
    pub hardware: Hardware,
    /// Makes the device with an index, without opening it; `None` if the backend is not compiled in.
    device: Option<fn(usize) -> Device>,
}

/// Kind of a backend's devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hardware {
    /// The processor: one device.
    Processor,
    /// GPUs of NVIDIA, counted by CUDA.
    Cuda,
    /// The GPU of an Apple machine: one device.
    Metal,
    /// Adapters of Vulkan, Metal or WebGPU.
    Wgpu,
}

impl Hardware {
    /// Whether there is only device 0.
    fn is_single(self) -> bool {
        matches!(self, Self::Processor | Self::Metal)
    }
}

/// The value if a feature is on, and `None` otherwise.
macro_rules! with_feature {
    ($feature:literal, $device:expr) => {{
        #[cfg(feature = $feature)]
        let device: Option<fn(usize) -> Device> = Some($device);
        #[cfg(not(feature = $feature))]
        let device: Option<fn(usize) -> Device> = None;
        device
    }};
}

/// Every backend, compiled in or not.
pub const ALL: &[BackendMeta] = &[
    BackendMeta {
        id: "flex",
        feature: "flex",
        about: "pure Rust on the CPU; needs cargo and a C compiler",
        hardware: Hardware::Processor,
        device: with_feature!("flex", |_| Device::flex()),
    },
    BackendMeta {
        id: "tch",
        feature: "tch",
        about: "LibTorch on the CPU; set LIBTORCH_USE_PYTORCH=1 with PyTorch 2.9.0 in the active Python",
        hardware: Hardware::Processor,
        device: with_feature!("tch", |_| libtorch::cpu()),
    },
    BackendMeta {
        id: "tch-cuda",
        feature: "tch",
        about: "LibTorch on NVIDIA GPUs; build as for tch, with a PyTorch for CUDA",
        hardware: Hardware::Cuda,
        device: with_feature!("tch", libtorch::cuda),
    },
    BackendMeta {
        id: "tch-mps",
        feature: "tch",
        about: "LibTorch on the GPU of an Apple machine; build as for tch, with a PyTorch for macOS",
        hardware: Hardware::Metal,
        device: with_feature!("tch", |_| libtorch::mps()),
    },
    BackendMeta {
        id: "cuda",
        feature: "cuda",
        about: "NVIDIA GPUs",
        hardware: Hardware::Cuda,
        device: with_feature!("cuda", pe_zoo::device::cuda),
    },
    BackendMeta {
        id: "wgpu",
        feature: "wgpu",
        about: "GPUs with Vulkan, Metal or WebGPU",
        hardware: Hardware::Wgpu,
        device: with_feature!("wgpu", adapter),
    },
];

/// Devices of LibTorch.
#[cfg(feature = "tch")]
#[expect(
    deprecated,
    reason = "Burn drops LibTorch in its next release, so pe-zoo pins Burn 0.22.1"
)]
mod libtorch {
    use burn::tensor::Device;

    pub(super) fn cpu() -> Device {
        Device::libtorch()
    }

    pub(super) fn cuda(index: usize) -> Device {
        Device::libtorch_cuda(index)
    }

    pub(super) fn mps() -> Device {
        Device::libtorch_mps()
    }
}

/// Adapter of wgpu: 0 is the one that wgpu prefers, `n` the `n`-th discrete GPU from 0 for `n` above 0.
#[cfg(feature = "wgpu")]
fn adapter(index: usize) -> Device {
    use burn::tensor::DeviceKind;
    Device::wgpu(match index {
        0 => DeviceKind::DefaultDevice,
        index => DeviceKind::DiscreteGpu(index),
    })
}

/// Checks that a backend has an engine; `None` is its fastest.
///
/// # Errors
/// If the backend is unavailable or does not have the engine.
pub fn engine(engine: Option<Engine>, backend: &str) -> Result<Engine> {
    let device = device(backend)?;
    let engine = engine.unwrap_or_else(|| Engine::best(&device));
    ensure!(
        engine.available(&device),
        "backend `{backend}` has no fused engine; leave out --engine, or use --engine reference"
    );
    Ok(engine)
}

/// Checks that the device of a backend supports a precision.
///
/// # Errors
/// If it does not, with the supported ones.
pub fn precision(wanted: MatmulPrecision, backend: &str, device: &Device) -> Result<()> {
    let possible = MatmulPrecision::ALL.into_iter().filter(|precision| precision.available(device));
    ensure!(
        wanted.available(device),
        "backend `{backend}` does not support precision {} on this machine, expected one of: {}; change `precision` under \
         [train], or --precision",
        wanted.id(),
        possible.map(MatmulPrecision::id).collect::<Vec<_>>().join(", ")
    );
    Ok(())
}

/// Parses the name of a precision.
///
/// # Errors
/// Message with the known names, if there is no such precision.
pub fn named_precision(text: &str) -> Result<MatmulPrecision, String> {
    let known = || MatmulPrecision::ALL.map(MatmulPrecision::id).join(", ");
    MatmulPrecision::ALL
        .into_iter()
        .find(|precision| precision.id() == text)
        .ok_or_else(|| format!("unknown precision `{text}`, expected one of: {}", known()))
}

impl BackendMeta {
    /// Facts of the device, or the reason why it cannot be opened; `None` if the backend is not compiled in.
    pub fn facts(&self) -> Option<Result<DeviceFacts, String>> {
        self.device.map(|make| facts(&make(0)))
    }
}

/// Indices of the devices that this process computes on; empty: device 0 and those that follow it.
static SELECTED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Chooses the devices of this process among those of its backend. All work but data parallel training is done on the
/// first one.
pub fn select(indices: &[usize]) {
    *SELECTED.lock().unwrap_or_else(PoisonError::into_inner) = indices.to_vec();
}

/// Results of opening devices, by backend and index.
type OpenedDevices = BTreeMap<(&'static str, usize), Result<(), String>>;

/// Result of opening each device, cached: a later call may come from a thread in which a panic of the driver would be
/// harmful.
static OPENED: Mutex<OpenedDevices> = Mutex::new(BTreeMap::new());

/// Description of a backend.
///
/// # Errors
/// If there is none, with the nearest name.
pub fn meta(id: &str) -> Result<&'static BackendMeta> {
    let known = || names::unknown("backend", id, ALL.iter().map(|meta| meta.id));
    ALL.iter().find(|meta| meta.id == id).with_context(known)
}

/// The device of a backend that this process computes on; see [`select`].
///
/// # Errors
/// If the name is unknown or the backend is unavailable.
pub fn device(id: &str) -> Result<Device> {
    device_at(id, selected(0))
}

/// The first `count` devices of a backend that this process computes on: those that were [selected](select), followed by
/// the devices after the last of them. A backend for the processor has any number of devices, which are all the same.
///
/// # Errors
/// If the name is unknown or a device is unavailable.
pub fn devices(id: &str, count: usize) -> Result<Vec<Device>> {
    let is_processor = meta(id)?.hardware == Hardware::Processor;
    (0..count).map(|n| device_at(id, selected(if is_processor { 0 } else { n }))).collect()
}

/// Index of the `n`-th device of this process.
fn selected(n: usize) -> usize {
    let selected = SELECTED.lock().unwrap_or_else(PoisonError::into_inner);
    match (selected.get(n), selected.last()) {
        (Some(index), _) => *index,
        (None, Some(last)) => last + 1 + n - selected.len(),
        (None, None) => n,
    }
}

/// Opens the device of a backend with an index.
fn device_at(id: &str, index: usize) -> Result<Device> {
    let meta = meta(id)?;
    let make = meta.device.with_context(|| {
        let compiled = ALL.iter().filter(|meta| meta.device.is_some()).map(|meta| meta.id);
        format!(
            "backend `{id}` is not compiled in; this program has: {}; build with `cargo build --release --features {}`",
            compiled.collect::<Vec<_>>().join(", "),
            meta.feature
        )
    })?;
    ensure!(
        index == 0 || !meta.hardware.is_single(),
        "backend `{id}` has only device 0, but --device is {index}; leave out --device, or bind \
         workers to processors with `run --devices`"
    );
    let device = make(index);
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    match opened.entry((meta.id, index)).or_insert_with(|| open(&device)) {
        Ok(()) => Ok(device),
        Err(reason) => bail!(
            "backend `{id}` has no usable device {index}: {reason}; check its driver, or choose another device or backend \
             (`pe-bench list backends`)"
        ),
    }
}

/// Name, driver and memory of a device, for records; `None` for the processor and for an unknown backend.
pub fn accelerator(id: &str, device: &Device) -> Option<DeviceInfo> {
    let hardware = meta(id).ok()?.hardware;
    let driver = match hardware {
        Hardware::Processor => return None,
        Hardware::Cuda => host::nvidia_driver(),
        Hardware::Metal | Hardware::Wgpu => None,
    };
    let (name, memory_bytes) = identity(device);
    let name = name.or_else(|| (hardware == Hardware::Cuda).then(host::nvidia_model).flatten());
    Some(DeviceInfo { name: name.unwrap_or_else(|| id.to_owned()), driver, memory_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_backend_suggests_the_nearest() {
        let error = device("flexx").unwrap_err().to_string();
        assert!(error.contains("did you mean `flex`?"), "{error}");
    }

    #[test]
    #[cfg(not(feature = "cuda"))]
    fn a_backend_that_is_not_compiled_in_says_how_to_get_it() {
        let error = device("cuda").unwrap_err().to_string();
        assert!(error.contains("--features cuda") && error.contains("flex"), "{error}");
    }

    #[test]
    fn what_is_compiled_in_says_what_it_computes_with() {
        for meta in ALL {
            match meta.facts() {
                None => assert!(meta.device.is_none()),
                Some(Ok(facts)) => assert!(facts.floats.contains(&"f32"), "{}: {facts:?}", meta.id),
                Some(Err(reason)) => assert!(!reason.is_empty(), "{}", meta.id),
            }
        }
    }

    #[test]
    fn precisions_are_read_by_name_and_refused_with_what_is_possible() {
        assert_eq!(named_precision("bf16"), Ok(MatmulPrecision::Bf16));
        assert_eq!(named_precision("tf32"), Ok(MatmulPrecision::Tf32));
        #[cfg(feature = "flex")]
        {
            let error =
                precision(MatmulPrecision::Tf32, "flex", &Device::flex()).unwrap_err().to_string();
            assert!(error.contains("does not support precision tf32"), "{error}");
            assert!(error.contains("expected one of: f32"), "{error}");
        }
        assert!(named_precision("f8").unwrap_err().contains("unknown precision `f8`"));
    }
}

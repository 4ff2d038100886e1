//! Backends by name: which are compiled in, and how to get the others.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use burn::tensor::Device;
use pe_zoo::attention::Engine;
use pe_zoo::device::{DeviceFacts, facts, open};
use pe_zoo::ops::MatmulPrecision;

/// A backend that `--backend` may name.
#[derive(Debug, Clone, Copy)]
pub struct BackendMeta {
    /// Name, and the cargo feature that compiles it in.
    pub id: &'static str,
    /// Hardware that it runs on.
    pub about: &'static str,
    /// Makes its device; `None` where it is not compiled in.
    device: Option<fn() -> Device>,
}

/// Every backend, compiled in or not.
pub const ALL: &[BackendMeta] = &[
    BackendMeta {
        id: "flex",
        about: "pure Rust on the CPU; needs nothing but cargo",
        #[cfg(feature = "flex")]
        device: Some(Device::flex),
        #[cfg(not(feature = "flex"))]
        device: None,
    },
    BackendMeta {
        id: "tch",
        about: "LibTorch on the CPU; set LIBTORCH_USE_PYTORCH=1 with PyTorch 2.9.0 in the active Python",
        #[cfg(feature = "tch")]
        device: Some(libtorch),
        #[cfg(not(feature = "tch"))]
        device: None,
    },
    BackendMeta {
        id: "cuda",
        about: "NVIDIA GPUs",
        #[cfg(feature = "cuda")]
        device: Some(|| Device::cuda(0)),
        #[cfg(not(feature = "cuda"))]
        device: None,
    },
    BackendMeta {
        id: "wgpu",
        about: "Vulkan, Metal or WebGPU",
        #[cfg(feature = "wgpu")]
        device: Some(|| Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(not(feature = "wgpu"))]
        device: None,
    },
];

#[cfg(feature = "tch")]
#[expect(deprecated, reason = "Burn drops LibTorch in its next release; 0.22.1 is pinned for it")]
fn libtorch() -> Device {
    Device::libtorch()
}

/// A backend that cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BackendError {
    /// No backend has this name.
    #[error("unknown backend `{id}`{}; known: {known}", nearest.as_ref().map(|n| format!(", did you mean `{n}`?")).unwrap_or_default())]
    Unknown {
        /// The value that was requested.
        id: String,
        /// The nearest name, if one is near.
        nearest: Option<String>,
        /// All names that exist.
        known: String,
    },
    /// It exists, but this program was built without it.
    #[error(
        "backend `{id}` is not compiled in; this program has: {compiled}. \
         Build with `cargo build --release --features {id}` to get it"
    )]
    NotCompiled {
        /// The value that was requested.
        id: String,
        /// Devices that exist.
        compiled: String,
    },
    /// It is compiled in, and its device does not open.
    #[error(
        "backend `{id}` has no device here: {reason}. See to its driver, or choose another; \
         `pe-bench list backends` shows what each has"
    )]
    NoDevice {
        /// The value that was requested.
        id: String,
        /// Message of the driver.
        reason: String,
    },
    /// Its device does not compute with these numbers.
    #[error(
        "backend `{backend}` does not multiply {precision} on this machine; it does: {possible}. \
         Change `precision` under [train], or --precision"
    )]
    NoPrecision {
        /// Name of the backend.
        backend: String,
        /// The value that was requested.
        precision: &'static str,
        /// Combination that would work.
        possible: String,
    },
    /// The backend has no such engine.
    #[error("backend `{backend}` has no fused engine; use --engine auto or --engine reference")]
    NoFusedEngine {
        /// Name of the backend.
        backend: String,
    },
}

/// Which attention engine is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineChoice {
    /// The fastest that the backend has.
    #[default]
    Auto,
    /// Plain tensor operations, on any backend.
    Reference,
    /// Blocks in the cache or in shared memory, no attention matrix; on flex, cuda and wgpu.
    Fused,
}

/// The engine that a choice means on a backend.
///
/// # Errors
/// [`BackendError`] if the backend is not to be had, or has not the engine.
pub fn engine(choice: EngineChoice, backend: &str) -> Result<Engine, BackendError> {
    let device = device(backend)?;
    match choice {
        EngineChoice::Auto => Ok(Engine::best(&device)),
        EngineChoice::Reference => Ok(Engine::Reference),
        EngineChoice::Fused if Engine::Fused.available(&device) => Ok(Engine::Fused),
        EngineChoice::Fused => Err(BackendError::NoFusedEngine { backend: backend.to_owned() }),
    }
}

/// Refuses a precision that a backend's device has not.
///
/// # Errors
/// [`BackendError::NoPrecision`], with those that it has.
pub fn precision(
    wanted: MatmulPrecision,
    backend: &str,
    device: &Device,
) -> Result<(), BackendError> {
    if wanted.available(device) {
        return Ok(());
    }
    let possible = MatmulPrecision::ALL.into_iter().filter(|precision| precision.available(device));
    Err(BackendError::NoPrecision {
        backend: backend.to_owned(),
        precision: wanted.id(),
        possible: possible.map(MatmulPrecision::id).collect::<Vec<_>>().join(", "),
    })
}

/// Reads a precision's name on the command line.
///
/// # Errors
/// Supported precisions in words.
pub fn named_precision(text: &str) -> Result<MatmulPrecision, String> {
    let known = || MatmulPrecision::ALL.map(MatmulPrecision::id).join(", ");
    MatmulPrecision::ALL
        .into_iter()
        .find(|precision| precision.id() == text)
        .ok_or_else(|| format!("unknown precision `{text}`; possible: {}", known()))
}

impl BackendMeta {
    /// Whether this program has it.
    pub fn is_compiled(&self) -> bool {
        self.device.is_some()
    }

    /// Facts of its device, or why it does not open; `None` if it is not compiled in.
    pub fn facts(&self) -> Option<Result<DeviceFacts, String>> {
        self.device.map(|make| facts(&make()))
    }
}

/// Result of opening each device, once: threads that ask later may be in the middle of something
/// that panics.
static OPENED: Mutex<BTreeMap<&str, Result<(), String>>> = Mutex::new(BTreeMap::new());

/// The device of a backend.
///
/// # Errors
/// [`BackendError`], with the names that would work.
pub fn device(id: &str) -> Result<Device, BackendError> {
    let known = || ALL.iter().map(|meta| meta.id);
    let Some(meta) = ALL.iter().find(|meta| meta.id == id) else {
        return Err(BackendError::Unknown {
            id: id.to_owned(),
            nearest: pe_zoo::settings::nearest(id, known()),
            known: known().collect::<Vec<_>>().join(", "),
        });
    };
    let device = meta.device.map(|make| make()).ok_or_else(|| BackendError::NotCompiled {
        id: id.to_owned(),
        compiled: ALL
            .iter()
            .filter(|meta| meta.is_compiled())
            .map(|meta| meta.id)
            .collect::<Vec<_>>()
            .join(", "),
    })?;
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    match opened.entry(meta.id).or_insert_with(|| open(&device)) {
        Ok(()) => Ok(device),
        Err(reason) => Err(BackendError::NoDevice { id: id.to_owned(), reason: reason.clone() }),
    }
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
                None => assert!(!meta.is_compiled()),
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
            assert!(error.contains("does not multiply tf32"), "{error}");
            assert!(error.contains("it does: f32"), "{error}");
        }
        assert!(named_precision("f8").unwrap_err().contains("unknown precision `f8`"));
    }
}

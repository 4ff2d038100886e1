//! Backends by name, their devices and attention engines.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use burn::tensor::Device;
use pe_zoo::attention::Engine;
use pe_zoo::device::{DeviceFacts, facts, open};
use pe_zoo::ops::MatmulPrecision;

/// Backend that can be named with `--backend`.
#[derive(Debug, Clone, Copy)]
pub struct BackendMeta {
    /// Name, and the cargo feature that compiles it in.
    pub id: &'static str,
    /// Hardware that it runs on.
    pub about: &'static str,
    /// Opens the device; `None` if the backend is not compiled in.
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

/// Error for a backend that cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BackendError {
    /// No backend has this name.
    #[error("unknown backend `{id}`{}; known: {known}", nearest.as_ref().map(|n| format!(", did you mean `{n}`?")).unwrap_or_default())]
    Unknown {
        /// The value that was requested.
        id: String,
        /// The known name with the most similar spelling, if there is one.
        nearest: Option<String>,
        /// All existing names, for the message.
        known: String,
    },
    /// The backend is not compiled in.
    #[error(
        "backend `{id}` is not compiled in; this program has: {compiled}; \
         build with `cargo build --release --features {id}`"
    )]
    NotCompiled {
        /// The value that was requested.
        id: String,
        /// Backends that are compiled in, for the message.
        compiled: String,
    },
    /// The device of the backend cannot be opened.
    #[error(
        "backend `{id}` has no usable device: {reason}; check its driver, or choose another backend \
         (`pe-bench list backends`)"
    )]
    NoDevice {
        /// The value that was requested.
        id: String,
        /// Message of the driver.
        reason: String,
    },
    /// The device does not support the precision.
    #[error(
        "backend `{backend}` does not support precision {precision} on this machine, expected one of: {possible}; \
         change `precision` under [train], or --precision"
    )]
    NoPrecision {
        /// Name of the backend.
        backend: String,
        /// The value that was requested.
        precision: &'static str,
        /// Combinations that work, for the message.
        possible: String,
    },
    /// The backend has no such engine.
    #[error("backend `{backend}` has no fused engine; use --engine auto or --engine reference")]
    NoFusedEngine {
        /// Name of the backend.
        backend: String,
    },
}

/// Choice of the attention engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineChoice {
    /// Fastest engine of the backend.
    #[default]
    Auto,
    /// Plain tensor operations, on any backend.
    Reference,
    /// Blocked attention without a full attention matrix; on flex, cuda and wgpu.
    Fused,
}

/// Resolves a choice to an engine of a backend.
///
/// # Errors
/// [`BackendError`] if the backend is unavailable or does not have the engine.
pub fn engine(choice: EngineChoice, backend: &str) -> Result<Engine, BackendError> {
    let device = device(backend)?;
    match choice {
        EngineChoice::Auto => Ok(Engine::best(&device)),
        EngineChoice::Reference => Ok(Engine::Reference),
        EngineChoice::Fused if Engine::Fused.available(&device) => Ok(Engine::Fused),
        EngineChoice::Fused => Err(BackendError::NoFusedEngine { backend: backend.to_owned() }),
    }
}

/// Checks that the device of a backend supports a precision.
///
/// # Errors
/// [`BackendError::NoPrecision`], with the supported ones.
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
    /// Whether the backend is compiled in.
    pub fn is_compiled(&self) -> bool {
        self.device.is_some()
    }

    /// Facts of the device, or the reason why it cannot be opened; `None` if the backend is not compiled in.
    pub fn facts(&self) -> Option<Result<DeviceFacts, String>> {
        self.device.map(|make| facts(&make()))
    }
}

/// Result of opening each device, cached: a later call may come from a thread in which a panic of the driver would be
/// harmful.
static OPENED: Mutex<BTreeMap<&str, Result<(), String>>> = Mutex::new(BTreeMap::new());

/// The device of a backend.
///
/// # Errors
/// [`BackendError`] if the name is unknown or the backend is unavailable.
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
            assert!(error.contains("does not support precision tf32"), "{error}");
            assert!(error.contains("expected one of: f32"), "{error}");
        }
        assert!(named_precision("f8").unwrap_err().contains("unknown precision `f8`"));
    }
}

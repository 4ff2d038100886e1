//! Description of a device, and a test of whether it works.

#[cfg(feature = "cube")]
mod launches;

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "cube")]
use burn::backend::DispatchDevice;
use burn::tensor::{DType, Device, Tensor};

#[cfg(feature = "lab")]
pub use crate::kernels::gpu::lab::{Choices, choose};
#[cfg(feature = "lab")]
pub use crate::kernels::gpu::multiply_on_mma;
use crate::ops::MatmulPrecision;
#[cfg(feature = "cube")]
pub use launches::{TimedLaunch, device_time, launches, timed_launches};

/// Name, memory and number types of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Name of the device; `None` if the backend knows no device but the processor.
    pub name: Option<String>,
    /// Memory in bytes; `None` if unknown.
    pub memory_bytes: Option<u64>,
    /// Floating-point types that the device computes with.
    pub floats: Vec<&'static str>,
}

/// NVIDIA GPU with an index, not opened yet. Unless a device was opened before, compiled kernels are kept on disk, as the
/// results of tuning are, so that a second process starts in seconds.
///
/// The folder and other settings are those of Burn: a file `cubecl.toml` or `burn.toml` in the current folder or above it;
/// by default `target/environment` of a cargo workspace, and the user's cache folder elsewhere.
#[cfg(feature = "cuda")]
pub fn cuda(index: usize) -> Device {
    use burn_cubecl::cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};

    let mut config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    config.compilation.cache = true;
    CubeClRuntimeConfig::try_set(config);
    Device::cuda(index)
}

/// Opens a device and reads its name, memory and number types.
///
/// # Errors
/// As [`open`].
pub fn facts(device: &Device) -> Result<DeviceFacts, String> {
    open(device)?;
    Ok(asked(device))
}

/// Opens a device and checks that it adds two numbers correctly.
///
/// # Errors
///
/// The driver's reason why the device cannot be opened.
pub fn open(device: &Device) -> Result<(), String> {
    // A missing driver panics on a separate thread: the reason is in that message, not in
    // the panic that follows from it on this thread.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let message = Arc::new(Mutex::new(None));
    let heard = Arc::clone(&message);
    let hook = take_hook();
    set_hook(Box::new(move |panic| {
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.get_or_insert_with(|| panic.payload_as_str().unwrap_or_default().to_owned());
    }));
    let opened = catch_unwind(AssertUnwindSafe(|| sum_of_ones(device, DType::F32)));
    set_hook(hook);
    match opened {
        Ok(Some(2.0)) => Ok(()),
        Ok(Some(sum)) => Err(format!("1 + 1 is {sum} on this device, expected 2")),
        Ok(None) => Err("the result of 1 + 1 cannot be read back from this device".to_owned()),
        Err(_) => {
            let message = message.lock().unwrap_or_else(PoisonError::into_inner).take();
            Err(first_words(message.as_deref().unwrap_or_default()))
        }
    }
}

/// Returns the beginning of a message, up to a dash or the end of the first line.
fn first_words(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let words = line.split(" - ").next().unwrap_or_default().trim();
    if words.is_empty() {
        "the device cannot be opened, and its driver gives no reason".to_owned()
    } else {
        words.to_owned()
    }
}

fn asked(device: &Device) -> DeviceFacts {
    let (name, memory_bytes) = identity(device);
    // Types that can only be stored are excluded.
    let types =
        [("f32", DType::F32), ("bf16", DType::BF16), ("f16", DType::F16), ("f64", DType::F64)];
    let floats = types
        .into_iter()
        .filter(|(_, dtype)| device.supports_dtype(*dtype) && adds(device, *dtype))
        .map(|(name, _)| name)
        .chain(MatmulPrecision::Tf32.available(device).then(|| MatmulPrecision::Tf32.id()))
        .collect();
    DeviceFacts { name, memory_bytes, floats }
}

/// Name and memory in bytes of a device, if the backend knows them.
pub fn identity(device: &Device) -> (Option<String>, Option<u64>) {
    let device = device.clone().inner();
    #[cfg(feature = "cube")]
    if let DispatchDevice::Cube(device) = device.as_dispatch() {
        let client = device.client();
        let properties = client.properties();
        return (Some(properties.identity.name.clone()), properties.memory.max_memory());
    }
    let _ = device;
    (None, None)
}

/// Whether the device computes 1 + 1 = 2 in this type.
fn adds(device: &Device, dtype: DType) -> bool {
    let sum = || sum_of_ones(device, dtype);
    catch_unwind(AssertUnwindSafe(sum)).ok().flatten() == Some(2.0)
}

fn sum_of_ones(device: &Device, dtype: DType) -> Option<f32> {
    let one = Tensor::<1>::ones([1], (device, dtype));
    let sum = (one.clone() + one).cast(DType::F32).into_data();
    sum.try_into_vec::<f32>().ok()?.first().copied()
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    #[test]
    fn the_processor_computes_in_f32_and_has_no_other_name() {
        let facts = facts(&Device::flex()).unwrap();
        assert_eq!((facts.name, facts.memory_bytes), (None, None));
        assert!(facts.floats.contains(&"f32"), "{:?}", facts.floats);
    }

    #[test]
    fn long_messages_are_cut_at_a_dash() {
        let message = "no library \"cuda\" - searched for: [\"libcuda.so\"]\nEnsure";
        assert_eq!(first_words(message), "no library \"cuda\"");
        assert_eq!(first_words(""), "the device cannot be opened, and its driver gives no reason");
    }
}

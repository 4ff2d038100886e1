//! What a device says of itself.

use std::panic::{AssertUnwindSafe, catch_unwind};

#[cfg(feature = "cube")]
use burn::backend::DispatchDevice;
use burn::tensor::{DType, Device, Tensor};

/// A device as it names itself, and what it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Its name; `None` where the backend knows of no device but the processor.
    pub name: Option<String>,
    /// Its memory; `None` where it does not say.
    pub memory_bytes: Option<u64>,
    /// Types of floating-point tensors that it computes with.
    pub floats: Vec<&'static str>,
}

/// Opens a device and asks it.
///
/// # Errors
/// The reason why it cannot be opened, in the words of its driver.
pub fn facts(device: &Device) -> Result<DeviceFacts, String> {
    catch_unwind(AssertUnwindSafe(|| asked(device))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let text = text.unwrap_or_else(|| "it does not open, and says nothing".to_owned());
        text.lines().next().unwrap_or_default().to_owned()
    })
}

fn asked(device: &Device) -> DeviceFacts {
    let (name, memory_bytes) = named(&device.clone().inner());
    // What supports storage alone computes nothing.
    let types =
        [("f32", DType::F32), ("bf16", DType::BF16), ("f16", DType::F16), ("f64", DType::F64)];
    let floats = types
        .into_iter()
        .filter(|(_, dtype)| device.supports_dtype(*dtype) && adds(device, *dtype))
        .map(|(name, _)| name)
        .collect();
    DeviceFacts { name, memory_bytes, floats }
}

/// Its name and memory, where the backend knows of them.
fn named(device: &Device) -> (Option<String>, Option<u64>) {
    #[cfg(feature = "cube")]
    if let DispatchDevice::Cube(device) = device.as_dispatch() {
        let client = device.client();
        let properties = client.properties();
        return (Some(properties.identity.name.clone()), properties.memory.max_memory());
    }
    let _ = device;
    (None, None)
}

/// Whether 1 + 1 is 2.
fn adds(device: &Device, dtype: DType) -> bool {
    let sum = || {
        let one = Tensor::<1>::ones([1], (device, dtype));
        (one.clone() + one).cast(DType::F32).into_data().try_into_vec::<f32>().ok()
    };
    catch_unwind(AssertUnwindSafe(sum)).ok().flatten() == Some(vec![2.0])
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
}

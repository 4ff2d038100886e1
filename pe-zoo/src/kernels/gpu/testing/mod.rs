//! Tests of the kernels without a GPU.

pub(super) mod fake_device;
#[cfg(feature = "ptx")]
pub(super) mod ptx;
#[cfg(feature = "cores-sim")]
pub(super) mod simulated;

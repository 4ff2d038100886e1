//! Tests of the kernels without a GPU.

mod fake_device;
#[cfg(feature = "ptx")]
mod fragments;
#[cfg(feature = "ptx")]
mod ptx;
#[cfg(feature = "cores-sim")]
mod simulated;

//! Tests of the kernels without a GPU.

mod kernels;
#[cfg(feature = "ptx")]
mod ptx;
#[cfg(feature = "cores-sim")]
mod reference;
#[cfg(feature = "cores-sim")]
mod simulated;

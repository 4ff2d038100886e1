//! Tests of the kernels without a GPU.

#[cfg(feature = "cores-sim")]
mod channels;
#[cfg(feature = "cores-sim")]
mod compare;
#[cfg(feature = "cores-sim")]
mod forms;
mod kernels;
#[cfg(feature = "cores-sim")]
mod memory;
#[cfg(feature = "cores-sim")]
mod products;
#[cfg(feature = "ptx")]
mod ptx;
#[cfg(feature = "cores-sim")]
mod reference;
#[cfg(feature = "cores-sim")]
mod reflected;
#[cfg(feature = "cores-sim")]
mod row;
#[cfg(feature = "cores-sim")]
mod simulated;
mod terms;

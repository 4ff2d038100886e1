//! Parameters of a module as named tensors, and files of them in the safetensors format.
//!
//! Names and layouts are those of PyTorch: the matrix of a linear map is `weight`, `[outputs, inputs]`, and the gain and
//! offset of a normalisation are `weight` and `bias`. Values are little-endian f32. A matrix that is read back has the
//! memory layout of one that was never stored, so that products with it give the same bits.

mod named;
mod role;
mod visit;

pub use named::NamedTensors;
pub(crate) use role::AutodiffRole;
pub(crate) use visit::collect;
pub use visit::{Extras, restore};

#[cfg(test)]
mod tests;

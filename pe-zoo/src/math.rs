//! Mathematics that several encodings share, tested once.

pub(crate) mod buckets;
pub(crate) mod frequencies;
#[cfg(feature = "flex")]
pub(crate) mod lanes;
#[cfg(feature = "flex")]
pub(crate) mod simd;
pub(crate) mod slopes;

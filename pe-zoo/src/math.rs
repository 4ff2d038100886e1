//! Mathematics that several encodings share, tested once.

pub(crate) mod buckets;
pub(crate) mod frequencies;
pub(crate) mod running_sum;
pub(crate) mod slopes;

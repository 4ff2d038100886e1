//! Mathematics that several encodings share, tested once.

pub(crate) mod frequencies;
pub(crate) mod slopes;
pub(crate) mod yarn;

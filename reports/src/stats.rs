//! Statistics over seeds: every number and every claim of a report that is not a plain reading.
//!
//! The unit is the seed. METHODOLOGY.md says what is done and why; this is where it is done:
//!
//! | module | holds |
//! | --- | --- |
//! | [`estimate`] | mean with Student's t interval, median, bootstrap intervals of both |
//! | [`bootstrap`] | percentile bootstrap, exact for few seeds |
//! | [`paired()`] | differences paired by seed: t test, sign-flip test, Hedges' g |
//! | [`sign_flip()`] | the permutation test itself |
//! | [`family`] | which test decides, Holm's correction, who is separable |
//! | [`mean`] | mean with Student's t interval alone, for curves |
//! | [`groups`] | ranks that inseparable encodings share |
//! | [`auc()`] | how well one number tells two kinds of things apart |
//!
//! The values are checked against scipy's and statsmodels' (`fixtures/statistics.json`, written by
//! `fixtures/make_statistics.py`), the claims by simulation (`analysis/simulation.rs`).

pub mod auc;
pub mod bootstrap;
pub mod estimate;
pub mod family;
pub mod groups;
pub mod mean;
pub mod paired;
pub mod sign_flip;
mod student;

pub use auc::auc;
pub use bootstrap::Bootstrap;
pub(crate) use bootstrap::sorted_median;
pub use estimate::Estimate;
pub use family::{Comparison, LEAST_SEEDS, LEVEL, SeedSpread, Test, decide, holm};
pub use groups::rank_groups;
pub use mean::Mean;
pub use paired::{Paired, RESOLUTION, hedges_g, paired};
pub use sign_flip::sign_flip;
pub use student::{t_cdf, t_quantile, t_test};

#[cfg(test)]
mod fixture;

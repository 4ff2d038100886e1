//! Statistics over seeds: every number and every claim of a report that is not a plain reading.
//!
//! The unit is the seed. METHODOLOGY.md says what is done and why; this is where it is done:
//!
//! | module | holds |
//! | --- | --- |
//! | [`estimate`] | mean with Student's t interval, median, bootstrap intervals of both |
//! | [`bootstrap`] | percentile bootstrap, exact for few seeds |
//! | [`questions`] | error of a mean that comes from its questions |
//! | [`paired()`] | differences paired by seed: t test, sign-flip test |
//! | [`effect`] | Hedges' g and its interval |
//! | [`sign_flip()`] | the permutation test itself |
//! | [`lottery()`] | p-value where seeds solve or fail by luck |
//! | [`family`] | which test decides, bounds of p-values, Holm's correction, who is separable |
//! | [`mean`] | mean with Student's t interval alone, for curves |
//! | [`groups`] | ranks that inseparable encodings share |
//! | [`over_tasks`] | interquartile mean, profiles and probability of improvement over several tasks |
//! | [`mean_ranks`] | ranks over several tasks: Friedman's test, Nemenyi's critical difference |
//! | [`auc()`] | how well one number tells two kinds of things apart |
//!
//! The values are checked against scipy's and statsmodels' (`fixtures/statistics.json`, written by
//! `fixtures/make_statistics.py`), the claims by simulation (`reports/analysis/src/tests.rs`).
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

pub mod auc;
pub mod bootstrap;
pub mod effect;
pub mod estimate;
pub mod family;
pub mod groups;
pub mod lottery;
pub mod mean;
pub mod mean_ranks;
pub mod over_tasks;
pub mod paired;
pub mod questions;
pub mod sign_flip;
mod student;

pub use auc::auc;
pub use bootstrap::{Bootstrap, median, sorted_median};
pub use effect::{hedges_g, hedges_g_interval};
pub use estimate::Estimate;
pub use family::{
    Better, Comparison, LEAST_SEEDS, LEVEL, Test, decide, decide_among, holm, seeds_needed,
};
pub use groups::rank_groups;
pub use lottery::{lottery, minimum_p_value};
pub use mean::Mean;
pub use paired::{Paired, RESOLUTION, paired};
pub use questions::QuestionError;
pub use sign_flip::sign_flip;
pub use student::{t_cdf, t_quantile, t_test};

#[cfg(test)]
mod tests;

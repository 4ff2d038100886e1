//! Analysis of records: selection, aggregation over seeds, rankings and costs, as numbers.
//!
//! [`folder`] reads the records of a results folder, [`mod@frame`] turns them into tidy polars frames, and a [`Report`] has all
//! results, computed by lazy queries over the frames and by the statistics of [`stats`]. [`compare()`](compare::compare) pairs two
//! encodings, [`nightly`] judges a night against a baseline, and [`reproduction`] compares records with published numbers.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

pub mod aggregate;
pub mod answers;
mod caught;
mod claim;
pub mod compare;
mod conditions;
pub mod contrast;
mod costs;
mod curves;
mod error;
pub mod evaluated;
pub mod folder;
pub mod frame;
mod gates;
pub mod grid;
mod groups;
mod looks;
mod meta;
pub mod nightly;
mod overall;
pub mod packed;
mod question;
pub mod ranking;
mod report;
pub mod reproduction;
pub mod run_metrics;
pub mod scores;
mod selection;
mod skipped;
mod slices;
pub mod threads;

pub use self::claim::{ClaimVerdict, JudgedClaim};
pub use self::conditions::{Condition, Conditions, Ends, TrainedBudget, UsedSettings};
pub use self::costs::{EncodingCost, YARDSTICK};
pub use self::curves::{Curve, SplitCurves, StepMean};
pub use self::error::AnalysisError;
pub use self::gates::GateMean;
pub use self::groups::{CellRow, Group};
pub use self::looks::{
    COLOURS, DASHES, FAMILIES, LOOK_COUNT, MARKERS, NEUTRAL, PAIR_COUNT, colour, dash, looks,
    marker,
};
pub use self::meta::{Description, MeasuredStep, PageLink, ReportMeta};
pub use self::overall::{Improvement, LeaderWithout, Overall, OverallScore, Profile};
pub use self::question::{Answer, AnswerLine};
pub use self::report::{Encoding, Report, Workload};
pub use self::selection::NotCounted;
pub use self::skipped::{MissingSeeds, SkippedEvals};
pub use self::slices::{SliceCurve, SlicePoint, SliceSet};

#[cfg(test)]
mod tests;

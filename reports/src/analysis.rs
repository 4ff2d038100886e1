//! Analysis of records: selection, aggregation over seeds, rankings, costs. Numbers only; words, tables and figures
//! are in [`crate::document`].

pub mod ablation;
pub mod aggregate;
mod costs;
mod curves;
mod error;
mod gates;
pub mod grid;
mod grouping;
mod groups;
mod missing_seeds;
pub mod ranking;
mod report;
pub mod run_metrics;
mod select;
mod settings;
#[cfg(test)]
mod simulation;
mod skipped;
mod slices;

pub use self::costs::EncodingCost;
pub use self::curves::{Curve, StepMean};
pub use self::error::AnalysisError;
pub use self::gates::GateMean;
pub(crate) use self::grouping::distinct;
pub use self::groups::Group;
pub use self::missing_seeds::MissingSeeds;
pub use self::report::{Encoding, Report, ReportMeta, Workload};
pub use self::select::NotCounted;
#[cfg(test)]
pub(crate) use self::select::select;
pub use self::settings::Settings;
pub use self::skipped::SkippedEvals;
pub use self::slices::{SliceCurve, SlicePoint, SliceSet};

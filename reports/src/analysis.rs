//! Analysis of records: selection, aggregation over seeds, rankings and costs, as numbers. Results are computed by
//! lazy queries over [`crate::frame::Frames`] and by the statistics of [`crate::stats`]. Texts, tables and figures
//! are made in [`crate::document`].

pub mod ablation;
pub mod aggregate;
pub(crate) mod answers;
mod claim;
mod conditions;
pub(crate) mod contrast;
mod costs;
mod curves;
mod error;
pub(crate) mod evaluated;
mod gates;
pub mod grid;
mod groups;
mod looks;
mod meta;
mod missing_seeds;
mod overall;
mod question;
pub mod ranking;
mod region;
mod report;
pub mod run_metrics;
mod selection;
mod settings;
mod skipped;
mod slices;

pub use self::claim::{ClaimVerdict, ExpectedResult, JudgedClaim, PaperClaim};
pub use self::conditions::{Condition, Conditions, Ends, TrainedBudget, UsedSettings};
pub use self::costs::EncodingCost;
pub(crate) use self::costs::YARDSTICK;
pub use self::curves::{Curve, SplitCurves, StepMean};
pub use self::error::AnalysisError;
pub use self::gates::GateMean;
pub use self::groups::{CellRow, Group};
pub use self::looks::FIXED as FIXED_LOOKS;
#[cfg(test)]
pub(crate) use self::looks::LOOK_COUNT;
pub(crate) use self::looks::{NEUTRAL, looks};
pub use self::meta::{Description, MeasuredStep, ReportMeta};
pub use self::missing_seeds::MissingSeeds;
pub use self::overall::{Improvement, Overall, OverallScore, Profile};
pub use self::question::{Answer, AnswerLine, Question};
pub use self::report::{Encoding, Report, Workload};
pub use self::selection::NotCounted;
#[cfg(test)]
pub(crate) use self::selection::Selection;
pub use self::settings::Settings;
pub use self::skipped::SkippedEvals;
pub use self::slices::{SliceCurve, SlicePoint, SliceSet};

#[cfg(test)]
mod tests;

//! Keeps what a run left behind and shows it: run records, statistics over seeds, tables and pages.
//!
//! The path of the data is `RunRecord` files ([`store`]) -> [`frame`] (polars tables) and
//! [`standing`] (who is ahead, and is it more than noise) -> [`model`] (everything a page shows)
//! -> [`render`] (one file per format). [`write_report`] walks the whole path.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

pub mod frame;
mod json_float;
pub mod model;
mod number;
pub mod provenance;
pub mod record;
pub mod render;
mod report;
mod select;
pub mod sentences;
pub mod standing;
pub mod stats;
pub mod store;
pub mod table;
#[cfg(test)]
mod testkit;

pub use record::{
    CurvePoint, EncodingInfo, EvalPoint, FlopCount, Host, ParamCount, RunRecord, SCHEMA,
    SkippedEval, Status, TaskInfo, TrainSummary,
};
pub use report::{ReportError, ReportMeta, ReportSummary, write_report};
pub use store::{RecordError, cell_key, read_dir};

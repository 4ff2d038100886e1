//! Keeps what a run left behind and shows it: run records, statistics over seeds, tables and pages.
//!
//! The path of the data is `RunRecord` files ([`store`]) -> [`aggregate`] (over seeds), [`outcome`]
//! (what each seed achieved), [`grid`] (which value of a grid counts), [`standing`] (who is ahead, and is it
//! more than noise) and [`ablation`], all by way of [`stats`] -> [`model`] (everything a page shows) ->
//! figures that are not drawn yet -> [`render`] (one file per format). [`write_report`] walks the whole path;
//! [`compare()`](compare::compare), [`nightly`] and [`reproduction`] start from records too.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

pub mod ablation;
pub mod aggregate;
pub mod compare;
mod figure;
pub mod frame;
pub mod grid;
mod json_float;
mod json_layout;
pub mod metric;
pub mod model;
pub mod nightly;
mod number;
pub mod outcome;
mod page;
pub mod provenance;
pub mod record;
pub mod render;
mod report;
pub mod reproduction;
mod select;
pub mod sentences;
mod settings;
pub mod standing;
pub mod stats;
pub mod store;
pub mod table;
#[cfg(test)]
mod testkit;
mod text;

pub use page::{html_table, plain_page};
pub use record::{
    Allocations, CurvePoint, EncodingInfo, EvalPoint, FlopCount, GateScore, GridPoint, Host, PAIR,
    PAIRED, ParamCount, RunRecord, SCHEMA, SkippedEval, SliceUnit, Slices, Solved, Status,
    TaskInfo, TrainSummary, Validation,
};
pub use report::{
    Rendered, ReportError, ReportMeta, ReportSummary, render_report, write_files, write_report,
    write_report_with,
};
pub use settings::Settings;
pub use store::{RecordError, cell_key, read_dir, read_each};

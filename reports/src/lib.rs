//! Run records, statistics over seeds, and reports.
//!
//! Data flows in one direction: record files ([`store`]) are read as [`record::RunRecord`]s, [`frame`] turns them
//! into tidy polars frames, [`stats`] holds the statistics, [`analysis`] computes everything that a report says as
//! numbers, by queries over the frames, [`document`] turns numbers into sentences, tables and figures, and [`formats`] lays those out as HTML,
//! Markdown, CSV, TeX, Parquet and SVG. [`compare()`](compare::compare), [`nightly`] and [`reproduction`] build
//! documents of their own. [`write_report`] runs the whole chain.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

pub mod analysis;
pub mod compare;
pub mod document;
pub mod formats;
pub mod frame;
pub mod nightly;
mod number;
pub mod record;
mod report;
pub mod reproduction;
pub mod stats;
pub mod store;
#[cfg(test)]
mod testkit;
mod text;

pub use analysis::grid::{ChosenValue, chosen_grid_values};
pub use analysis::{Description, MeasuredStep, PaperClaim, Question, ReportMeta, Settings};
pub use formats::{html_document, html_table, markdown_document, plain_page};
pub use frame::{FrameError, Frames, read_frames};
pub use record::{
    Allocations, Answers, CurvePoint, DeviceInfo, EncodingInfo, EvalPoint, FlopCount, GateScore,
    GridPoint, Host, KeptWeights, Losses, Outcomes, PAIR, PAIRED, ParamCount, Program,
    QuestionMarks, RunRecord, SCHEMA, SkippedEval, SliceUnit, Slices, Solved, SplitValidation,
    Status, TaskInfo, TrainSummary, Unseen, Validation, WeightsAt,
};
pub use report::{
    Rendered, ReportError, ReportSummary, render_report, write_files, write_report,
    write_report_with,
};
pub use store::{LabelledQuestions, RecordError, cell_key, read_dir, read_each, read_labelled};

//! Records of training runs: what one cell of an experiment leaves behind.
//!
//! A [`RunRecord`] has the complete configuration of a cell, its environment, costs, curves and evaluations. [`store`]
//! names it by a hash of the configuration and keeps it as a file with a checksum. [`settings`] are the criteria and
//! planned comparisons that a suite asks of the report on its records, and [`number`] formats what both show.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

pub mod number;
mod record;
pub mod settings;
pub mod store;
pub mod testkit;

pub use record::{
    Allocations, Answers, CurvePoint, DeviceInfo, EncodingInfo, EvalPoint, FlopCount, GateScore,
    GridPoint, Host, KeptWeights, Losses, Metric, Outcomes, PAIR, PAIRED, ParamCount, Program,
    QuestionMarks, RunRecord, SCHEMA, SkippedEval, SliceUnit, Slices, Solved, SplitValidation,
    Status, TaskInfo, TrainSummary, Unseen, Validation, WeightsAt, json_float, newest_by,
};

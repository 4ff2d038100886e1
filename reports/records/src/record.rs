//! Run records: the complete result of one cell (encoding x task x sizes x seed).

mod bits;
mod eval;
pub mod json_float;
mod metric;
mod outcomes;
mod run;
mod train;
mod unseen;

pub use self::eval::{EvalPoint, GateScore, PAIR, PAIRED, SkippedEval, SliceUnit, Slices};
pub use self::metric::Metric;
pub use self::outcomes::{Answers, Losses, Outcomes};
pub use self::run::{
    Allocations, DeviceInfo, EncodingInfo, FlopCount, GridPoint, Host, ParamCount, Program,
    RunRecord, SCHEMA, Status, TaskInfo, newest_by,
};
pub use self::train::{
    CurvePoint, KeptWeights, Solved, SplitValidation, TrainSummary, Validation, WeightsAt,
};
pub use self::unseen::{QuestionMarks, Unseen};

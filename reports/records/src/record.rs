//! Run records: the complete result of one cell (encoding x task x sizes x seed).

mod bits;
mod eval;
mod gates;
pub mod json_float;
mod metric;
mod newest;
mod outcomes;
mod run;
mod train;
mod unseen;
mod weights;

pub use self::eval::{EvalPoint, PAIR, PAIRED, SkippedEval, SliceUnit, Slices};
pub use self::gates::GateScore;
pub use self::metric::Metric;
pub use self::newest::newest_by;
pub use self::outcomes::{Answers, Losses, Outcomes};
pub use self::run::{
    Allocations, DeviceInfo, EncodingInfo, FlopCount, GridPoint, Host, ParamCount, Program,
    RunRecord, SCHEMA, Status, TaskInfo,
};
pub use self::train::{CurvePoint, Solved, SplitValidation, TrainSummary, Validation};
pub use self::unseen::{QuestionMarks, Unseen};
pub use self::weights::{KeptWeights, WeightsAt};

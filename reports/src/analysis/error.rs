//! Errors of analysing records.

/// Error of the analysis of records.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// A query over the frames of the records failed.
    #[error("the records cannot be analysed: {0}")]
    Frame(#[from] polars::prelude::PolarsError),
    /// A record names a headline metric that this program does not know.
    #[error(
        "cell {key} has the headline metric `{headline}`, expected `exact-match` or `perplexity`; correct the \
         task's `headline` and run the cell again"
    )]
    UnknownHeadline {
        /// Key of the cell.
        key: String,
        /// Name of the metric.
        headline: String,
    },
    /// The question of the report or a comparison of its claims is invalid.
    #[error("the questions of the report: {reason}")]
    Question {
        /// Problem, with what was expected.
        reason: String,
    },
    /// A setting is outside its range.
    #[error("the report setting `{field}` is {value}, expected {expected}")]
    Setting {
        /// Name of the setting.
        field: &'static str,
        /// Value that was given.
        value: f64,
        /// Values that are allowed.
        expected: &'static str,
    },
}

//! Errors of analysing records.

use records::settings::SettingsError;

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
    /// The settings of the report cannot work.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

//! Errors of experiments.

use pe_zoo::PeError;

use pe_zoo::model::ModelError;

/// Error in the configuration of an experiment.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The encoding refuses the sizes.
    #[error(transparent)]
    Encoding(#[from] PeError),
    /// The model cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The task refuses its settings.
    #[error(transparent)]
    Task(#[from] tasks::TaskError),
    /// The task refuses a length.
    #[error("{field}: {source}")]
    Len {
        /// Field with the length.
        field: &'static str,
        /// Reason for the refusal.
        source: tasks::TaskError,
    },
    /// A number under `[train]` or `[eval]` is out of range.
    #[error("{field} is {value}, expected {expected}; change it in the suite")]
    Number {
        /// Name of the field with its section.
        field: &'static str,
        /// Value of the field.
        value: String,
        /// Values that would be accepted.
        expected: String,
    },
}

//! What can be wrong with an encoding's settings or with the positions asked of it.

/// Every error of this crate. The text says what was wrong, what was expected and what to do next.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PeError {
    /// A setting has a value that the encoding cannot use.
    #[error("{pe}: {field} is {value}, expected {expected}; change `{field}`")]
    InvalidSetting {
        /// Id of the encoding.
        pe: String,
        /// The field at fault, as it is written in a suite.
        field: String,
        /// Its value.
        value: String,
        /// What would be accepted.
        expected: String,
    },
    /// A setting that does not exist, or has the wrong type.
    #[error("{pe}: {reason}")]
    Settings {
        /// Id of the encoding.
        pe: String,
        /// The parser's words, the field named.
        reason: String,
    },
    /// A position beyond what the encoding can stand for.
    #[error(
        "{pe}: position {position} is beyond its longest, {max_position}; \
         raise the encoding's `max_len` or shorten the sequence"
    )]
    TooLong {
        /// Id of the encoding.
        pe: String,
        /// The position asked for.
        position: usize,
        /// The last position that the encoding has.
        max_position: usize,
    },
    /// Positions that are empty or do not ascend.
    #[error("positions: {reason}")]
    Positions {
        /// What was wrong and what was expected.
        reason: String,
    },
    /// Text that is no expression of encodings.
    #[error("`{text}`: at character {at}: {reason}")]
    Expression {
        /// What was given.
        text: String,
        /// Where it is wrong, counted in characters from 1.
        at: usize,
        /// What was wrong, what was expected.
        reason: String,
    },
    /// Encodings that cannot stand together.
    #[error("`{text}`: {reason}")]
    Combination {
        /// The ids, with `+` between them.
        text: String,
        /// Which place they both claim, and what to do.
        reason: String,
    },
    /// An encoding that cannot be added to a registry.
    #[error("encoding `{id}` cannot be registered: {reason}")]
    Registration {
        /// The id of its card.
        id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An encoding whose properties cannot be found out.
    #[error("{pe}: probing it at a small size failed: {reason}")]
    Probe {
        /// Id of the encoding.
        pe: String,
        /// What went wrong.
        reason: String,
    },
    /// An encoding that does not exist.
    #[error("unknown encoding `{id}`{}; known: {known}", nearest.as_ref().map(|n| format!(", did you mean `{n}`?")).unwrap_or_default())]
    UnknownId {
        /// What was asked for.
        id: String,
        /// The nearest id, if one is near.
        nearest: Option<String>,
        /// All ids.
        known: String,
    },
}

impl PeError {
    /// Builds [`PeError::InvalidSetting`].
    pub fn invalid(
        pe: &str,
        field: &str,
        value: impl std::fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::InvalidSetting {
            pe: pe.to_owned(),
            field: field.to_owned(),
            value: value.to_string(),
            expected: expected.into(),
        }
    }
}

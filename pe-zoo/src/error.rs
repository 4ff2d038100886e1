//! Errors in the settings of encodings and in the positions requested from them.

/// Every error of this crate. The message names the value at fault, what was expected, and how to
/// fix it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PeError {
    /// A setting has a value that the encoding cannot use.
    #[error("{pe}: {field} is {value}, expected {expected}; change `{field}`")]
    InvalidSetting {
        /// Id of the encoding.
        pe: String,
        /// Name of the field, as written in a suite.
        field: String,
        /// Value of the field.
        value: String,
        /// Description of the accepted values.
        expected: String,
    },
    /// A setting does not exist or has the wrong type.
    #[error("{pe}: {reason}")]
    Settings {
        /// Id of the encoding.
        pe: String,
        /// Message of the parser, with the name of the field.
        reason: String,
    },
    /// A position is beyond the last one that the encoding supports.
    #[error(
        "{pe}: position {position} is beyond the last position, {max_position}; shorten the sequence, or raise \
         `max_len` if the encoding has this setting"
    )]
    TooLong {
        /// Id of the encoding.
        pe: String,
        /// Position that was requested.
        position: usize,
        /// Last position that the encoding supports.
        max_position: usize,
    },
    /// A sequence has more tokens than the model around the encoding takes.
    #[error(
        "the sequence has {tokens} tokens, expected at most {max_tokens}, the longest that the model takes; shorten the sequence"
    )]
    TooManyTokens {
        /// Number of tokens, cached ones included.
        tokens: usize,
        /// Maximum number of tokens.
        max_tokens: usize,
    },
    /// Positions are empty or not ascending.
    #[error("positions: {reason}")]
    Positions {
        /// Fault, and what was expected.
        reason: String,
    },
    /// A text is not an expression of encodings.
    #[error("`{text}`: at character {at}: {reason}")]
    Expression {
        /// Text that was parsed.
        text: String,
        /// Place of the fault, counted in characters from 1.
        at: usize,
        /// Fault, and what was expected.
        reason: String,
    },
    /// Encodings cannot be combined.
    #[error("`{text}`: {reason}")]
    Combination {
        /// Ids of the encodings, joined by `+`.
        text: String,
        /// Conflict between the encodings, and how to resolve it.
        reason: String,
    },
    /// An encoding cannot be added to a registry.
    #[error("encoding `{id}` cannot be registered: {reason}")]
    Registration {
        /// Id on the card of the encoding.
        id: String,
        /// Fault of the id or of the encoding.
        reason: String,
    },
    /// The properties of an encoding cannot be determined by probing.
    #[error("{pe}: a trial at a small size failed: {reason}")]
    Probe {
        /// Id of the encoding.
        pe: String,
        /// Cause of the failure.
        reason: String,
    },
    /// No encoding has the requested id.
    #[error("unknown encoding `{id}`{}", nearest.as_ref().map_or_else(|| format!("; known: {known}"), |n| format!(" (did you mean `{n}`?)")))]
    UnknownId {
        /// Id that was requested.
        id: String,
        /// Known id with a similar spelling, if there is one.
        nearest: Option<String>,
        /// All known ids.
        known: String,
    },
}

/// Maximum length of a number in an error; whole numbers of 64 bits are shorter.
const MOST_DIGITS: usize = 24;

impl PeError {
    /// Builds a [`PeError::InvalidSetting`] from its fields.
    pub fn invalid(
        pe: &str,
        field: &str,
        value: impl std::fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        let value = value.to_string();
        // `Display` writes all digits of a number, 300 for the smallest ones.
        let value = match value.parse::<f64>() {
            Ok(number) if value.len() > MOST_DIGITS => format!("{number:e}"),
            _ => value,
        };
        let (pe, field) = (pe.to_owned(), field.to_owned());
        Self::InvalidSetting { pe, field, value, expected: expected.into() }
    }

    /// Refuses a setting with [`invalid`](Self::invalid) unless a condition holds.
    ///
    /// # Errors
    /// [`PeError::InvalidSetting`] if the condition does not hold.
    pub fn require(
        holds: bool,
        pe: &str,
        field: &str,
        value: impl std::fmt::Display,
        expected: impl Into<String>,
    ) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::invalid(pe, field, value, expected)) }
    }
}

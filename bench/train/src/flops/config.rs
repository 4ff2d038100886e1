//! Models with published costs, and the published numbers.

use std::path::Path;

use pe_zoo::Dims;
use pe_zoo::settings::nearest;
use serde::{Deserialize, Serialize};

use pe_zoo::model::{MOST_STEP_OPERATIONS, ModelConfig};

/// Configurations that are part of the program: name and text.
pub const BUILT_IN: &[(&str, &str)] =
    &[("tape-155m", include_str!("../../configs/tape-155m.toml"))];

/// Model and sequence length whose cost is counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostConfig {
    /// Description of the model.
    pub about: String,
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// Number of tokens of the sequence.
    pub len: usize,
    /// Architecture of the model.
    #[serde(default)]
    pub model: ModelConfig,
    /// Published numbers of the model.
    #[serde(default)]
    pub published: Vec<Published>,
}

/// Row of a published table, with the digits as printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The encoding, as an expression.
    pub encoding: String,
    /// Operations in units of 1e9.
    pub flops: String,
    /// Multiply-accumulates in units of 1e9.
    pub macs: String,
    /// Parameters in units of 2^20.
    pub params: String,
}

/// Error of a cost configuration.
#[derive(Debug, thiserror::Error)]
pub enum CostConfigError {
    /// There is no built-in configuration or file with this name.
    #[error("unknown configuration `{name}`{}; built in: {known}; or give the path of a TOML file", nearest.as_ref().map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default())]
    Unknown {
        /// The value that was requested.
        name: String,
        /// The nearest name, if one is near.
        nearest: Option<String>,
        /// All names that exist.
        known: String,
    },
    /// The file cannot be read.
    #[error("cannot read configuration {path}: {source}")]
    Unreadable {
        /// Path of the file.
        path: String,
        /// Reason for the refusal.
        source: std::io::Error,
    },
    /// The text is not TOML, or a field is unknown, missing or of the wrong type.
    #[error("configuration {name}: {source}")]
    Syntax {
        /// Name of the configuration.
        name: String,
        /// Place and reason of the error.
        source: Box<toml::de::Error>,
    },
    /// A number is out of range.
    #[error("configuration {name}: {reason}")]
    Number {
        /// Name of the configuration.
        name: String,
        /// Field, value and expected values.
        reason: String,
    },
}

impl CostConfig {
    /// Reads a built-in configuration, or the file at a path.
    ///
    /// # Errors
    /// [`CostConfigError`].
    pub fn named(name: &str) -> Result<Self, CostConfigError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        if Path::new(name).extension().is_none() {
            return Err(CostConfigError::Unknown {
                name: name.to_owned(),
                nearest: nearest(name, BUILT_IN.iter().map(|(name, _)| *name)),
                known: BUILT_IN.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
            });
        }
        let text = tasks::read_text(Path::new(name)).map_err(|error| {
            CostConfigError::Unreadable { path: name.to_owned(), source: error.cause }
        })?;
        Self::parse(name, &text)
    }

    /// Parses a configuration, which error messages call `name`.
    ///
    /// # Errors
    /// [`CostConfigError::Syntax`] and [`CostConfigError::Number`].
    pub fn parse(name: &str, text: &str) -> Result<Self, CostConfigError> {
        let config: Self = toml::from_str(text).map_err(|source| CostConfigError::Syntax {
            name: name.to_owned(),
            source: Box::new(source),
        })?;
        let refuse = |reason: String| CostConfigError::Number { name: name.to_owned(), reason };
        config.model.check().map_err(|error| refuse(error.to_string()))?;
        for (field, value) in [("len", config.len), ("vocabulary", config.vocabulary)] {
            if value == 0 {
                return Err(refuse(format!("{field} is 0, expected at least 1")));
            }
        }
        let operations = config.model.step_operations(config.vocabulary, config.len, 1);
        if operations > MOST_STEP_OPERATIONS {
            return Err(refuse(format!(
                "a training step over one sequence has about {operations:.0e} operations, expected at most \
                 {MOST_STEP_OPERATIONS:e}; make len, vocabulary or the model smaller"
            )));
        }
        Ok(config)
    }

    /// Sizes that encodings are built for.
    pub fn dims(&self) -> Dims {
        self.model.dims(self.len, self.len)
    }
}

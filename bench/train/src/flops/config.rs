//! Models with published costs, and the published numbers.

use std::path::Path;

use anyhow::{Result, anyhow, ensure};
use pe_zoo::Dims;
use serde::{Deserialize, Serialize};

use crate::names::unknown;
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

impl CostConfig {
    /// Reads a built-in configuration, or the file at a path.
    ///
    /// # Errors
    /// If there is none, or it is invalid.
    pub fn named(name: &str) -> Result<Self> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        let known = BUILT_IN.iter().map(|(name, _)| *name);
        ensure!(
            Path::new(name).extension().is_some(),
            "{}; or give the path of a TOML file",
            unknown("configuration", name, known)
        );
        let text = tasks::read_text(Path::new(name));
        Self::parse(name, &text.map_err(|error| anyhow!("configuration {name}: {error}"))?)
    }

    /// Parses a configuration, which error messages call `name`.
    ///
    /// # Errors
    /// If the text is not TOML, or a field is unknown, missing or out of range.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let config: Self =
            toml::from_str(text).map_err(|error| anyhow!("configuration {name}: {error}"))?;
        config.model.check().map_err(|error| anyhow!("configuration {name}: {error}"))?;
        for (field, value) in [("len", config.len), ("vocabulary", config.vocabulary)] {
            ensure!(value > 0, "configuration {name}: {field} is 0, expected at least 1");
        }
        let operations = config.model.step_operations(config.vocabulary, config.len, 1);
        ensure!(
            operations <= MOST_STEP_OPERATIONS,
            "configuration {name}: a training step over one sequence has about {operations:.0e} operations, expected at most \
             {MOST_STEP_OPERATIONS:e}; make len, vocabulary or the model smaller"
        );
        Ok(config)
    }

    /// Sizes that encodings are built for.
    pub fn dims(&self) -> Dims {
        self.model.dims(self.len, self.len)
    }
}

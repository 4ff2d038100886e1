//! Settings of selective copy: three published variants, each with settings of its own.

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::nearest::{did_you_mean, nearest};
use crate::registry::read;
use crate::settings::settings;

settings! {
    /// Settings of the CoPE variant.
    pub struct CopeSizes {
        /// Number of symbols beside the blank, 2 to 65536.
        pub symbols: u32 = 15,
        /// Blanks for each symbol in training and in the split `in-distribution`.
        pub blanks: f64 = 1.0,
        /// Blanks for each symbol in the split `dense`.
        pub blanks_dense: f64 = 0.5,
        /// Blanks for each symbol in the split `sparse`.
        pub blanks_sparse: f64 = 2.0,
    }
}

settings! {
    /// Settings of the MAD variant.
    pub struct MadSizes {
        /// Number of symbols beside the blank, 2 to 65536.
        pub symbols: u32 = 14,
        /// Number of symbols that are copied.
        pub copied: usize = 16,
        /// Size of the training set; `None`: every sample is new.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub train_samples: Option<u32> = None,
    }
}

settings! {
    /// Settings of the S4 variant.
    pub struct S4Sizes {
        /// Number of symbols beside the blank, 2 to 65536.
        pub symbols: u32 = 14,
        /// Number of symbols that are copied.
        pub copied: usize = 16,
    }
}

/// Variant and its settings. Serialised as one table, in which `preset` names the variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "preset", rename_all = "kebab-case")]
pub enum SelectiveCopyConfig {
    /// CoPE: half of the context is copied.
    Cope(CopeSizes),
    /// MAD: a few symbols, the last token of the context among them.
    Mad(MadSizes),
    /// S4: a few symbols, and no sign where the answer starts.
    S4(S4Sizes),
}

impl Default for SelectiveCopyConfig {
    fn default() -> Self {
        Self::Cope(CopeSizes::default())
    }
}

// Not derived: serde's tagged enums have no default tag and suggest no preset.
impl<'de> Deserialize<'de> for SelectiveCopyConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        const PRESETS: [&str; 3] = ["cope", "mad", "s4"];
        let mut table = Map::deserialize(from)?;
        let preset = table.remove("preset").unwrap_or_else(|| PRESETS[0].into());
        let settings = Value::Object(table);
        match preset.as_str() {
            Some("cope") => read(settings).map(Self::Cope),
            Some("mad") => read(settings).map(Self::Mad),
            Some("s4") => read(settings).map(Self::S4),
            other => {
                let near = did_you_mean(other.and_then(|name| nearest(name, &PRESETS)));
                let known = PRESETS.join(", ");
                return Err(D::Error::custom(format!(
                    "unknown preset {preset}{near}; known presets: {known}"
                )));
            }
        }
        .map_err(D::Error::custom)
    }
}

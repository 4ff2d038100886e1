//! Position of evaluations relative to training.

use serde::{Deserialize, Serialize};

/// Position of evaluations relative to training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Region {
    /// Splits that training draws from, up to the training length.
    Inside,
    /// Splits that training draws from, beyond the training length.
    Longer,
    /// Other splits, up to the training length.
    Shifted,
    /// Other splits, beyond the training length.
    Both,
}

impl Region {
    /// All regions in order.
    pub const ALL: [Self; 4] = [Self::Inside, Self::Longer, Self::Shifted, Self::Both];

    /// Name of the region for use in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inside => "in distribution",
            Self::Longer => "at longer lengths",
            Self::Shifted => "on other distributions",
            Self::Both => "on other distributions at longer lengths",
        }
    }

    /// Returns the name of the region in tables for other programs.
    pub fn id(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Longer => "longer",
            Self::Shifted => "shifted",
            Self::Both => "both",
        }
    }
}

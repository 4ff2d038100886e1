//! Distances beyond a window, which no training has seen, replaced by shorter ones.

use serde::{Deserialize, Serialize};

use crate::PeError;
use crate::score::FarPairs;
use crate::settings::check_size;

/// Distance that counts for pairs of tokens far from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Far {
    /// All distances are exact.
    None {},
    /// Distances between groups of positions, shifted so that they continue the exact ones (SelfExtend).
    Grouped {
        /// Smallest distance that is not exact, in positions.
        window: usize,
        /// Number of positions of a group.
        group: usize,
    },
    /// Positions within chunks, and one position of queries for keys of other chunks (dual chunk attention).
    Chunks {
        /// Number of positions of a chunk.
        chunk: usize,
        /// Number of first positions of a chunk whose distances to the chunk before are exact.
        window: usize,
    },
    /// The distance of the window itself (ReRoPE).
    Constant {
        /// Smallest distance that is not exact, in positions.
        window: usize,
    },
}

impl Default for Far {
    fn default() -> Self {
        Self::None {}
    }
}

impl Far {
    /// Pairs whose distance is not exact, in steps of positions; `None` if all are exact.
    pub(super) fn pairs(self, steps: usize) -> Option<FarPairs> {
        match self {
            Self::None {} => None,
            Self::Grouped { window, .. } | Self::Constant { window } => {
                Some(FarPairs::Distance { from: window.saturating_mul(steps) })
            }
            Self::Chunks { chunk, window } => Some(FarPairs::Chunks {
                chunk: chunk.saturating_mul(steps),
                last: (window - 1).saturating_mul(steps),
            }),
        }
    }

    /// Position of a query for keys far from it.
    pub(super) fn of_query(self, position: f64) -> f64 {
        match self {
            Self::None {} => position,
            Self::Grouped { window, group } => {
                (position / group as f64).floor() + (window - window / group) as f64
            }
            Self::Constant { window } => window as f64,
            Self::Chunks { chunk, window } => (chunk + window - 1) as f64,
        }
    }

    /// Position of a key for queries far from it.
    pub(super) fn of_key(self, position: f64) -> f64 {
        match self {
            Self::None {} => position,
            Self::Grouped { group, .. } => (position / group as f64).floor(),
            Self::Constant { .. } => 0.0,
            Self::Chunks { chunk, .. } => position.rem_euclid(chunk as f64),
        }
    }

    pub(super) fn check(self, pe: &str) -> Result<(), PeError> {
        match self {
            Self::None {} => Ok(()),
            Self::Constant { window } => check_size(pe, "far.window", window),
            Self::Grouped { window, group } => {
                check_size(pe, "far.window", window)?;
                check_size(pe, "far.group", group)
            }
            Self::Chunks { chunk, window } => {
                check_size(pe, "far.chunk", chunk)?;
                check_size(pe, "far.window", window)
            }
        }
    }
}

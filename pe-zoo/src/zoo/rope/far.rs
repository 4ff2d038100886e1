//! Distances beyond a window, which no training has seen, replaced by shorter ones.

use serde::{Deserialize, Serialize};

use crate::PeError;
use crate::settings::check_size;

/// Distance that counts for pairs of tokens at a window's distance or more.
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
    /// Smallest distance that is not exact, in positions; `None` if all are.
    pub(super) fn window(self) -> Option<usize> {
        match self {
            Self::None {} => None,
            Self::Grouped { window, .. } | Self::Constant { window } => Some(window),
        }
    }

    /// Position of a query for keys beyond the window.
    pub(super) fn of_query(self, position: f64) -> f64 {
        match self {
            Self::None {} => position,
            Self::Grouped { window, group } => {
                (position / group as f64).floor() + (window - window / group) as f64
            }
            Self::Constant { window } => window as f64,
        }
    }

    /// Position of a key for queries beyond the window.
    pub(super) fn of_key(self, position: f64) -> f64 {
        match self {
            Self::None {} => position,
            Self::Grouped { group, .. } => (position / group as f64).floor(),
            Self::Constant { .. } => 0.0,
        }
    }

    pub(super) fn check(self, pe: &str) -> Result<(), PeError> {
        check_size(pe, "far.window", self.window().unwrap_or(1))?;
        let Self::Grouped { group, .. } = self else { return Ok(()) };
        check_size(pe, "far.group", group)
    }
}

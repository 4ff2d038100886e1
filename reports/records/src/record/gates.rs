//! Gate scores in a record.

use serde::{Deserialize, Serialize};

use super::json_float;

/// Agreement of one head's gates with the tokens that the task counts: area under the ROC curve of the gate as a
/// classifier of counted tokens, within each scored row, averaged over rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateScore {
    /// Kind of gate, for example `gates`.
    pub gate: String,
    /// Index of the layer, from 0.
    pub layer: u32,
    /// Index of the head, from 0.
    pub head: u32,
    /// Area under the ROC curve. 1: the gates of counted tokens are above all others; 0.5: no relation; 0: below all
    /// others.
    #[serde(with = "json_float")]
    pub auc: f64,
    /// Number of rows with tokens of both classes.
    pub rows: u64,
}

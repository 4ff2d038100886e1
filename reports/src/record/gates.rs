//! What a record keeps of gates.

use serde::{Deserialize, Serialize};

use super::json_float;

/// How well the gates of one head agree with the tokens that the task counts: the area under the ROC curve of
/// gates as a guess whether a token is one of those, within each scored row, mean over the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateScore {
    /// What kind of gate, for example `gates`.
    pub gate: String,
    /// Index of the layer, from 0.
    pub layer: u32,
    /// Index of the head, from 0.
    pub head: u32,
    /// 1: gates of counted tokens are above all others; 0.5: no relation; 0: below all others.
    #[serde(with = "json_float")]
    pub auc: f64,
    /// Rows that saw tokens of both kinds.
    pub rows: u64,
}

//! The verdict on a night.

use serde::Serialize;

use super::cost::{CostChange, CostIncrease};
use super::matching::Incomparable;
use super::quality::QualityChange;

/// Verdict on a night.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NightlyVerdict {
    /// Number of cells that were compared.
    pub compared: usize,
    /// Number of compared cells whose numbers are identical.
    pub identical: usize,
    /// Significant losses of quality that are large enough to fail the gate.
    pub losses: Vec<QualityChange>,
    /// Significant gains of quality.
    pub gains: Vec<QualityChange>,
    /// Tested changes that are not significant or too small to fail the gate.
    pub not_separable: Vec<QualityChange>,
    /// Increases of deterministic costs, which fail the gate.
    pub rises: Vec<CostChange>,
    /// Decreases of deterministic costs.
    pub falls: Vec<CostChange>,
    /// Cells of the baseline without a comparable counterpart, which fail the gate.
    pub incomparable: Vec<Incomparable>,
    /// Increases of step time and memory, which cause warnings.
    pub slower: Vec<CostIncrease>,
    /// Costs that were not counted and therefore not compared, one sentence each.
    pub uncounted: Vec<String>,
    /// Further warnings, one sentence each.
    pub warnings: Vec<String>,
}

impl NightlyVerdict {
    /// Reports whether the night passes the gate.
    pub fn passes(&self) -> bool {
        self.losses.is_empty() && self.rises.is_empty() && self.incomparable.is_empty()
    }

    /// Returns the verdict as lines of text: failures first, then warnings, then the rest.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.losses.iter().map(|change| format!("FAIL quality: {change}")));
        lines.extend(self.rises.iter().map(|rise| format!("FAIL cost: {rise}")));
        lines.extend(self.incomparable.iter().map(|cell| format!("FAIL cell: {cell}")));
        lines.extend(self.slower.iter().map(|slower| format!("warning: {slower}")));
        lines.extend(self.uncounted.iter().map(|what| format!("not compared: {what}")));
        lines.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.extend(self.gains.iter().map(|change| format!("better: {change}")));
        lines.extend(self.falls.iter().map(|fall| format!("less cost: {fall}")));
        let tested = self.losses.len() + self.gains.len() + self.not_separable.len();
        lines.push(format!(
            "{} cells compared, {} of them identical; {tested} comparisons of the others, {} not separable",
            self.compared,
            self.identical,
            self.not_separable.len()
        ));
        lines
    }
}

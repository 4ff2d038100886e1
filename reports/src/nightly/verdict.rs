//! The verdict on a night.

use serde::Serialize;

use super::cost::{CostChange, CostIncrease};
use super::matching::Incomparable;
use super::quality::QualityChange;

/// What a night says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NightlyVerdict {
    /// Cells of both.
    pub compared: usize,
    /// Of these, cells whose numbers are the same in all digits.
    pub identical: usize,
    /// Losses of quality by more than noise, and large enough: they fail.
    pub losses: Vec<QualityChange>,
    /// Gains by more than noise.
    pub gains: Vec<QualityChange>,
    /// Everything else that was tested.
    pub not_separable: Vec<QualityChange>,
    /// Deterministic costs that rose: they fail.
    pub rises: Vec<CostChange>,
    /// Deterministic costs that fell.
    pub falls: Vec<CostChange>,
    /// Cells of the baseline without a counterpart: they fail, for nothing is known of them.
    pub incomparable: Vec<Incomparable>,
    /// Longer steps and more memory: they warn.
    pub slower: Vec<CostIncrease>,
    /// Costs that could not be compared because they were not counted, a sentence each.
    pub uncounted: Vec<String>,
    /// What else the reader must know, one sentence each.
    pub warnings: Vec<String>,
}

impl NightlyVerdict {
    /// Whether the night is taken.
    pub fn passes(&self) -> bool {
        self.losses.is_empty() && self.rises.is_empty() && self.incomparable.is_empty()
    }

    /// The verdict in lines for people: what fails first, then warnings, then what passes.
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

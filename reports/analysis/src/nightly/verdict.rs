//! The verdict on a night.

use std::fmt;

use serde::Serialize;

use super::matching::Incomparable;
use records::number::{bytes, count, p_value, points, three_digits};

/// Verdict on a night.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
            "{} compared, {} of them identical; {} of the other cells, {} of them not separable",
            count(self.compared as u64, "cell"),
            self.identical,
            count(tested as u64, "comparison"),
            self.not_separable.len()
        ));
        lines
    }
}

/// Scope of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "scope")]
pub enum Scope {
    /// All cells of an encoding whose numbers changed.
    Encoding {
        /// Name of the encoding.
        encoding: String,
    },
    /// One workload and encoding.
    Workload {
        /// Name of the encoding.
        encoding: String,
        /// Name of the workload.
        workload: String,
    },
}

/// A comparison of this night with the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QualityChange {
    /// Scope of the comparison.
    #[serde(flatten)]
    pub scope: Scope,
    /// Name of the region: `in distribution` or `beyond training`.
    pub region: &'static str,
    /// Name of the metric: `exact match` or `token accuracy` (shares), or `nll` (nats per scored token, less is
    /// better).
    pub metric: &'static str,
    /// Mean in the baseline.
    pub before: f64,
    /// Mean in this night.
    pub after: f64,
    /// Improvement over the baseline; negative if this night is worse.
    pub gain: f64,
    /// The p-value after Holm's correction; `None` with too few pairs.
    pub p_holm: Option<f64>,
    /// Number of pairs: workloads and seeds, or seeds.
    pub n: u32,
}

impl fmt::Display for QualityChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = self.metric != "nll";
        match &self.scope {
            Scope::Encoding { encoding } => write!(f, "{encoding}, all changed cells")?,
            Scope::Workload { encoding, workload } => write!(f, "{encoding} on `{workload}`")?,
        }
        let show = |x: f64| if share { points(x) } else { three_digits(x) };
        let unit = if share { "%" } else { " nats" };
        write!(
            f,
            ", {}: {} {} -> {}{unit} (n = {}",
            self.region,
            self.metric,
            show(self.before),
            show(self.after),
            self.n
        )?;
        match self.p_holm {
            Some(p) => write!(f, ", p {} after Holm)", p_value(p)),
            None => write!(f, ", too few pairs for a test)"),
        }
    }
}

/// Change of a deterministic cost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CostChange {
    /// Name of the encoding.
    pub encoding: String,
    /// Name of the workload.
    pub workload: String,
    /// Name of the cost.
    pub what: &'static str,
    /// Value in the baseline.
    pub before: u64,
    /// Value in this night.
    pub after: u64,
}

impl fmt::Display for CostChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { encoding, workload, what, before, after } = self;
        write!(f, "{encoding} on `{workload}`: {what} {before} -> {after}")
    }
}

/// Name of the step time in [`CostIncrease::what`].
pub(super) const STEP: &str = "step";

/// Measured cost that is much larger than in the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostIncrease {
    /// Name of the encoding.
    pub encoding: String,
    /// Name of the workload.
    pub workload: String,
    /// `step` (seconds) or `peak memory` (bytes).
    pub what: &'static str,
    /// Median over seeds of the baseline.
    pub before: f64,
    /// Median over seeds of this night.
    pub after: f64,
}

impl fmt::Display for CostIncrease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |x: f64| {
            if self.what == STEP { format!("{} ms", three_digits(1000.0 * x)) } else { bytes(x) }
        };
        let Self { encoding, workload, what, before, after } = self;
        let ratio = three_digits(after / before);
        write!(
            f,
            "{encoding} on `{workload}`: {what} {} -> {}, {ratio} times",
            show(*before),
            show(*after)
        )
    }
}

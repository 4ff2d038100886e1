//! Evaluations aggregated over seeds.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::record::{EvalPoint, Metric, RunRecord, Status};
use crate::stats::Estimate;

/// Aggregate over seeds of one encoding's evaluations on one split at one length.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Name of the workload: a task at one size.
    pub workload: String,
    /// Name of the encoding.
    pub encoding: String,
    /// Name of the split.
    pub split: String,
    /// Sequence length in the task's unit.
    pub len: u64,
    /// Whether the split is in distribution and the length within training.
    pub in_distribution: bool,
    /// Sequence length in training.
    pub train_len: u64,
    /// The metric that ranks: `exact-match` or `perplexity`.
    pub headline: String,
    /// Exact match of guessing at this length, where it is known.
    pub chance: Option<f64>,
    /// Exact match, 0 to 1.
    pub exact_match: Estimate,
    /// Token accuracy, 0 to 1.
    pub token_accuracy: Estimate,
    /// Negative log-likelihood, nats per scored token.
    pub nll: Estimate,
    /// Mean bits per byte of text, where the task is text.
    pub bits_per_byte: Option<f64>,
}

impl Aggregate {
    /// Estimate of a metric, on the metric's scale: nats for perplexity.
    pub fn estimate(&self, metric: Metric) -> Estimate {
        match metric {
            Metric::ExactMatch => self.exact_match,
            Metric::TokenAccuracy => self.token_accuracy,
            Metric::Perplexity => self.nll,
        }
    }
}

/// Aggregates the evaluations of finished records over seeds: one per workload, encoding, split and
/// length, sorted.
///
/// The records of one cell must be unique (one per seed); [`crate::write_report`] sees to it.
pub fn aggregate<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Vec<Aggregate> {
    let mut groups: BTreeMap<(&str, &str), Vec<&RunRecord>> = BTreeMap::new();
    for record in records.into_iter().filter(|r| r.status == Status::Done) {
        groups.entry((&record.workload, &record.encoding.name)).or_default().push(record);
    }
    let groups: Vec<_> = groups.into_values().collect();
    groups.into_par_iter().flat_map_iter(|records| points(&records)).collect()
}

/// Aggregates the records of one workload and encoding.
fn points(records: &[&RunRecord]) -> Vec<Aggregate> {
    let mut points: BTreeMap<(&str, u64), Vec<(&RunRecord, &EvalPoint)>> = BTreeMap::new();
    for record in records {
        for eval in &record.evals {
            points.entry((&eval.split, eval.len)).or_default().push((record, eval));
        }
    }
    let point = |((split, len), members): ((&str, u64), Vec<(&RunRecord, &EvalPoint)>)| {
        let (record, eval) = members.first()?;
        let over = |get: fn(&EvalPoint) -> f64| {
            Estimate::of(&members.iter().map(|(_, e)| get(e)).collect::<Vec<_>>())
        };
        let bits: Vec<f64> = members.iter().filter_map(|(_, e)| e.bits_per_byte).collect();
        Some(Aggregate {
            workload: record.workload.clone(),
            encoding: record.encoding.name.clone(),
            split: split.to_owned(),
            len,
            in_distribution: eval.in_distribution,
            train_len: record.train_len,
            headline: record.task.headline.clone(),
            chance: eval.chance.or(record.task.chance),
            exact_match: over(|e| e.exact_match)?,
            token_accuracy: over(|e| e.token_accuracy)?,
            nll: over(|e| e.nll)?,
            bits_per_byte: Estimate::of(&bits).map(|e| e.mean).filter(|x| x.is_finite()),
        })
    };
    points.into_iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests;

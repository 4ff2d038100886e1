//! Training curves, averaged over seeds.

use std::collections::BTreeMap;

use super::grouping::by_encoding;
use crate::record::Metric;
use crate::record::RunRecord;
use crate::stats::Mean;

/// A quantity by training step.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Name of the encoding.
    pub encoding: String,
    /// Points, sorted by step.
    pub points: Vec<StepMean>,
}

/// Mean over the seeds that have a value at a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepMean {
    /// Optimizer steps done so far.
    pub step: u64,
    /// Mean and interval over seeds.
    pub value: Mean,
}

fn curves(records: &[&RunRecord], of: impl Fn(&RunRecord) -> Vec<(u64, f64)>) -> Vec<Curve> {
    by_encoding(records)
        .into_iter()
        .map(|(encoding, records)| {
            let mut steps: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
            for (step, value) in records.iter().flat_map(|r| of(r)) {
                steps.entry(step).or_default().push(value);
            }
            let points = steps
                .into_iter()
                .filter_map(|(step, values)| Some(StepMean { step, value: Mean::of(&values)? }));
            Curve { encoding: encoding.to_owned(), points: points.collect() }
        })
        .filter(|curve| !curve.points.is_empty())
        .collect()
}

/// Training loss, nats per scored token.
pub(super) fn training(records: &[&RunRecord]) -> Vec<Curve> {
    curves(records, |r| r.train.curve.iter().map(|point| (point.step, point.loss)).collect())
}

/// The headline metric in validations; negative log-likelihood where it is perplexity.
pub(super) fn validation(records: &[&RunRecord], headline: Metric) -> Vec<Curve> {
    curves(records, |r| {
        let value = |v: &crate::record::Validation| match headline {
            Metric::ExactMatch => v.exact_match,
            Metric::TokenAccuracy => v.token_accuracy,
            Metric::Perplexity => v.nll,
        };
        r.train.validations.iter().map(|v| (v.step, value(v))).collect()
    })
}

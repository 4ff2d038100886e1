//! Metrics of individual runs: whether and when training was solved, and the effective length.
//!
//! Only tasks that exact match ranks can be solved. A text has no such point.

use std::collections::{BTreeMap, BTreeSet};

use super::settings::Settings;
use crate::record::Metric;
use crate::record::{EvalPoint, RunRecord, Status};
use crate::stats::sorted_median;

/// Time at which the loss of a cell reached [`Settings::solved_loss`]. A point of a curve is the mean loss since
/// the point before, so the time is late by at most one interval between points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SolveTime {
    /// Optimizer steps done so far.
    pub step: u64,
    /// Seconds since training began.
    pub seconds: f64,
}

/// Effective length of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectiveLength {
    /// Largest evaluated length up to which exact match stays high enough; 0 if it is too low at the shortest
    /// length.
    pub len: u64,
    /// Whether it is the longest evaluated length: the true value may be larger.
    pub at_least: bool,
}

fn is_for_exact_match(record: &RunRecord) -> bool {
    Metric::from_headline(&record.task.headline) == Some(Metric::ExactMatch)
}

/// Reports whether a cell solved training: its exact match, averaged over all evaluations in distribution, is at
/// least [`Settings::solved_exact_match`]. A diverged cell did not. `None` if the cell was not run to the end, or
/// its task cannot be solved.
pub fn solved(record: &RunRecord, settings: &Settings) -> Option<bool> {
    if !is_for_exact_match(record) {
        return None;
    }
    match record.status {
        Status::Diverged { .. } => Some(false),
        Status::Done => {
            let inside: Vec<f64> =
                record.evals.iter().filter(|e| e.in_distribution).map(|e| e.exact_match).collect();
            let mean = inside.iter().sum::<f64>() / inside.len() as f64;
            (!inside.is_empty()).then_some(mean >= settings.solved_exact_match)
        }
        Status::TimedOut { .. }
        | Status::OutOfMemory { .. }
        | Status::Failed { .. }
        | Status::Interrupted => None,
    }
}

/// Time at which a cell solved training: from its validations if it has any, otherwise from its loss. `None` if it
/// did not, or its loss never reached [`Settings::solved_loss`].
pub fn solve_time(record: &RunRecord, settings: &Settings) -> Option<SolveTime> {
    if solved(record, settings) != Some(true) {
        return None;
    }
    if !record.train.validations.is_empty() {
        return record.train.solved.map(|at| SolveTime { step: at.step, seconds: at.seconds });
    }
    let point = record.train.curve.iter().find(|p| p.loss <= settings.solved_loss)?;
    Some(SolveTime { step: point.step, seconds: point.seconds })
}

/// The largest evaluated length up to which exact match is at least
/// [`Settings::effective_exact_match`] at every evaluated length, on the splits that training drew
/// from (those with an evaluation in distribution). A length at which the cell could not be evaluated
/// is not held. `None`: not finished, or nothing to tell it from.
pub fn effective_length(record: &RunRecord, settings: &Settings) -> Option<EffectiveLength> {
    if !is_for_exact_match(record) || record.status != Status::Done {
        return None;
    }
    let training: BTreeSet<&str> =
        record.evals.iter().filter(|e| e.in_distribution).map(|e| e.split.as_str()).collect();
    let mut held: BTreeMap<u64, bool> = BTreeMap::new();
    let mut at = |len: u64, holds: bool| {
        let all = held.entry(len).or_insert(true);
        *all = *all && holds;
    };
    let high = |e: &EvalPoint| e.exact_match >= settings.effective_exact_match;
    for eval in record.evals.iter().filter(|e| training.contains(e.split.as_str())) {
        at(eval.len, high(eval));
    }
    for skipped in record.skipped_evals.iter().filter(|s| training.contains(s.split.as_str())) {
        at(skipped.len, false);
    }
    let longest = *held.keys().next_back()?;
    let len = held.iter().take_while(|(_, holds)| **holds).last().map_or(0, |(len, _)| *len);
    Some(EffectiveLength { len, at_least: len == longest })
}

/// Median over seeds with the range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianRange {
    /// Median over the seeds.
    pub median: f64,
    /// Minimum and maximum over the seeds.
    pub range: (f64, f64),
    /// Number of seeds behind the median.
    pub n: u32,
}

impl MedianRange {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let range = (*values.first()?, *values.last()?);
        Some(Self { median: sorted_median(&values), range, n: values.len() as u32 })
    }
}

/// Run metrics of one encoding on a workload, over its seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMetrics {
    /// Name of the encoding.
    pub encoding: String,
    /// Number of seeds that solved training.
    pub solved: u32,
    /// Number of seeds trained to the end or until they diverged.
    pub run: u32,
    /// Number of these seeds with validations, which then tell the time to solve; for the others the loss does.
    pub by_validation: u32,
    /// Steps to solve training, over the seeds that did.
    pub solve_steps: Option<MedianRange>,
    /// Seconds to solve training, over the seeds that did.
    pub solve_seconds: Option<MedianRange>,
    /// Effective length over the finished seeds, in the task's unit of length.
    pub effective: Option<MedianRange>,
    /// Whether the median effective length is the longest evaluated length: the true value may be larger.
    pub effective_at_least: bool,
    /// Median of the ratio of effective length to training length.
    pub effective_ratio: Option<f64>,
}

impl RunMetrics {
    /// Share of seeds that solved training; `None` if none was run.
    pub fn fit_rate(&self) -> Option<f64> {
        (self.run > 0).then(|| f64::from(self.solved) / f64::from(self.run))
    }
}

/// Run metrics of each encoding, sorted by name, from one record for each seed. Empty for a task that cannot be
/// solved.
pub fn run_metrics(records: &[&RunRecord], settings: &Settings) -> Vec<RunMetrics> {
    let mut groups: BTreeMap<&str, Vec<&RunRecord>> = BTreeMap::new();
    for record in records.iter().filter(|r| solved(r, settings).is_some()) {
        groups.entry(&record.encoding.name).or_default().push(record);
    }
    groups.into_iter().map(|(encoding, records)| metrics(encoding, &records, settings)).collect()
}

fn metrics(encoding: &str, records: &[&RunRecord], settings: &Settings) -> RunMetrics {
    let times: Vec<SolveTime> = records.iter().filter_map(|r| solve_time(r, settings)).collect();
    let mut lengths: Vec<(EffectiveLength, u64)> = records
        .iter()
        .filter_map(|r| Some((effective_length(r, settings)?, r.train_len)))
        .collect();
    lengths.sort_by_key(|(length, _)| (length.len, length.at_least));
    let ratios =
        lengths.iter().map(|(length, trained)| length.len as f64 / *trained as f64).collect();
    RunMetrics {
        encoding: encoding.to_owned(),
        solved: records.iter().filter(|r| solved(r, settings) == Some(true)).count() as u32,
        run: records.len() as u32,
        by_validation: records.iter().filter(|r| !r.train.validations.is_empty()).count() as u32,
        solve_steps: MedianRange::of(times.iter().map(|t| t.step as f64).collect()),
        solve_seconds: MedianRange::of(times.iter().map(|t| t.seconds).collect()),
        effective: MedianRange::of(lengths.iter().map(|(length, _)| length.len as f64).collect()),
        effective_at_least: lengths.get(lengths.len() / 2).is_some_and(|(l, _)| l.at_least),
        effective_ratio: MedianRange::of(ratios)
            .map(|m| m.median)
            .filter(|ratio| ratio.is_finite()),
    }
}

#[cfg(test)]
mod tests;

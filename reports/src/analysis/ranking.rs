//! Rankings of encodings on a workload, in distribution and beyond training.
//!
//! An encoding's value of a region is, for each seed, the mean over all evaluations of that region,
//! then the mean over seeds. Only encodings that have *all* evaluations of the region are ranked: one
//! that cannot run at the longest lengths would otherwise be judged on the easy ones alone.
//!
//! All pairs of ranked encodings are compared by their differences paired by seed, and Holm's
//! correction runs over all of them ([`decide`]). So it does not matter that the best is chosen on the
//! data that it is then compared on: every comparison that the choice could have led to is paid for.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::Metric;
use crate::record::{EvalPoint, RunRecord};
use crate::stats::{Comparison, Estimate, Paired, SeedSpread, decide, paired, rank_groups};

/// Position of evaluations relative to training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// In-distribution splits up to the training length.
    Inside,
    /// All other evaluations: longer, or of another distribution.
    Beyond,
}

impl Region {
    /// Name of the region for use in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inside => "in distribution",
            Self::Beyond => "beyond training",
        }
    }

    fn holds(self, eval: &EvalPoint) -> bool {
        eval.in_distribution == (self == Self::Inside)
    }
}

/// Place of an encoding relative to the best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rank {
    /// Best mean; several encodings when they are equal.
    Best,
    /// Behind the best, with the comparison; `None` if the two have no seed in common.
    Behind(Option<Comparison>),
    /// Not ranked because evaluations are missing or not finite.
    Unranked,
}

/// Result of an encoding in one region.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodingResult {
    /// Name of the encoding.
    pub encoding: String,
    /// Display name, unique in the report.
    pub display: String,
    /// Estimate over seeds, on the scale of the metric (nats for perplexity); `None` if nothing was evaluated.
    pub estimate: Option<Estimate>,
    /// Mean over the evaluations, by seed.
    pub per_seed: Vec<(u64, f64)>,
    /// Number of the region's evaluations that the encoding has.
    pub evaluated: usize,
    /// Place relative to the best.
    pub rank: Rank,
    /// Rank, shared by encodings without a significant difference ([`rank_groups`]); `None` if not ranked.
    pub group: Option<u32>,
}

impl EncodingResult {
    /// Reports whether the encoding is behind the best without a significant difference.
    pub fn is_level(&self) -> bool {
        matches!(self.rank, Rank::Behind(c) if !separable(c.as_ref()))
    }

    fn mean(&self) -> f64 {
        self.estimate.map_or(f64::NAN, |e| e.mean)
    }

    /// Difference between its best and its worst seed.
    fn range(&self) -> f64 {
        let values = || self.per_seed.iter().map(|(_, value)| *value);
        values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min)
    }
}

/// Reports whether the first of the two encodings is significantly better.
pub(crate) fn separable(comparison: Option<&Comparison>) -> bool {
    comparison.is_some_and(|c| c.separable && c.paired.mean_difference > 0.0)
}

/// Comparison of two ranked encodings with a seed in common.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedPair {
    /// Name of the encoding with the better mean.
    pub better: String,
    /// Name of the encoding with the worse mean.
    pub worse: String,
    /// Comparison of the two; the mean difference is positive if paired seeds agree with the means.
    pub comparison: Comparison,
}

/// Ranking of all encodings of a workload in one region.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// Region of the evaluations.
    pub region: Region,
    /// Metric that ranks the encodings.
    pub metric: Metric,
    /// The common exact match of all encodings, if there is one and token accuracy ranks instead.
    pub fallback: Option<f64>,
    /// Split and length of each evaluation.
    pub points: Vec<(String, u64)>,
    /// One per encoding, sorted by name.
    pub results: Vec<EncodingResult>,
    /// Comparisons of all pairs of ranked encodings, in the order of their places. They form one family.
    pub pairs: Vec<RankedPair>,
    /// Display names of ranked encodings with bimodal seeds: half of the scale or more apart; see [`SeedSpread`].
    pub bimodal_seeds: Vec<String>,
}

impl Ranking {
    /// Ranks the encodings of `records`, which must be counted records of one workload.
    /// `display` maps names of encodings to names for people.
    pub fn new(
        records: &[&RunRecord],
        display: &BTreeMap<String, String>,
        region: Region,
        headline: Metric,
    ) -> Self {
        let ranking = Self::by(records, display, region, headline);
        // Whole answers of long sequences can be wrong for all: the tokens may still tell.
        if headline == Metric::ExactMatch
            && let Some(value) = ranking.common_value()
        {
            let by_token = Self {
                fallback: Some(value),
                ..Self::by(records, display, region, Metric::TokenAccuracy)
            };
            if by_token.ranked().len() > 1 && by_token.common_value().is_none() {
                return by_token;
            }
        }
        ranking
    }

    fn by(
        records: &[&RunRecord],
        display: &BTreeMap<String, String>,
        region: Region,
        metric: Metric,
    ) -> Self {
        let points: BTreeSet<(String, u64)> = records
            .iter()
            .flat_map(|r| &r.evals)
            .filter(|e| region.holds(e))
            .map(|e| (e.split.clone(), e.len))
            .collect();
        let mut ranking = Self {
            region,
            metric,
            fallback: None,
            results: results(records, display, region, metric, points.len()),
            points: points.into_iter().collect(),
            pairs: Vec::new(),
            bimodal_seeds: Vec::new(),
        };
        let chance = records.first().and_then(|r| r.task.chance);
        if let Some(jump) = metric.bimodal_gap(chance) {
            let ranked = ranking.ranked().into_iter();
            ranking.bimodal_seeds =
                ranked.filter(|s| s.range() >= jump).map(|s| s.display.clone()).collect();
        }
        ranking.rank();
        ranking
    }

    /// Spread of the seeds, for [`decide`].
    pub fn seed_spread(&self) -> SeedSpread {
        if self.bimodal_seeds.is_empty() { SeedSpread::Unimodal } else { SeedSpread::Bimodal }
    }

    /// Compares all pairs, then assigns places and ranks.
    fn rank(&mut self) {
        let order: Vec<EncodingResult> = self.ranked().into_iter().cloned().collect();
        let mut places = Vec::new();
        let mut seen: Vec<Paired> = Vec::new();
        for (i, better) in order.iter().enumerate() {
            for (j, worse) in order.iter().enumerate().skip(i + 1) {
                let difference = if self.metric.higher_is_better() {
                    paired(&better.per_seed, &worse.per_seed)
                } else {
                    paired(&worse.per_seed, &better.per_seed)
                };
                if let Some(difference) = difference {
                    places.push((i, j));
                    seen.push(difference);
                }
            }
        }
        let verdicts: BTreeMap<(usize, usize), Comparison> =
            places.into_iter().zip(decide(&seen, self.seed_spread())).collect();
        let is_best = |place: usize| equal(order[place].mean(), order[0].mean());
        let groups = rank_groups(order.len(), |a, b| {
            !(a == 0 && is_best(b)) && separable(verdicts.get(&(a, b)))
        });
        for (place, result) in order.iter().enumerate() {
            let rank = if is_best(place) {
                Rank::Best
            } else {
                Rank::Behind(verdicts.get(&(0, place)).copied())
            };
            if let Some(s) = self.results.iter_mut().find(|s| s.encoding == result.encoding) {
                s.rank = rank;
                s.group = Some(groups[place]);
            }
        }
        self.pairs = verdicts
            .into_iter()
            .map(|((better, worse), comparison)| RankedPair {
                better: order[better].encoding.clone(),
                worse: order[worse].encoding.clone(),
                comparison,
            })
            .collect();
    }

    /// The ranked encodings, best first.
    pub fn ranked(&self) -> Vec<&EncodingResult> {
        let mut ranked: Vec<&EncodingResult> =
            self.results.iter().filter(|s| s.rank != Rank::Unranked).collect();
        ranked.sort_by(|a, b| {
            let order = a.mean().total_cmp(&b.mean());
            if self.metric.higher_is_better() { order.reverse() } else { order }
        });
        ranked
    }

    /// Value shared by all ranked encodings, if there are two or more.
    pub fn common_value(&self) -> Option<f64> {
        let ranked = self.ranked();
        let first = ranked.first()?.mean();
        (ranked.len() > 1 && ranked.iter().all(|s| equal(s.mean(), first))).then_some(first)
    }
}

fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs()).max(1.0)
}

fn results(
    records: &[&RunRecord],
    display: &BTreeMap<String, String>,
    region: Region,
    metric: Metric,
    points: usize,
) -> Vec<EncodingResult> {
    let mut by_encoding: BTreeMap<&str, Vec<&RunRecord>> = BTreeMap::new();
    for record in records {
        by_encoding.entry(&record.encoding.name).or_default().push(record);
    }
    by_encoding
        .into_iter()
        .map(|(encoding, records)| {
            let seeds: Vec<(u64, Vec<f64>)> = records
                .iter()
                .map(|r| {
                    let values = r.evals.iter().filter(|e| region.holds(e));
                    (r.seed, values.map(|e| metric.of(e)).collect())
                })
                .collect();
            // Seeds with all evaluations count; without any such seed, those that come closest.
            let evaluated = seeds.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
            let per_seed: Vec<(u64, f64)> = seeds
                .iter()
                .filter(|(_, values)| evaluated > 0 && values.len() == evaluated)
                .map(|(seed, values)| (*seed, values.iter().sum::<f64>() / values.len() as f64))
                .collect();
            let values: Vec<f64> = per_seed.iter().map(|(_, value)| *value).collect();
            let estimate = Estimate::of(&values);
            let complete = evaluated == points && estimate.is_some_and(|e| e.mean.is_finite());
            EncodingResult {
                encoding: encoding.to_owned(),
                display: display.get(encoding).map_or(encoding, String::as_str).to_owned(),
                estimate,
                per_seed,
                evaluated,
                rank: if complete { Rank::Behind(None) } else { Rank::Unranked },
                group: None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;

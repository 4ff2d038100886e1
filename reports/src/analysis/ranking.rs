//! Rankings of encodings on a workload, in distribution and beyond training.
//!
//! An encoding's value of a region is, for each seed, the mean over all evaluations of that region,
//! then the mean over seeds. Only encodings that have *all* evaluations of the region are ranked: one
//! that cannot run at the longest lengths would otherwise be judged on the easy ones alone.
//!
//! All pairs of ranked encodings are compared by their differences paired by seed, and Holm's
//! correction runs over all of them ([`decide`]). So it does not matter that the best is chosen on the
//! data that it is then compared on: every comparison that the choice could have led to is paid for.

use std::collections::BTreeMap;

use polars::prelude::*;

use super::selection::{Selection, stable};
use crate::frame::rows;
use crate::record::Metric;
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
    /// Ranks the encodings of the counted cells of one workload.
    /// `display` maps names of encodings to names for people.
    ///
    /// # Errors
    /// If a query fails.
    pub(crate) fn new(
        counted: &Selection<'_>,
        display: &BTreeMap<String, String>,
        region: Region,
        headline: Metric,
    ) -> PolarsResult<Self> {
        let ranking = Self::by(counted, display, region, headline)?;
        // Whole answers of long sequences can be wrong for all: the tokens may still tell.
        if headline == Metric::ExactMatch
            && let Some(value) = ranking.common_value()
        {
            let by_token = Self {
                fallback: Some(value),
                ..Self::by(counted, display, region, Metric::TokenAccuracy)?
            };
            if by_token.ranked().len() > 1 && by_token.common_value().is_none() {
                return Ok(by_token);
            }
        }
        Ok(ranking)
    }

    fn by(
        counted: &Selection<'_>,
        display: &BTreeMap<String, String>,
        region: Region,
        metric: Metric,
    ) -> PolarsResult<Self> {
        let inside = col("in_distribution").eq(lit(region == Region::Inside));
        let evaluations = counted.rows(|frames| &frames.evaluations).filter(inside);
        let by = ["split", "len"];
        let points = evaluations
            .clone()
            .select(by.map(col))
            .unique(None, UniqueKeepStrategy::Any)
            .sort(by, stable());
        let points: Vec<(String, u64)> =
            EvaluatedAt::of(points)?.into_iter().map(|at| (at.split, at.len)).collect();
        let values =
            evaluations.group_by_stable([col("cell")]).agg([col(metric.column()).alias("values")]);
        let seeds = counted
            .cells()
            .left_join(values, col("cell"), col("cell"))
            .sort(["encoding", "seed"], stable());
        let seeds = SeedValues::of(seeds)?;
        let chance = seeds.first().and_then(|seed| seed.task_chance);
        let mut ranking = Self {
            region,
            metric,
            fallback: None,
            results: results(&seeds, display, points.len()),
            points,
            pairs: Vec::new(),
            bimodal_seeds: Vec::new(),
        };
        if let Some(jump) = metric.bimodal_gap(chance) {
            let ranked = ranking.ranked().into_iter();
            ranking.bimodal_seeds =
                ranked.filter(|s| s.range() >= jump).map(|s| s.display.clone()).collect();
        }
        ranking.rank();
        Ok(ranking)
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

rows! {
    /// Split and length of an evaluation.
    struct EvaluatedAt {
        split: String,
        len: u64,
    }
}

rows! {
    /// Values of the metric in all evaluations of one seed.
    struct SeedValues {
        encoding: String,
        seed: u64,
        task_chance: Option<f64>,
        values: Vec<f64>,
    }
}

fn results(
    seeds: &[SeedValues],
    display: &BTreeMap<String, String>,
    points: usize,
) -> Vec<EncodingResult> {
    seeds
        .chunk_by(|a, b| a.encoding == b.encoding)
        .map(|seeds| {
            let encoding = seeds[0].encoding.as_str();
            // Seeds with all evaluations count; without any such seed, those that come closest.
            let evaluated = seeds.iter().map(|seed| seed.values.len()).max().unwrap_or(0);
            let per_seed: Vec<(u64, f64)> = seeds
                .iter()
                .filter(|seed| evaluated > 0 && seed.values.len() == evaluated)
                .map(|SeedValues { seed, values, .. }| {
                    (*seed, values.iter().sum::<f64>() / values.len() as f64)
                })
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

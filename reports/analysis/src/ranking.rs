//! Rankings of encodings on a workload: in distribution, at longer lengths, on other distributions, on both.
//!
//! An encoding's value of a region is, for each seed, the mean over all evaluations of that region,
//! then the mean over seeds. Only encodings that have *all* evaluations of the region are ranked: one
//! that cannot run at the longest lengths would otherwise be judged on the easy ones alone.
//!
//! All pairs of ranked encodings are compared by their differences paired by seed, and Holm's
//! correction runs over all of them (`judge`). So it does not matter that the best is chosen on the
//! data that it is then compared on: every comparison that the choice could have led to is paid for. Where the seeds
//! are too few for any pair to be separable, nothing is ranked; where they are for one encoding alone, it has no rank and
//! the others are ranked without it. Nothing is better than another unless it is above chance; that of token accuracy
//! is not known.

mod by_mean;

use std::collections::{BTreeMap, BTreeSet};

pub use self::by_mean::{MeanResult, by_mean};

use super::answers::AnswerTable;
use super::contrast::{Contrast, ContrastSide, judge};
use super::evaluated::{Evaluated, SeedRun, mean_chance};
use records::Metric;
use records::settings::Region;
use stats::{Better, Comparison, Estimate, LEAST_SEEDS, rank_groups, seeds_needed};

/// Regions by decreasing priority as the deciding region of a workload.
pub(super) const STANDING: [Region; 4] =
    [Region::Longer, Region::Shifted, Region::Both, Region::Inside];

/// Difference from the leader of a group beyond which an encoding that cannot be separated from it does not share its rank:
/// 5 points of a share, or 0.05 nats.
pub const FAR: f64 = 0.05;

/// Place of an encoding relative to the best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rank {
    /// Best mean of those with a rank; several encodings when they are equal.
    Best,
    /// Behind the best, with the comparison; `None` if the two have no seed in common.
    Behind(Option<Comparison>),
    /// Fewer than [`LEAST_SEEDS`] seeds in common with every other encoding, while others can be tested: no test could
    /// separate it from any.
    TooFewSeeds,
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
    /// Mean over the evaluations of each seed, as (seed, mean).
    pub per_seed: Vec<(u64, f64)>,
    /// Number of the region's evaluations that the encoding has.
    pub evaluated: usize,
    /// Rank relative to the best encoding.
    pub rank: Rank,
    /// Rank number, shared by encodings without a significant difference ([`rank_groups`]); `None` if not ranked, if
    /// there are too few seeds for its rank ([`Rank::TooFewSeeds`]) or for any ([`Ranking::seeds_needed`]), if it is
    /// [`FAR`] behind the leader of its group, from which only the scatter of seeds keeps it, or if there is one rank only.
    pub group: Option<u32>,
    /// Whether the interval of the mean, or the mean if there is no interval, is above chance; `None` if the chance
    /// is unknown.
    pub above_chance: Option<bool>,
}

impl EncodingResult {
    /// Reports whether the encoding is behind the best without a significant difference.
    pub fn is_level(&self) -> bool {
        matches!(self.rank, Rank::Behind(c) if !separable(c.as_ref()))
    }

    fn side(&self) -> ContrastSide<'_> {
        ContrastSide { by_seed: &self.per_seed, above_chance: self.above_chance }
    }

    /// Returns the mean over seeds; NaN if nothing was evaluated.
    pub fn mean(&self) -> f64 {
        self.estimate.map_or(f64::NAN, |e| e.mean)
    }
}

/// Reports whether `comparison` is significant in favour of the first encoding.
pub fn separable(comparison: Option<&Comparison>) -> bool {
    comparison.is_some_and(|c| c.better() == Better::A)
}

/// Comparison of two encodings that have all evaluations, with at least one seed in common.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedPair {
    /// Name of the encoding with the better mean.
    pub better: String,
    /// Name of the encoding with the worse mean.
    pub worse: String,
    /// The two, first the better one.
    pub contrast: Contrast,
    /// Comparison of the two; the mean difference is positive if the paired seeds agree with the means.
    pub comparison: Comparison,
}

/// Ranking of all encodings of a workload in one region.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// Region of the evaluations.
    pub region: Region,
    /// Metric that ranks the encodings.
    pub metric: Metric,
    /// Exact match shared by all encodings, in which case token accuracy ranks; `None` if they differ.
    pub fallback: Option<f64>,
    /// Exact match of guessing if token accuracy ranks instead; otherwise [`Ranking::chance`] has it.
    pub fallback_chance: Option<f64>,
    /// Split and length of each evaluation.
    pub points: Vec<(String, u64)>,
    /// Results, one per encoding, sorted by name.
    pub results: Vec<EncodingResult>,
    /// Comparisons of all pairs of encodings that have all evaluations, in the order of their means. They form one
    /// family.
    pub pairs: Vec<RankedPair>,
    /// Exact match of guessing, mean over the evaluations; `None` for other metrics or if it is unknown for one.
    pub chance: Option<f64>,
    /// Number of seeds needed for ranks; `None` if the encodings have as many.
    pub seeds_needed: Option<u32>,
}

impl RankedPair {
    /// Returns the comparison as gains of the encoding of this name over the other.
    pub fn gains(&self, encoding: &str) -> Comparison {
        let paired = self.comparison.paired;
        let paired = if self.better == encoding { paired } else { paired.reversed() };
        Comparison { paired, ..self.comparison }
    }
}

impl Ranking {
    /// Ranks the encodings of `runs`, which must be the selected runs of one workload, sorted by encoding and seed.
    /// `display` maps names of encodings to display names.
    pub fn new(
        runs: &[SeedRun],
        display: &BTreeMap<String, String>,
        region: Region,
        headline: Metric,
    ) -> Self {
        let ranking = Self::by(runs, display, region, headline);
        // Exact match of long sequences can be 0 for all encodings whose token accuracies differ.
        if headline == Metric::ExactMatch
            && let Some(value) = ranking.common_value()
        {
            let by_token = Self {
                fallback: Some(value),
                fallback_chance: ranking.chance,
                ..Self::by(runs, display, region, Metric::TokenAccuracy)
            };
            if by_token.complete().len() > 1 && by_token.common_value().is_none() {
                return by_token;
            }
        }
        ranking
    }

    fn by(
        runs: &[SeedRun],
        display: &BTreeMap<String, String>,
        region: Region,
        metric: Metric,
    ) -> Self {
        let points: BTreeSet<(String, u64)> = runs
            .iter()
            .flat_map(|run| evals_of(run, region))
            .map(|e| (e.split.clone(), e.len))
            .collect();
        let mut ranking = Self {
            region,
            metric,
            fallback: None,
            fallback_chance: None,
            points: points.into_iter().collect(),
            results: Vec::new(),
            pairs: Vec::new(),
            chance: chance(runs, region, metric),
            seeds_needed: None,
        };
        let tables = ranking.evaluate(runs, display);
        ranking.rank(&tables);
        ranking
    }

    /// Computes the results of all encodings, and returns their answers to the questions if they are known.
    fn evaluate(
        &mut self,
        runs: &[SeedRun],
        display: &BTreeMap<String, String>,
    ) -> BTreeMap<String, AnswerTable> {
        let mut tables = BTreeMap::new();
        let results = runs.chunk_by(|a, b| a.encoding == b.encoding).map(|runs| {
            let encoding = runs[0].encoding.as_str();
            let mut seeds: Vec<(u64, Vec<&Evaluated>)> =
                runs.iter().map(|run| (run.seed, evals_of(run, self.region).collect())).collect();
            // Seeds with all evaluations count; without any such seed, those that come closest.
            let evaluated = seeds.iter().map(|(_, evals)| evals.len()).max().unwrap_or(0);
            seeds.retain(|(_, evals)| evaluated > 0 && evals.len() == evaluated);
            let mean = |evals: &Vec<&Evaluated>| {
                evals.iter().map(|e| e.value(self.metric)).sum::<f64>() / evals.len() as f64
            };
            let per_seed: Vec<(u64, f64)> =
                seeds.iter().map(|(seed, evals)| (*seed, mean(evals))).collect();
            let values: Vec<f64> = per_seed.iter().map(|(_, value)| *value).collect();
            for (_, evals) in &mut seeds {
                evals.sort_by_key(|e| (&e.split, e.len));
            }
            let table = AnswerTable::of(&seeds, self.metric);
            let error = table.as_ref().and_then(AnswerTable::error);
            let estimate = Estimate::of(&values).map(|estimate| estimate.with_questions(error));
            tables.extend(table.map(|table| (encoding.to_owned(), table)));
            let complete =
                evaluated == self.points.len() && estimate.is_some_and(|e| e.mean.is_finite());
            let low = estimate.map(|e| e.ci95.map_or(e.mean, |(low, _)| low));
            EncodingResult {
                encoding: encoding.to_owned(),
                display: display.get(encoding).map_or(encoding, String::as_str).to_owned(),
                estimate,
                per_seed,
                evaluated,
                rank: if complete { Rank::Behind(None) } else { Rank::Unranked },
                group: None,
                above_chance: self.chance.zip(low).map(|(chance, low)| low > chance),
            }
        });
        self.results = results.collect();
        tables
    }

    /// Compares all pairs, then assigns places and ranks.
    fn rank(&mut self, tables: &BTreeMap<String, AnswerTable>) {
        let order: Vec<EncodingResult> = self.complete().into_iter().cloned().collect();
        let mut contrasts: BTreeMap<(usize, usize), Contrast> = BTreeMap::new();
        for (i, better) in order.iter().enumerate() {
            for (j, worse) in order.iter().enumerate().skip(i + 1) {
                let both = tables.get(&better.encoding).zip(tables.get(&worse.encoding));
                let error = both.and_then(|(better, worse)| better.error_of_difference(worse));
                let contrast = Contrast::of(self.metric, &better.side(), &worse.side(), error);
                contrasts.extend(contrast.map(|contrast| ((i, j), contrast)));
            }
        }
        let family: Vec<Contrast> = contrasts.values().copied().collect();
        let verdicts: BTreeMap<(usize, usize), Comparison> =
            contrasts.keys().copied().zip(judge(&family, 0)).collect();
        let seeds = || family.iter().map(|contrast| contrast.gain().n);
        let most = seeds().max().unwrap_or(0);
        // The family of Holm's correction; see `decide`.
        let testable = seeds().filter(|n| *n >= LEAST_SEEDS).count();
        let needed = seeds_needed(if testable > 0 { testable } else { family.len() } as u32);
        self.seeds_needed = (!family.is_empty() && most < needed).then_some(needed);
        // An encoding that no test can separate from any other would hide the differences of those behind it.
        let all_have_places = self.seeds_needed.is_some() || testable == 0;
        let has_place = |place: &usize| {
            all_have_places
                || verdicts.iter().any(|((better, worse), verdict)| {
                    [better, worse].contains(&place) && verdict.paired.n >= LEAST_SEEDS
                })
        };
        let placed: Vec<usize> = (0..order.len()).filter(has_place).collect();
        let is_best = |place: usize| equal(order[place].mean(), order[placed[0]].mean());
        let groups = rank_groups(placed.len(), |a, b| {
            !(a == 0 && is_best(placed[b])) && separable(verdicts.get(&(placed[a], placed[b])))
        });
        let is_far = |at: usize| {
            let leader = groups.iter().position(|group| *group == groups[at]).unwrap_or(at);
            (order[placed[leader]].mean() - order[placed[at]].mean()).abs() > FAR
        };
        for (place, result) in order.iter().enumerate() {
            let at = placed.iter().position(|other| *other == place);
            let rank = match at {
                None => Rank::TooFewSeeds,
                Some(_) if is_best(place) => Rank::Best,
                Some(_) => Rank::Behind(verdicts.get(&(placed[0], place)).copied()),
            };
            if let Some(s) = self.results.iter_mut().find(|s| s.encoding == result.encoding) {
                s.rank = rank;
                let has_group = |at: &usize| self.seeds_needed.is_none() && !is_far(*at);
                s.group = at.filter(has_group).map(|at| groups[at]);
            }
        }
        // A rank that all share says nothing.
        if !self.has_several_ranks() {
            self.results.iter_mut().for_each(|result| result.group = None);
        }
        self.pairs = verdicts
            .into_iter()
            .zip(family)
            .map(|(((better, worse), comparison), contrast)| RankedPair {
                better: order[better].encoding.clone(),
                worse: order[worse].encoding.clone(),
                contrast,
                comparison,
            })
            .collect();
    }

    /// Returns the comparisons of all other encodings with a control that is named in advance, corrected as a family of their own:
    /// they are fewer than all pairs, and so separate more. RoPE is such a control, and the base of an ablation.
    pub fn contrasts(&self, control: &str) -> Vec<RankedPair> {
        let has_control = |pair: &&RankedPair| pair.better == control || pair.worse == control;
        let pairs: Vec<&RankedPair> = self.pairs.iter().filter(has_control).collect();
        let family: Vec<Contrast> = pairs.iter().map(|pair| pair.contrast).collect();
        let judged = pairs.into_iter().zip(judge(&family, 0));
        judged.map(|(pair, comparison)| RankedPair { comparison, ..pair.clone() }).collect()
    }

    /// Returns the comparison of two encodings, the one with the better mean first; `None` in the other order.
    pub fn pair(&self, better: &str, worse: &str) -> Option<&RankedPair> {
        self.pairs.iter().find(|pair| pair.better == better && pair.worse == worse)
    }

    /// Reports whether any two encodings are separable. They may share a rank all the same: that of a third one, from
    /// which neither is separable.
    pub fn separates(&self) -> bool {
        self.seeds_needed.is_none()
            && self.pairs.iter().any(|pair| separable(Some(&pair.comparison)))
    }

    /// Reports whether there are several ranks, so that the first one distinguishes its encodings.
    pub fn has_several_ranks(&self) -> bool {
        self.results.iter().any(|s| s.group > Some(1))
    }

    /// Returns the encodings that have all evaluations, best first.
    pub fn complete(&self) -> Vec<&EncodingResult> {
        let mut complete: Vec<&EncodingResult> =
            self.results.iter().filter(|s| s.rank != Rank::Unranked).collect();
        complete.sort_by(|a, b| {
            let order = a.mean().total_cmp(&b.mean());
            if self.metric.higher_is_better() { order.reverse() } else { order }
        });
        complete
    }

    /// Returns the ranked encodings, best first: those that have all evaluations and enough seeds.
    pub fn ranked(&self) -> Vec<&EncodingResult> {
        let mut ranked = self.complete();
        ranked.retain(|s| s.rank != Rank::TooFewSeeds);
        ranked
    }

    /// Returns the value that all encodings with all evaluations share, if there are two or more and they are equal.
    pub fn common_value(&self) -> Option<f64> {
        let complete = self.complete();
        let first = complete.first()?.mean();
        (complete.len() > 1 && complete.iter().all(|s| equal(s.mean(), first))).then_some(first)
    }
}

fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs()).max(1.0)
}

/// Returns the evaluations of a seed in a region.
fn evals_of(run: &SeedRun, region: Region) -> impl Iterator<Item = &Evaluated> {
    run.evals.iter().filter(move |e| e.region == region)
}

/// Returns the mean chance over the evaluations of a region, from the first seed with the most evaluations.
fn chance(runs: &[SeedRun], region: Region, metric: Metric) -> Option<f64> {
    let most = runs.iter().rev().max_by_key(|run| evals_of(run, region).count())?;
    mean_chance(evals_of(most, region)).filter(|_| metric == Metric::ExactMatch)
}

#[cfg(test)]
mod tests;

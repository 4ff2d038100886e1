//! Who is ahead on a workload, within training lengths and beyond them, and is it more than noise.
//!
//! An encoding's value of a region is, for each seed, the mean over all evaluations of that region,
//! then the mean over seeds. The best is compared with every other by the difference paired by seed
//! ([`paired_difference`]). Only encodings that have *all* evaluations of the region are ranked: one
//! that cannot run at the longest lengths would otherwise be judged on the easy ones alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::number;
use crate::record::{EvalPoint, RunRecord};
use crate::stats::{Comparison, Estimate, paired_difference};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Share of answers that are right as a whole; higher is better.
    ExactMatch,
    /// Share of scored tokens that are right; higher is better.
    TokenAccuracy,
    /// `exp` of the nll; lower is better. Held, averaged and compared as nll, shown as perplexity.
    Perplexity,
}

impl Metric {
    /// The metric that a record's `task.headline` names.
    pub fn from_headline(name: &str) -> Option<Self> {
        match name {
            "exact-match" => Some(Self::ExactMatch),
            "perplexity" => Some(Self::Perplexity),
            _ => None,
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExactMatch => "exact match",
            Self::TokenAccuracy => "token accuracy",
            Self::Perplexity => "perplexity",
        }
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        self != Self::Perplexity
    }

    fn of(self, eval: &EvalPoint) -> f64 {
        match self {
            Self::ExactMatch => eval.exact_match,
            Self::TokenAccuracy => eval.token_accuracy,
            Self::Perplexity => eval.nll,
        }
    }

    /// `97.1 %` or `4.53`.
    pub fn show(self, value: f64) -> String {
        if self.higher_is_better() {
            number::percent(value)
        } else {
            number::three_digits(value.exp())
        }
    }

    /// The interval in the metric's unit; shares are cut to 0 and 100 %, which a t interval does
    /// not know about.
    pub fn show_interval(self, (low, high): (f64, f64)) -> String {
        if self.higher_is_better() {
            let (low, high) = (low.max(0.0), high.min(1.0));
            format!("{} to {}", number::points(low), number::points(high))
        } else {
            format!("{} to {}", number::three_digits(low.exp()), number::three_digits(high.exp()))
        }
    }

    /// How much better the best is: a difference in points, or for perplexity the ratio of the
    /// other's to the best's; with the 95 % interval where there is one of some width.
    pub fn show_difference(self, c: &Comparison) -> String {
        let interval = c.ci95.filter(|(low, high)| high - low > 1e-9);
        if self.higher_is_better() {
            let all = format!("difference {} points", number::points(c.mean_difference));
            match interval {
                Some((low, high)) => format!(
                    "{all}, 95 % interval {} to {}",
                    number::points(low),
                    number::points(high)
                ),
                None if c.n > 1 => format!("{all} in each of {} seeds", c.n),
                None => all,
            }
        } else {
            let show = |x: f64| number::three_digits(x.exp());
            let all = format!("its perplexity is {} times as high", show(c.mean_difference));
            match interval {
                Some((low, high)) => {
                    format!("{all}, 95 % interval {} to {}", show(low), show(high))
                }
                None if c.n > 1 => format!("{all} in each of {} seeds", c.n),
                None => all,
            }
        }
    }
}

/// Where evaluations lie relative to training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// In-distribution splits up to the training length.
    Inside,
    /// Everything else: longer, or another distribution.
    Beyond,
}

impl Region {
    /// As it reads in a sentence.
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

/// An encoding's place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rank {
    /// The best mean (several when they are equal).
    Best,
    /// Behind the best; what the comparison with it says (`None`: no seed in common).
    Behind(Option<Comparison>),
    /// Not ranked: some evaluations are missing or not finite.
    Unranked,
}

/// An encoding's result in one region.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Name of the encoding.
    pub encoding: String,
    /// Name for people, unique in the report.
    pub display: String,
    /// Over seeds, in the metric's own scale (nll for perplexity); `None`: nothing was evaluated.
    pub estimate: Option<Estimate>,
    /// Mean over the evaluations, by seed.
    pub per_seed: Vec<(u64, f64)>,
    /// How many of the region's evaluations it has.
    pub evaluated: usize,
    /// Its place.
    pub rank: Rank,
}

impl Standing {
    /// Behind the best, but not by more than noise.
    pub fn is_level(&self) -> bool {
        matches!(self.rank, Rank::Behind(c) if !separable(c.as_ref()))
    }

    fn mean(&self) -> f64 {
        self.estimate.map_or(f64::NAN, |e| e.mean)
    }
}

/// Whether a comparison with the best says that the best is better by more than noise.
pub(crate) fn separable(comparison: Option<&Comparison>) -> bool {
    comparison.is_some_and(|c| c.separable && c.mean_difference > 0.0)
}

/// All encodings of a workload in one region.
#[derive(Debug, Clone, PartialEq)]
pub struct Contest {
    /// Which evaluations.
    pub region: Region,
    /// What ranks.
    pub metric: Metric,
    /// Set when all exact matches are equal and token accuracy ranks instead: that equal value.
    pub fallback: Option<f64>,
    /// Split and length of each evaluation.
    pub points: Vec<(String, u64)>,
    /// One per encoding, sorted by name.
    pub standings: Vec<Standing>,
}

impl Contest {
    /// Ranks the encodings of `records`, which must be counted records of one workload.
    /// `display` maps names of encodings to names for people.
    pub fn new(
        records: &[&RunRecord],
        display: &BTreeMap<String, String>,
        region: Region,
        headline: Metric,
    ) -> Self {
        let points: BTreeSet<(String, u64)> = records
            .iter()
            .flat_map(|r| &r.evals)
            .filter(|e| region.holds(e))
            .map(|e| (e.split.clone(), e.len))
            .collect();
        let mut contest = Self {
            region,
            metric: headline,
            fallback: None,
            standings: standings(records, display, region, headline, points.len()),
            points: points.into_iter().collect(),
        };
        // Whole answers of long sequences can be wrong for all: the tokens may still tell.
        if headline == Metric::ExactMatch
            && let Some(value) = contest.common_value()
        {
            let by_token = Self {
                metric: Metric::TokenAccuracy,
                fallback: Some(value),
                standings: standings(
                    records,
                    display,
                    region,
                    Metric::TokenAccuracy,
                    contest.points.len(),
                ),
                ..contest.clone()
            };
            if by_token.ranking().len() > 1 && by_token.common_value().is_none() {
                contest = by_token;
            }
        }
        contest
    }

    /// The ranked encodings, best first.
    pub fn ranking(&self) -> Vec<&Standing> {
        ranking(&self.standings, self.metric)
    }

    /// The value that two or more ranked encodings all share.
    pub fn common_value(&self) -> Option<f64> {
        let ranking = self.ranking();
        let first = ranking.first()?.mean();
        (ranking.len() > 1 && ranking.iter().all(|s| equal(s.mean(), first))).then_some(first)
    }
}

fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs()).max(1.0)
}

fn ranking(standings: &[Standing], metric: Metric) -> Vec<&Standing> {
    let mut ranked: Vec<&Standing> =
        standings.iter().filter(|s| s.rank != Rank::Unranked).collect();
    ranked.sort_by(|a, b| {
        let order = a.mean().total_cmp(&b.mean());
        if metric.higher_is_better() { order.reverse() } else { order }
    });
    ranked
}

fn standings(
    records: &[&RunRecord],
    display: &BTreeMap<String, String>,
    region: Region,
    metric: Metric,
    points: usize,
) -> Vec<Standing> {
    let mut by_encoding: BTreeMap<&str, Vec<&RunRecord>> = BTreeMap::new();
    for record in records {
        by_encoding.entry(&record.encoding.name).or_default().push(record);
    }
    let mut standings: Vec<Standing> = by_encoding
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
            Standing {
                encoding: encoding.to_owned(),
                display: display.get(encoding).map_or(encoding, String::as_str).to_owned(),
                estimate,
                per_seed,
                evaluated,
                rank: if complete { Rank::Behind(None) } else { Rank::Unranked },
            }
        })
        .collect();
    let Some((top, best)) =
        ranking(&standings, metric).first().map(|best| (best.mean(), best.per_seed.clone()))
    else {
        return standings;
    };
    for standing in &mut standings {
        if standing.rank == Rank::Unranked {
            continue;
        }
        standing.rank = if equal(standing.mean(), top) {
            Rank::Best
        } else if metric.higher_is_better() {
            Rank::Behind(paired_difference(&best, &standing.per_seed))
        } else {
            Rank::Behind(paired_difference(&standing.per_seed, &best))
        };
    }
    standings
}

#[cfg(test)]
mod tests;

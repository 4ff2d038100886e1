//! Test for significant losses of quality.

use std::collections::BTreeMap;

use super::matching::MatchedCell;
use super::verdict::{NightlyVerdict, QualityChange, Scope};
use crate::contrast::{Contrast, ContrastSide, judge as judge_contrasts};
use crate::evaluated::{SeedRun, mean_chance};
use records::settings::Region;
use records::{EvalPoint, Metric};
use stats::{Better, LEAST_SEEDS};

/// Smallest loss of a share (exact match, token accuracy) that fails; 0.01 is one percentage point.
const LEAST_SHARE: f64 = 0.01;

/// Smallest increase of the nll that fails, in nats per scored token.
const LEAST_NATS: f64 = 0.01;

struct CandidateChange {
    /// The change without the result of its test.
    change: QualityChange,
    metric: Metric,
    /// This night and the baseline.
    contrast: Contrast,
}

/// Adds losses, gains and warnings of the cells whose numbers changed to the verdict.
pub(super) fn judge(changed: &[&MatchedCell<'_>], verdict: &mut NightlyVerdict) {
    let mut by_encoding: BTreeMap<&str, Vec<&MatchedCell<'_>>> = BTreeMap::new();
    let mut by_workload: BTreeMap<(&str, &str), Vec<&MatchedCell<'_>>> = BTreeMap::new();
    for pair in changed {
        let (encoding, workload) = (&*pair.night.encoding.name, &*pair.night.workload);
        by_encoding.entry(encoding).or_default().push(pair);
        by_workload.entry((encoding, workload)).or_default().push(pair);
    }
    let mut candidates = Vec::new();
    for (encoding, pairs) in &by_encoding {
        let scope = || Scope::Encoding { encoding: (*encoding).to_owned() };
        let asked = [
            ("in distribution", true, Metric::Perplexity),
            ("beyond training", false, Metric::TokenAccuracy),
        ];
        for (region, inside, metric) in asked {
            let found = candidate(scope(), region, inside, metric, pairs);
            match found {
                Ok(found) => candidates.extend(found),
                Err(broken) => verdict.losses.push(*broken),
            }
        }
    }
    for ((encoding, workload), pairs) in &by_workload {
        let seeds = pairs.len();
        if seeds < LEAST_SEEDS as usize {
            continue;
        }
        let headline = Metric::from_headline(&pairs[0].night.task.headline);
        for (region, inside) in [("in distribution", true), ("beyond training", false)] {
            let scope = Scope::Workload {
                encoding: (*encoding).to_owned(),
                workload: (*workload).to_owned(),
            };
            let metric = headline.unwrap_or(Metric::ExactMatch);
            // Values that are not finite are reported by the comparison of the encoding.
            if let Ok(Some(found)) = candidate(scope, region, inside, metric, pairs) {
                candidates.push(found);
            }
        }
    }
    let family: Vec<Contrast> = candidates.iter().map(|candidate| candidate.contrast).collect();
    for (candidate, comparison) in candidates.into_iter().zip(judge_contrasts(&family, 0)) {
        let gain = comparison.paired.mean_difference;
        let least = if candidate.metric.higher_is_better() { LEAST_SHARE } else { LEAST_NATS };
        let change = QualityChange { gain, p_holm: comparison.p_holm, ..candidate.change };
        match comparison.better() {
            Better::A => verdict.gains.push(change),
            Better::B if -gain >= least => verdict.losses.push(change),
            _ => verdict.not_separable.push(change),
        }
    }
    let untested = verdict.not_separable.iter().filter(|change| change.p_holm.is_none());
    let warnings = untested.map(|change| format!("too few cells changed for a test: {change}"));
    verdict.warnings.extend(warnings);
}

/// Compares pairs of cells in one region; `None` if the region was not evaluated.
///
/// Returns a loss as the error if numbers that were finite in the baseline are not finite any more.
fn candidate(
    scope: Scope,
    region: &'static str,
    inside: bool,
    metric: Metric,
    pairs: &[&MatchedCell<'_>],
) -> Result<Option<CandidateChange>, Box<QualityChange>> {
    let get = |eval: &EvalPoint| metric.of(eval);
    let means: Vec<[f64; 2]> = pairs.iter().filter_map(|pair| pair.means(inside, get)).collect();
    // A baseline that was not finite cannot get worse.
    let means: Vec<[f64; 2]> = means.into_iter().filter(|[before, _]| before.is_finite()).collect();
    let count = means.len() as f64;
    if means.is_empty() {
        return Ok(None);
    }
    let [before, after] =
        [0, 1].map(|side| means.iter().map(|mean| mean[side]).sum::<f64>() / count);
    let side = |side: usize| -> Vec<(u64, f64)> {
        (0..).zip(means.iter().map(|mean| mean[side])).collect()
    };
    let (earlier, now) = (side(0), side(1));
    // A change below chance is neither a loss nor a gain.
    let chance = chance(pairs, inside).filter(|_| metric == Metric::ExactMatch);
    let above = |mean: f64| chance.map(|chance| mean > chance);
    let earlier = ContrastSide { by_seed: &earlier, above_chance: above(before) };
    let now = ContrastSide { by_seed: &now, above_chance: above(after) };
    let change = QualityChange {
        scope,
        region,
        metric: metric.scale_name(),
        before,
        after,
        gain: f64::NEG_INFINITY,
        p_holm: None,
        n: means.len() as u32,
    };
    match Contrast::of(metric, &now, &earlier, None) {
        Some(contrast) => Ok(Some(CandidateChange { change, metric, contrast })),
        None => Err(Box::new(change)),
    }
}

/// Returns the mean chance over the evaluations of a region; `None` if it is unknown for one.
fn chance(pairs: &[&MatchedCell<'_>], inside: bool) -> Option<f64> {
    let runs: Vec<SeedRun> = pairs.iter().map(|pair| SeedRun::of(pair.night)).collect();
    let evals = runs.iter().flat_map(|run| &run.evals);
    mean_chance(evals.filter(|e| (e.region == Region::Inside) == inside))
}

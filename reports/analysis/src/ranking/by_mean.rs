//! Encodings by their mean over several workloads.

use std::collections::BTreeMap;

use super::{EncodingResult, FAR, Ranking, separable};
use crate::contrast::{Contrast, ContrastSide, judge};

/// Result of an encoding over several workloads.
#[derive(Debug, Clone, PartialEq)]
pub struct MeanResult {
    /// Name of the encoding.
    pub encoding: String,
    /// Mean over the workloads, on the scale of the metric.
    pub mean: f64,
    /// Whether it is the best, or at most [`FAR`] behind the best and not separable from it. Comparisons are paired by seed,
    /// with Holm's correction over all pairs.
    pub is_first: bool,
}

/// Returns the encodings that all of these rankings rank, the best first. The rankings must have one metric.
pub fn by_mean(rankings: &[&Ranking]) -> Vec<MeanResult> {
    let Some(metric) = rankings.first().map(|ranking| ranking.metric) else { return Vec::new() };
    let count = rankings.len() as f64;
    let of = |encoding: &str| {
        let all = rankings
            .iter()
            .map(|ranking| ranking.ranked().into_iter().find(|result| result.encoding == encoding))
            .collect::<Option<Vec<&EncodingResult>>>()?;
        let mut sums: BTreeMap<u64, (f64, usize)> = BTreeMap::new();
        for (seed, value) in all.iter().flat_map(|result| &result.per_seed) {
            let (sum, workloads) = sums.entry(*seed).or_default();
            *sum += value;
            *workloads += 1;
        }
        let complete = sums.into_iter().filter(|(_, (_, workloads))| *workloads == rankings.len());
        let by_seed: Vec<(u64, f64)> =
            complete.map(|(seed, (sum, _))| (seed, sum / count)).collect();
        let mean = all.iter().map(|result| result.mean()).sum::<f64>() / count;
        Some((MeanResult { encoding: encoding.to_owned(), mean, is_first: false }, by_seed))
    };
    let names = rankings[0].results.iter().map(|result| &*result.encoding);
    let mut found: Vec<_> = names.filter_map(of).collect();
    found.sort_by(|(a, _), (b, _)| {
        let order = a.mean.total_cmp(&b.mean);
        if metric.higher_is_better() { order.reverse() } else { order }
    });
    let mut family = Vec::new();
    for (place, (_, better)) in found.iter().enumerate() {
        for (behind, (_, worse)) in found.iter().enumerate().skip(place + 1) {
            let [a, b] =
                [better, worse].map(|by_seed| ContrastSide { by_seed, above_chance: None });
            let contrast = Contrast::of(metric, &a, &b, None);
            family.extend(contrast.map(|contrast| (place, behind, contrast)));
        }
    }
    let contrasts: Vec<Contrast> = family.iter().map(|(.., contrast)| *contrast).collect();
    let judged = family.iter().zip(judge(&contrasts, 0));
    let separated: Vec<usize> = judged
        .filter(|((place, ..), comparison)| *place == 0 && separable(Some(comparison)))
        .map(|((_, behind, _), _)| *behind)
        .collect();
    let best = found.first().map_or(f64::NAN, |(best, _)| best.mean);
    let ordered = found.into_iter().enumerate().map(|(place, (own, _))| {
        let is_first = (own.mean - best).abs() <= FAR && !separated.contains(&place);
        MeanResult { is_first, ..own }
    });
    ordered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Report, ReportMeta};
    use records::testkit::TestCell;

    #[test]
    fn the_best_by_mean_and_those_that_seeds_cannot_separate_from_it_are_first() {
        let mut records = Vec::new();
        for seed in 0..8_u64 {
            let noise = 0.002 * seed as f64;
            let values = [
                ("cope", 0.90 + noise, 0.80 - noise),
                // Behind by 2 points in every seed.
                ("rope", 0.88 + noise, 0.78 - noise),
                // Behind by 2 points in the mean, with other seeds ahead.
                ("alibi", if seed % 2 == 0 { 0.98 } else { 0.794 }, 0.793),
                ("nope", 0.60 + noise, 0.80 - noise),
            ];
            for (encoding, v, w) in values {
                records.push(TestCell::new("v", encoding, seed).beyond(v).record());
                records.push(TestCell::new("w", encoding, seed).beyond(w).record());
            }
        }
        let report = Report::new(records, &ReportMeta::default()).unwrap();
        let rankings: Vec<&Ranking> =
            report.workloads.iter().map(|workload| workload.deciding().unwrap()).collect();
        let found = by_mean(&rankings);
        let names = |is_first: bool| -> Vec<&str> {
            let own = found.iter().filter(|own| own.is_first == is_first);
            own.map(|own| &*own.encoding).collect()
        };
        assert_eq!((names(true), names(false)), (vec!["cope", "alibi"], vec!["rope", "nope"]));
        assert!((found[0].mean - 0.85).abs() < 1e-12, "{found:?}");
        assert_eq!(by_mean(&[]), []);
    }
}

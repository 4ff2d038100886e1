//! Comparison of two encodings on one workload: values, families, decisions.

use std::collections::{BTreeMap, BTreeSet};

use super::comparison::{
    Better, Compared, Difference, EvaluationPoint, PairwiseComparison, RegionEvaluations, Slice,
};
use super::matching::PairedRuns;
use crate::record::Metric;
use crate::record::{EvalPoint, RunRecord, SliceUnit, Slices};
use crate::stats::{Comparison, Paired, SeedSpread, decide, paired};

/// Relative difference below which values are equal.
const ROUNDING: f64 = 1e-9;

/// A candidate for a comparison: place, metric, and values of both encodings by seed.
struct CandidateComparison<P> {
    place: P,
    metric: Metric,
    a: Vec<(u64, f64)>,
    b: Vec<(u64, f64)>,
}

pub(super) fn pairwise(pair: &PairedRuns<'_>) -> PairwiseComparison {
    let seeds = pair.common();
    let sides = [&pair.a, &pair.b];
    let [only_a, only_b] =
        sides.map(|side| side.keys().filter(|s| !seeds.contains(s)).copied().collect());
    let both = Both {
        a: seeds.iter().map(|seed| pair.a[seed]).collect(),
        b: seeds.iter().map(|seed| pair.b[seed]).collect(),
    };
    let record = both.a[0];
    let headline = Metric::from_headline(&record.task.headline).unwrap_or(Metric::ExactMatch);
    let (points, lacking) = both.points();
    let (mut regions, mut lines, mut slices) = (Vec::new(), Vec::new(), Vec::new());
    let mut notes = pair.notes.clone();
    if !lacking.is_empty() {
        notes.push(format!("Not every seed of both has {}; left out.", lacking.join(", ")));
    }
    for (name, inside) in [("in distribution", true), ("beyond training", false)] {
        let points: Vec<&EvaluationPoint> =
            points.iter().filter(|p| p.in_distribution == inside).collect();
        if points.is_empty() {
            continue;
        }
        let place = || RegionEvaluations { region: name, evaluations: points.len() };
        let mut region = both.mean(place(), &points, headline);
        if headline == Metric::ExactMatch && region.is_level() {
            let value = Metric::ExactMatch.show(region.a[0].1);
            notes.push(format!(
                "{name}: exact match is {value} in every seed of both, so token accuracy is shown."
            ));
            region = both.mean(place(), &points, Metric::TokenAccuracy);
        }
        let metric = region.metric;
        regions.extend(decided(vec![region], record.task.chance));
        let each = points.iter().map(|p| both.mean((*p).clone(), &[*p], metric)).collect();
        lines.extend(decided(each, record.task.chance));
    }
    let mut properties: BTreeMap<(SliceUnit, String), Vec<CandidateComparison<Slice>>> =
        BTreeMap::new();
    for point in &points {
        for candidate in both.slices(point, headline) {
            let id = (candidate.place.unit, candidate.place.property.clone());
            properties.entry(id).or_default().push(candidate);
        }
    }
    // Chance at a slice is not known.
    slices.extend(properties.into_values().flat_map(|family| decided(family, None)));
    let mut keys: Vec<String> = both.a.iter().chain(&both.b).map(|r| r.key.clone()).collect();
    keys.sort();
    PairwiseComparison {
        suite: record.suite.clone(),
        workload: record.workload.clone(),
        task: record.task.id.clone(),
        len_unit: record.task.len_unit.clone(),
        seeds,
        only_a,
        only_b,
        regions,
        points: lines,
        slices,
        keys,
        notes,
    }
}

/// Records of both encodings, with the same seeds in the same order.
struct Both<'a> {
    a: Vec<&'a RunRecord>,
    b: Vec<&'a RunRecord>,
}

fn at<'a>(record: &'a RunRecord, point: &EvaluationPoint) -> Option<&'a EvalPoint> {
    record.evals.iter().find(|e| e.split == point.split && e.len == point.len)
}

impl Both<'_> {
    /// Evaluations that every seed of both encodings has, and names of those that some lack.
    fn points(&self) -> (Vec<EvaluationPoint>, Vec<String>) {
        let all: BTreeSet<EvaluationPoint> = self
            .records()
            .flat_map(|r| &r.evals)
            .map(|e| EvaluationPoint {
                split: e.split.clone(),
                len: e.len,
                in_distribution: e.in_distribution,
            })
            .collect();
        let everywhere = |point: &EvaluationPoint| self.records().all(|r| at(r, point).is_some());
        let (points, lacking): (Vec<EvaluationPoint>, Vec<EvaluationPoint>) =
            all.into_iter().partition(everywhere);
        let name = |point: EvaluationPoint| format!("{} at length {}", point.split, point.len);
        (points, lacking.into_iter().map(name).collect())
    }

    fn records(&self) -> impl Iterator<Item = &RunRecord> {
        self.a.iter().chain(&self.b).copied()
    }

    /// Candidate for the mean over evaluations.
    fn mean<P>(
        &self,
        place: P,
        points: &[&EvaluationPoint],
        metric: Metric,
    ) -> CandidateComparison<P> {
        let of = |records: &[&RunRecord]| {
            let value = |record: &RunRecord| {
                let values = points.iter().filter_map(|point| at(record, point));
                values.map(|e| metric.of(e)).sum::<f64>() / points.len() as f64
            };
            records.iter().map(|record| (record.seed, value(record))).collect()
        };
        CandidateComparison { place, metric, a: of(&self.a), b: of(&self.b) }
    }

    /// Candidates for the slices of an evaluation that every seed of both encodings has.
    fn slices(&self, point: &EvaluationPoint, headline: Metric) -> Vec<CandidateComparison<Slice>> {
        let Some(first) = at(self.a[0], point) else { return Vec::new() };
        let mut found = Vec::new();
        for slices in &first.slices {
            let metric = match (headline, slices.unit) {
                (Metric::Perplexity, _) => Metric::Perplexity,
                (_, SliceUnit::Samples) => Metric::ExactMatch,
                (_, SliceUnit::Tokens) => Metric::TokenAccuracy,
            };
            for (value, count) in slices.values.iter().zip(&slices.counts) {
                let of = |records: &[&RunRecord]| -> Option<Vec<(u64, f64)>> {
                    let one = |record: &&RunRecord| {
                        let same = |s: &&Slices| s.name == slices.name && s.unit == slices.unit;
                        let own = at(record, point)?.slices.iter().find(same)?;
                        let index = own.values.iter().position(|v| v == value)?;
                        let column =
                            if metric == Metric::Perplexity { &own.nll } else { &own.accuracy };
                        Some((record.seed, *column.get(index)?))
                    };
                    records.iter().map(one).collect()
                };
                let (Some(a), Some(b)) = (of(&self.a), of(&self.b)) else { continue };
                let place = Slice {
                    point: point.clone(),
                    property: slices.name.clone(),
                    unit: slices.unit,
                    value: *value,
                    count: *count,
                };
                found.push(CandidateComparison { place, metric, a, b });
            }
        }
        found
    }
}

impl<P> CandidateComparison<P> {
    /// Reports whether all seeds of both encodings have the same value.
    fn is_level(&self) -> bool {
        let first = self.a[0].1;
        self.a.iter().chain(&self.b).all(|(_, value)| equal(*value, first))
    }

    fn jumps(&self, chance: Option<f64>) -> bool {
        let Some(jump) = self.metric.bimodal_gap(chance) else { return false };
        [&self.a, &self.b].into_iter().any(|side| {
            let values = || side.iter().map(|(_, value)| *value);
            values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min) >= jump
        })
    }
}

fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

/// Tests candidates as one family. Candidates with values that are not finite are left out.
fn decided<P>(candidates: Vec<CandidateComparison<P>>, chance: Option<f64>) -> Vec<Compared<P>> {
    let jumps = candidates.iter().any(|candidate| candidate.jumps(chance));
    let scatter = if jumps { SeedSpread::Bimodal } else { SeedSpread::Unimodal };
    let (kept, family): (Vec<CandidateComparison<P>>, Vec<Paired>) = candidates
        .into_iter()
        .filter_map(|candidate| {
            let paired = paired(&candidate.a, &candidate.b)?;
            Some((candidate, paired))
        })
        .unzip();
    let comparisons = decide(&family, scatter);
    let line = |(candidate, comparison): (CandidateComparison<P>, Comparison)| {
        let difference = difference(&candidate, &comparison);
        Compared { place: candidate.place, difference }
    };
    kept.into_iter().zip(comparisons).map(line).collect()
}

fn difference<P>(candidate: &CandidateComparison<P>, comparison: &Comparison) -> Difference {
    let CandidateComparison { metric, a, b, .. } = candidate;
    let higher = metric.higher_is_better();
    let mean = |side: &[(u64, f64)]| side.iter().map(|(_, x)| x).sum::<f64>() / side.len() as f64;
    let (mut won, mut lost, mut tied) = (0, 0, 0);
    for ((_, a), (_, b)) in a.iter().zip(b) {
        let count = match (equal(*a, *b), (a > b) == higher) {
            (true, _) => &mut tied,
            (false, true) => &mut won,
            (false, false) => &mut lost,
        };
        *count += 1;
    }
    let paired = &comparison.paired;
    Difference {
        metric: if *metric == Metric::Perplexity { "nll" } else { metric.name() },
        mean_a: mean(a),
        mean_b: mean(b),
        difference: paired.mean_difference,
        ci95: paired.ci95,
        p: comparison.p,
        p_holm: comparison.p_holm,
        family: comparison.family,
        test: comparison.test.name(),
        effect: paired.effect,
        n: paired.n,
        won,
        lost,
        tied,
        better: match (comparison.separable, (paired.mean_difference > 0.0) == higher) {
            (false, _) => Better::NotSeparable,
            (true, true) => Better::A,
            (true, false) => Better::B,
        },
    }
}

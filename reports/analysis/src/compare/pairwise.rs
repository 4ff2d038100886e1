//! Comparison of two encodings on one workload: values, families of tests, verdicts.

use std::collections::{BTreeMap, BTreeSet};

use super::comparison::{
    Compared, Difference, EvaluationPoint, PairwiseComparison, RegionEvaluations, Slice,
};
use super::matching::PairedRuns;
use crate::answers::AnswerTable;
use crate::contrast::{Contrast, ContrastSide, judge, on_scale};
use crate::evaluated::{Evaluated, SeedRun, mean_chance};
use records::settings::Region;
use records::{Metric, RunRecord, SliceUnit, Slices};
use stats::{Comparison, Estimate, QuestionError, hedges_g_interval, seeds_needed};

/// Relative difference up to which two values are equal.
const ROUNDING: f64 = 1e-9;

/// A candidate for a comparison: place, metric, and values of both encodings by seed.
struct CandidateComparison<P> {
    place: P,
    metric: Metric,
    a: Vec<(u64, f64)>,
    b: Vec<(u64, f64)>,
    /// Error of the difference, and of each side, due to the questions; `None` if the answers are not known.
    questions: Option<[QuestionError; 3]>,
    /// Exact match of guessing; `None` for other metrics, or where it is not known.
    chance: Option<f64>,
}

pub(super) fn pairwise(pair: &PairedRuns<'_>) -> PairwiseComparison {
    let seeds = pair.common();
    let sides = [&pair.a, &pair.b];
    let [only_a, only_b] =
        sides.map(|side| side.keys().filter(|s| !seeds.contains(s)).copied().collect());
    let records = sides.map(|side| seeds.iter().map(|seed| side[seed]).collect::<Vec<_>>());
    let record = records[0][0];
    let runs = records.each_ref().map(|side| side.iter().map(|r| SeedRun::of(r)).collect());
    let both = Both { records, runs };
    let headline = Metric::from_headline(&record.task.headline).unwrap_or(Metric::ExactMatch);
    let (points, lacking) = both.points();
    let (mut regions, mut lines, mut slices) = (Vec::new(), Vec::new(), Vec::new());
    let mut notes = pair.notes.clone();
    if !lacking.is_empty() {
        notes.push(format!(
            "Some seeds of the two encodings lack {}. These evaluations are left out.",
            lacking.join(", ")
        ));
    }
    for kind in Region::ALL {
        let points: Vec<&EvaluationPoint> = points.iter().filter(|p| p.region == kind).collect();
        if points.is_empty() {
            continue;
        }
        let name = kind.name();
        let place = || RegionEvaluations { region: name, evaluations: points.len() };
        let mut region = both.mean(place(), &points, headline);
        if headline == Metric::ExactMatch && region.is_level() {
            let value = Metric::ExactMatch.show(region.a[0].1);
            notes.push(format!(
                "{name}: exact match is {value} for every seed of both encodings, so token accuracy is shown \
                 instead."
            ));
            region = both.mean(place(), &points, Metric::TokenAccuracy);
        }
        let metric = region.metric;
        regions.extend(decided(vec![region]));
        let each = points.iter().map(|p| both.mean((*p).clone(), &[*p], metric)).collect();
        lines.extend(decided(each));
    }
    let mut properties: BTreeMap<(SliceUnit, String), Vec<CandidateComparison<Slice>>> =
        BTreeMap::new();
    for point in &points {
        for candidate in both.slices(point, headline) {
            let id = (candidate.place.unit, candidate.place.property.clone());
            properties.entry(id).or_default().push(candidate);
        }
    }
    slices.extend(properties.into_values().flat_map(decided));
    let mut keys: Vec<String> = both.records.iter().flatten().map(|r| r.key.clone()).collect();
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

/// Records of both encodings and their evaluations, with the same seeds in the same order.
struct Both<'a> {
    records: [Vec<&'a RunRecord>; 2],
    runs: [Vec<SeedRun>; 2],
}

fn at<'a>(run: &'a SeedRun, point: &EvaluationPoint) -> Option<&'a Evaluated> {
    run.evals.iter().find(|e| e.split == point.split && e.len == point.len)
}

impl Both<'_> {
    /// Returns the evaluations that every seed of both encodings has, and the names of those that some seed lacks.
    fn points(&self) -> (Vec<EvaluationPoint>, Vec<String>) {
        let runs = || self.runs.iter().flatten();
        let point = |e: &Evaluated| EvaluationPoint {
            split: e.split.clone(),
            len: e.len,
            in_distribution: e.in_distribution,
            region: e.region,
        };
        let all: BTreeSet<EvaluationPoint> = runs().flat_map(|run| &run.evals).map(point).collect();
        let everywhere = |point: &EvaluationPoint| runs().all(|run| at(run, point).is_some());
        let (points, lacking): (Vec<EvaluationPoint>, Vec<EvaluationPoint>) =
            all.into_iter().partition(everywhere);
        let name = |point: EvaluationPoint| format!("{} at length {}", point.split, point.len);
        (points, lacking.into_iter().map(name).collect())
    }

    /// Returns the comparison candidate for the mean over `evaluations`.
    fn mean<P>(
        &self,
        place: P,
        points: &[&EvaluationPoint],
        metric: Metric,
    ) -> CandidateComparison<P> {
        let asked = self.runs.each_ref().map(|runs| -> Vec<(u64, Vec<&Evaluated>)> {
            let evals = runs.iter().map(|run| points.iter().filter_map(|p| at(run, p)).collect());
            runs.iter().map(|run| run.seed).zip(evals).collect()
        });
        let mean = |evals: &[&Evaluated]| {
            evals.iter().map(|e| e.value(metric)).sum::<f64>() / points.len() as f64
        };
        let [a, b] = asked
            .each_ref()
            .map(|side| side.iter().map(|(seed, evals)| (*seed, mean(evals))).collect());
        let [of_a, of_b] = asked.each_ref().map(|side| AnswerTable::of(side, metric));
        let questions = of_a
            .zip(of_b)
            .and_then(|(a, b)| Some([a.error_of_difference(&b)?, a.error()?, b.error()?]));
        let first = asked[0][0].1.iter().copied();
        let chance = mean_chance(first).filter(|_| metric == Metric::ExactMatch);
        CandidateComparison { place, metric, a, b, questions, chance }
    }

    /// Returns the comparison candidates for the slices of an evaluation that every seed of both encodings has.
    fn slices(&self, point: &EvaluationPoint, headline: Metric) -> Vec<CandidateComparison<Slice>> {
        let first = self.records[0][0].eval(&point.split, point.len);
        let Some(first) = first else { return Vec::new() };
        let mut found = Vec::new();
        for slices in &first.slices {
            let metric = headline.of_slices(slices.unit);
            for (value, count) in slices.values.iter().zip(&slices.counts) {
                let of = |records: &[&RunRecord]| -> Option<Vec<(u64, f64)>> {
                    let one = |record: &&RunRecord| {
                        let same = |s: &&Slices| s.name == slices.name && s.unit == slices.unit;
                        let eval = record.eval(&point.split, point.len)?;
                        let own = eval.slices.iter().find(same)?;
                        let index = own.values.iter().position(|v| v == value)?;
                        let column =
                            if metric == Metric::Perplexity { &own.nll } else { &own.accuracy };
                        Some((record.seed, *column.get(index)?))
                    };
                    records.iter().map(one).collect()
                };
                let [Some(a), Some(b)] = self.records.each_ref().map(|side| of(side)) else {
                    continue;
                };
                let place = Slice {
                    point: point.clone(),
                    property: slices.name.clone(),
                    unit: slices.unit,
                    value: *value,
                    count: *count,
                };
                // Neither answers nor chance are kept by slice.
                found.push(CandidateComparison {
                    place,
                    metric,
                    a,
                    b,
                    questions: None,
                    chance: None,
                });
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

    /// Returns the two sides, paired by seed; `None` with values that are not finite.
    fn contrast(&self) -> Option<Contrast> {
        // Above chance: the interval of the mean, or the mean if there is no interval.
        let side = |by_seed: &'_ [(u64, f64)], error: Option<QuestionError>| {
            let values: Vec<f64> = by_seed.iter().map(|(_, value)| *value).collect();
            let estimate = Estimate::of(&values).map(|e| e.with_questions(error));
            let low = estimate.map(|e| e.ci95.map_or(e.mean, |(low, _)| low));
            self.chance.map(|chance| low.is_some_and(|low| low > chance))
        };
        let error = |index: usize| self.questions.map(|errors| errors[index]);
        let a = ContrastSide { by_seed: &self.a, above_chance: side(&self.a, error(1)) };
        let b = ContrastSide { by_seed: &self.b, above_chance: side(&self.b, error(2)) };
        Contrast::of(self.metric, &a, &b, error(0))
    }
}

fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

/// Tests candidates as one family. Candidates with values that are not finite are dropped.
fn decided<P>(candidates: Vec<CandidateComparison<P>>) -> Vec<Compared<P>> {
    let with_contrast = |candidate: CandidateComparison<P>| {
        let contrast = candidate.contrast()?;
        Some((candidate, contrast))
    };
    let (candidates, family): (Vec<CandidateComparison<P>>, Vec<Contrast>) =
        candidates.into_iter().filter_map(with_contrast).unzip();
    let comparisons = judge(&family, 0);
    let line = |(candidate, comparison): (CandidateComparison<P>, Comparison)| {
        let difference = difference(&candidate, &comparison);
        Compared { place: candidate.place, difference }
    };
    candidates.into_iter().zip(comparisons).map(line).collect()
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
    let paired = on_scale(*metric, comparison).paired;
    Difference {
        metric: metric.scale_name(),
        mean_a: mean(a),
        mean_b: mean(b),
        difference: paired.mean_difference,
        ci95: paired.ci95,
        p: comparison.p,
        p_holm: comparison.p_holm,
        family: comparison.family,
        test: comparison.test.name(),
        effect: paired.effect,
        effect_ci95: paired.effect.and_then(|g| hedges_g_interval(g, paired.n)),
        chance: candidate.chance,
        question_error: paired.question_error,
        seeds_needed: Some(seeds_needed(comparison.family)).filter(|needed| paired.n < *needed),
        n: paired.n,
        won,
        lost,
        tied,
        better: comparison.better(),
    }
}

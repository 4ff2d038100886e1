//! Ranks and comparisons as tables for other programs.

use polars::prelude::*;
use rayon::prelude::*;

use super::evaluations::estimate_columns;
use analysis::frame::frame;
use analysis::ranking::{EncodingResult, Rank, RankedPair, Ranking};
use analysis::run_metrics::RunMetrics;
use analysis::{Report, Workload};
use stats::{Comparison, hedges_g_interval};

fn rankings(report: &Report) -> impl Iterator<Item = (&Workload, &Ranking)> {
    report.workloads.iter().flat_map(|w| w.rankings.iter().map(move |ranking| (w, ranking)))
}

fn comparison_columns(found: &[Option<Comparison>]) -> Vec<Column> {
    let effect_interval = |comparison: &Option<Comparison>| {
        let paired = &comparison.as_ref()?.paired;
        hedges_g_interval(paired.effect?, paired.n)
    };
    let effects: Vec<Option<(f64, f64)>> = found.par_iter().map(effect_interval).collect();
    let end = |name: &str, end: fn((f64, f64)) -> f64| {
        Column::new(name.into(), effects.iter().map(|ends| ends.map(end)).collect::<Vec<_>>())
    };
    macro_rules! column {
        ($name:literal, $f:expr) => {
            Column::new($name.into(), found.iter().map(|c| c.and_then($f)).collect::<Vec<_>>())
        };
    }
    vec![
        column!("seeds_compared", |c| Some(c.paired.n)),
        column!("difference", |c| Some(c.paired.mean_difference)),
        column!("difference_ci_low", |c| c.paired.ci95.map(|(low, _)| low)),
        column!("difference_ci_high", |c| c.paired.ci95.map(|(_, high)| high)),
        column!("difference_question_error", |c| c.paired.question_error),
        column!("hedges_g", |c| c.paired.effect),
        end("hedges_g_ci_low", |(low, _)| low),
        end("hedges_g_ci_high", |(_, high)| high),
        column!("p_t", |c| c.paired.p_t),
        column!("p_permutation", |c| Some(c.paired.p_sign_flip)),
        column!("test", |c| Some(c.test.name())),
        column!("p", |c| c.p),
        column!("comparisons", |c| Some(c.family)),
        column!("p_holm", |c| c.p_holm),
        column!("separable", |c| Some(c.separable)),
    ]
}

/// Returns a table with one row for each workload, region and encoding. Each encoding is compared with the best one,
/// so that a positive difference is its distance from the best.
pub(super) fn ranks(report: &Report) -> PolarsResult<DataFrame> {
    let rows: Vec<(&Workload, &Ranking, &EncodingResult, Option<&RunMetrics>)> = rankings(report)
        .flat_map(|(workload, ranking)| ranking.results.iter().map(move |s| (workload, ranking, s)))
        .map(|(workload, ranking, s)| {
            let metrics = workload.run_metrics.iter().find(|o| o.encoding == s.encoding);
            (workload, ranking, s, metrics)
        })
        .collect();
    macro_rules! column {
        ($f:expr) => {
            rows.iter().map($f).collect::<Vec<_>>()
        };
    }
    let frame = frame!(rows;
        "workload": |(w, ..)| w.name.as_str(),
        "region": |(_, c, ..)| c.region.id(),
        "scale": |(_, c, ..)| c.metric.column(),
        "encoding": |(_, _, s, _)| s.encoding.as_str(),
        "rank": |(_, _, s, _)| s.group,
        "best": |(_, _, s, _)| s.rank == Rank::Best,
        "seeds_needed": |(_, c, ..)| c.seeds_needed,
        "chance": |(_, c, ..)| c.chance,
        "above_chance": |(_, _, s, _)| s.above_chance,
        "n": |(_, _, s, _)| s.estimate.map_or(0, |e| e.n),
    )?;
    let mut columns = estimate_columns("value", &column!(|(_, _, s, _)| s.estimate));
    columns.extend(comparison_columns(&column!(|(_, _, s, _)| match s.rank {
        Rank::Behind(comparison) => comparison,
        Rank::Best | Rank::TooFewSeeds | Rank::Unranked => None,
    })));
    let run_metrics = frame!(rows;
        "solved_seeds": |(.., o)| o.map(|o| o.solved),
        "trained_seeds": |(.., o)| o.map(|o| o.run),
        "fit_rate": |(.., o)| o.and_then(RunMetrics::fit_rate),
        "solve_steps": |(.., o)| o.and_then(|o| o.solve_steps).map(|m| m.median),
        "solve_seconds": |(.., o)| o.and_then(|o| o.solve_seconds).map(|m| m.median),
        "effective_len": |(.., o)| o.and_then(|o| o.effective).map(|m| m.median),
        "effective_at_least": |(.., o)| o.map(|o| o.effective_at_least),
        "effective_ratio": |(.., o)| o.and_then(|o| o.effective_ratio),
    )?;
    frame.hstack(&columns)?.hstack(run_metrics.columns())
}

/// Returns a table with one row for each pair of ranked encodings.
pub(super) fn pairs(report: &Report) -> PolarsResult<DataFrame> {
    let rows: Vec<(&Workload, &Ranking, &RankedPair)> = rankings(report)
        .flat_map(|(workload, ranking)| ranking.pairs.iter().map(move |p| (workload, ranking, p)))
        .collect();
    let comparisons: Vec<_> = rows.iter().map(|(.., p)| Some(p.comparison)).collect();
    let frame = frame!(rows;
        "workload": |(w, ..)| w.name.as_str(),
        "region": |(_, c, _)| c.region.id(),
        "scale": |(_, c, _)| c.metric.column(),
        "better": |(.., p)| p.better.as_str(),
        "worse": |(.., p)| p.worse.as_str(),
    )?;
    frame.hstack(&comparison_columns(&comparisons))
}

/// Returns a table with one row for each pair of encodings that all workloads rank: the probability of improvement.
pub(super) fn improvements(report: &Report) -> PolarsResult<DataFrame> {
    let pairs = report.overall.as_ref().map_or(&[][..], |overall| &overall.improvements);
    frame!(pairs;
        "better": |p| p.better.as_str(),
        "worse": |p| p.worse.as_str(),
        "probability": |p| p.probability.value,
        "ci_low": |p| p.probability.ci95.map(|(low, _)| low),
        "ci_high": |p| p.probability.ci95.map(|(_, high)| high),
    )
}

//! Figures over all tasks besides the aggregate: the heat map, small charts by length, learning against holding, the
//! aggregate against prices, performance profiles, probability of improvement, mean ranks.

use std::collections::BTreeSet;

use super::cost::against_cost;
use super::lengths::CHANCE;
use super::series::{dot, series_of};
use super::{matrix, panels};
use crate::document::plot::{Axis, Dots, Figure, Lines, Marks, Plot, Point, Scatter, Series};
use crate::document::scale::Scale;
use crate::document::tables::improvement_explained;
use analysis::ranking::{EncodingResult, Ranking};
use analysis::{EncodingCost, Overall, OverallScore, Report, YARDSTICK};
use records::Metric;
use records::number::{
    capital, count, least_p_value, p_value, percent, points, value_and_interval,
};
use records::settings::Region;

pub(crate) fn figures(report: &Report) -> Vec<Figure> {
    let Some(overall) = &report.overall else { return Vec::new() };
    let mut figures: Vec<Figure> = matrix::figure(report, overall).into_iter().collect();
    figures.extend(panels::figure(report, overall));
    figures.extend(inside_and_outside(report, overall));
    figures.extend(PRICES.iter().filter_map(|p| price(report, overall, p)));
    figures.extend(profiles(report, overall));
    figures.extend(improvement(report, overall));
    figures.extend(mean_ranks(report, overall));
    figures
}

fn over_tasks(title: &str, caption: String, plot: Plot) -> Figure {
    Figure::new(format!("All tasks: {title}"), caption, plot)
}

/// Exact match in the deciding region against that in distribution: learning a task and holding beyond it.
fn inside_and_outside(report: &Report, overall: &Overall) -> Option<Figure> {
    let exact = |ranking: &&Ranking| ranking.metric == Metric::ExactMatch;
    let both: Vec<(&Ranking, &Ranking)> = report
        .workloads
        .iter()
        .filter_map(|w| w.ranking(Region::Inside).filter(exact).zip(w.deciding().filter(exact)))
        .filter(|(_, deciding)| deciding.region != Region::Inside)
        .collect();
    let value = |ranking: &Ranking, name: &str| {
        let own = ranking.results.iter().find(|result| result.encoding == name);
        own.map_or(f64::NAN, EncodingResult::mean)
    };
    let place = |score: &OverallScore| {
        let name = &score.encoding;
        let inside = both.iter().map(|(inside, _)| value(inside, name)).sum::<f64>();
        let outside = both.iter().map(|(_, outside)| value(outside, name)).sum::<f64>();
        let (x, y) = (inside / both.len() as f64, outside / both.len() as f64);
        let note = format!("{} in distribution, {} outside", percent(x), percent(y));
        let point = Point { x, y, bar: None, note };
        (x.is_finite() && y.is_finite()).then(|| series_of(report, name, vec![point]))
    };
    let series: Vec<Series> = overall.scores.iter().filter_map(place).collect();
    let places: Vec<f64> = series.iter().flat_map(|s| &s.points).map(|p| p.x).collect();
    let plot = Plot::Scatter(Scatter {
        x: Axis::new("exact match in distribution", Scale::around(&places).in_percent()),
        y: Axis::new("exact match outside", Scale::percent()),
        level: None,
        front: Vec::new(),
        series,
    });
    let caption = format!(
        "Vertical: exact match in the region by which the workload is ranked. Horizontal: exact match in \
         distribution. Each mark is the mean over {} and all seeds.",
        count(both.len() as u64, "workload")
    );
    let title = "in and outside of the training distribution";
    (both.len() > 1 && places.len() > 1).then(|| over_tasks(title, caption, plot))
}

/// Share of runs above each score; `None` without scores.
fn profiles(report: &Report, overall: &Overall) -> Option<Figure> {
    let series: Vec<Series> = overall
        .profiles
        .iter()
        .map(|profile| {
            let point = |(score, share): &(f64, stats::over_tasks::TaskEstimate)| Point {
                x: *score,
                y: share.value,
                bar: share.ci95,
                note: format!("{} of runs above {}", percent(share.value), percent(*score)),
            };
            series_of(report, &profile.encoding, profile.points.iter().map(point).collect())
        })
        .collect();
    let x = Axis::new("exact match above chance", Scale::percent());
    let y = Axis::new("share of runs", Scale::percent());
    let plot = Plot::Lines(Lines::new(x, y, Marks::Few, series));
    let caption = format!(
        "Performance profiles over {}: the share of runs (all seeds of all tasks) that score above the value on the \
         horizontal axis. If the curve of one encoding is above that of another everywhere, the first \
         encoding is better.",
        count(overall.scored.len() as u64, "workload")
    );
    (!overall.profiles.is_empty()).then(|| over_tasks("performance profiles", caption, plot))
}

/// Probability that a run of each encoding is better than one of RoPE, or of the last in the order if RoPE was not ranked.
fn improvement(report: &Report, overall: &Overall) -> Option<Figure> {
    let rope = overall.ranked.iter().find(|name| *name == YARDSTICK);
    let other = rope.or(overall.ranked.last())?;
    let series: Vec<Series> = overall
        .ranked
        .iter()
        .filter_map(|encoding| {
            let probability = overall.improvement(encoding, other)?;
            let note = value_and_interval(percent(probability.value), probability.ci95, points);
            Some(dot(report, encoding, probability.value, probability.ci95, note))
        })
        .collect();
    let plot = Plot::Dots(Dots {
        value: Axis::new("probability of a better run", Scale::percent()),
        rules: vec![(0.5, "equal".to_owned())],
        groups: vec![(String::new(), series)],
    });
    let title = format!("probability of improvement over {}", report.display(other));
    (overall.ranked.len() > 2).then(|| over_tasks(&title, improvement_explained(overall), plot))
}

/// A price of an encoding relative to RoPE: name in titles, label of the axis, and the ratio.
struct RelativePrice {
    name: &'static str,
    axis: &'static str,
    is_time: bool,
    of: fn(&Report, &str) -> Option<f64>,
    /// The ratio on one workload.
    of_cost: fn(&EncodingCost) -> Option<f64>,
}

const PRICES: [RelativePrice; 3] = [
    RelativePrice {
        name: "FLOPs",
        axis: "FLOPs of a training step, relative to RoPE",
        is_time: false,
        of: Report::flops_ratio,
        of_cost: |cost| cost.flops_ratio,
    },
    RelativePrice {
        name: "training FLOPs",
        axis: "FLOPs of the whole training, relative to RoPE",
        is_time: false,
        of: Report::flops_training_ratio,
        of_cost: |cost| cost.flops_training_ratio,
    },
    RelativePrice {
        name: "step time",
        axis: "time of a training step, relative to RoPE",
        is_time: true,
        of: Report::step_time_ratio,
        of_cost: EncodingCost::sound_step_ratio,
    },
];

/// The aggregate score against a price; `None` for fewer than two encodings with both, for
/// example if times were disturbed.
fn price(report: &Report, overall: &Overall, price: &RelativePrice) -> Option<Figure> {
    let series: Vec<Series> = overall
        .scores
        .iter()
        .filter_map(|score| {
            let x = (price.of)(report, &score.encoding).filter(|x| x.is_finite() && *x > 0.0)?;
            let note = format!("{}\n{} {x:.3}", percent(score.value), price.axis);
            let point = Point { x, y: score.value, bar: score.ci95, note };
            Some(series_of(report, &score.encoding, vec![point]))
        })
        .collect();
    // One point is no trade.
    if series.len() < 2 {
        return None;
    }
    let low = series.iter().flat_map(|s| &s.points).map(|p| p.y).fold(0.0, f64::min);
    let y = Axis::new(Overall::NAME, Scale { low, ..Scale::percent() });
    let level = Some((0.0, CHANCE.to_owned()));
    let plot = against_cost(price.axis, y, level, true, series);
    let source = if price.is_time && !report.meta.measured.is_empty() {
        format!("the step time that `pe-bench speed` measured with {}", report.meta.measured_at)
    } else {
        let has_ratio = |encoding: &str| {
            let costs = report.workloads.iter().flat_map(|workload| &workload.costs);
            costs.filter(|c| c.encoding == encoding && (price.of_cost)(c).is_some()).count()
        };
        let counts: BTreeSet<usize> =
            overall.scores.iter().map(|score| has_ratio(&score.encoding)).collect();
        let up_to = if counts.len() > 1 { "up to " } else { "" };
        let workloads = count(counts.last().map_or(0, |most| *most as u64), "workload");
        let axis = price.axis.replace(',', "");
        format!("{axis}: the median over {up_to}{workloads}")
    };
    let name = capital(Overall::NAME);
    let caption = format!("{name} with its 95% interval, against {source}. Line: Pareto front.");
    let title = format!("score against {}", price.name);
    Some(over_tasks(&title, caption, plot))
}

/// Fewest workloads over which mean ranks are drawn: their test takes the workloads as a sample of many.
const FEWEST: u32 = 5;

/// Mean ranks with bars of the critical difference; `None` for few workloads.
fn mean_ranks(report: &Report, overall: &Overall) -> Option<Figure> {
    let ranks = &overall.ranks;
    let half = 0.5 * ranks.critical_difference;
    let series: Vec<Series> = overall
        .ranked
        .iter()
        .zip(&ranks.ranks)
        .map(|(encoding, rank)| {
            let bar = Some((rank - half, rank + half));
            dot(report, encoding, *rank, bar, format!("mean rank {rank:.2}"))
        })
        .collect();
    let ends: Vec<f64> = ranks.ranks.iter().flat_map(|rank| [rank - half, rank + half]).collect();
    let meaning = if ranks.differ() {
        "Encodings whose bars do not overlap differ significantly."
    } else {
        "The test finds no difference, so no two encodings differ significantly, even if their bars do not overlap."
    };
    let caption = format!(
        "Mean rank over {} (1 is best); bars are as long as Nemenyi's critical difference, {:.2} ranks. Friedman's \
         test: p {}. {meaning} Both statistics treat the workloads as a random sample of independent tasks. The \
         critical difference also assumes that there are many tasks.",
        count(ranks.tasks, "workload"),
        ranks.critical_difference,
        if ranks.is_least() { least_p_value(ranks.p) } else { p_value(ranks.p) }
    );
    let plot = Plot::Dots(Dots {
        value: Axis::new("mean rank", Scale::linear(&ends)),
        rules: Vec::new(),
        groups: vec![(String::new(), series)],
    });
    let tells = overall.ranked.len() > 2 && ranks.tasks >= FEWEST;
    tells.then(|| over_tasks("mean ranks", caption, plot))
}

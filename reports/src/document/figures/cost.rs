//! The headline metric against costs, with the Pareto front.

use super::lengths::{CHANCE, scale_of};
use super::series::{drawn, note, series_of};
use crate::document::plot::{Axis, Figure, Plot, Point, Scatter, Series};
use crate::document::scale::Scale;
use analysis::ranking::{Rank, Ranking};
use analysis::{EncodingCost, Report, Workload};
use records::number::{bytes, capital, si, three_digits};

/// A kind of cost: name, axis label, accessor and formatter.
struct Price {
    name: &'static str,
    axis: &'static str,
    of: fn(&EncodingCost) -> Option<f64>,
    show: fn(f64) -> String,
}

const PRICES: [Price; 3] = [
    Price {
        name: "FLOPs",
        axis: "FLOPs of a training step",
        of: |cost| EncodingCost::known(cost.flops_train_step),
        show: si,
    },
    Price {
        name: "step time",
        axis: "ms per training step",
        of: |cost| cost.step_seconds.filter(|_| cost.sound_times).map(|s| 1000.0 * s),
        show: three_digits,
    },
    Price {
        name: "memory",
        axis: "peak memory in MiB",
        of: |cost| cost.peak_bytes.map(|b| b as f64 / f64::from(1 << 20)),
        show: |mebibytes| bytes(mebibytes * f64::from(1 << 20)),
    },
];

pub(crate) fn figures(report: &Report, workload: &Workload) -> Vec<Figure> {
    let Some(ranking) = workload.deciding() else { return Vec::new() };
    PRICES.iter().filter_map(|price| figure(report, workload, ranking, price)).collect()
}

fn figure(
    report: &Report,
    workload: &Workload,
    ranking: &Ranking,
    price: &Price,
) -> Option<Figure> {
    let metric = ranking.metric;
    let series: Vec<Series> = ranking
        .results
        .iter()
        .filter(|s| s.rank != Rank::Unranked)
        .filter_map(|result| {
            let cost = workload.costs.iter().find(|c| c.encoding == result.encoding)?;
            let x = (price.of)(cost).filter(|x| x.is_finite() && *x > 0.0)?;
            let estimate = result.estimate?;
            let (y, bar) = drawn(metric, &estimate);
            let note = format!("{}\n{} {}", note(metric, &estimate), price.axis, (price.show)(x));
            Some(series_of(report, &result.encoding, vec![Point { x, y, bar, note }]))
        })
        .collect();
    // One point is no trade.
    if series.len() < 2 {
        return None;
    }
    let y = Axis::new(metric.name(), scale_of(metric, &series));
    let level = ranking.chance.map(|chance| (chance, CHANCE.to_owned()));
    let plot = against_cost(price.axis, y, level, metric.higher_is_better(), series);
    let title = format!("{}: {} against {}", workload.name, metric.name(), price.name);
    let caption = format!("{}. Line: Pareto front.", capital(ranking.region.name()));
    Some(Figure::new(title, caption, plot))
}

/// Returns the plot of a metric against a cost with its Pareto front.
pub(super) fn against_cost(
    cost: &str,
    y: Axis,
    level: Option<(f64, String)>,
    higher_is_better: bool,
    series: Vec<Series>,
) -> Plot {
    let places: Vec<(f64, f64)> =
        series.iter().flat_map(|s| &s.points).map(|p| (p.x, p.y)).collect();
    let costs: Vec<f64> = places.iter().map(|(x, _)| *x).collect();
    let front = pareto_front(&places, higher_is_better);
    Plot::Scatter(Scatter { x: Axis::new(cost, Scale::around(&costs)), y, level, front, series })
}

/// Returns the Pareto front by rising cost: the points that no other point beats or equals in both coordinates.
fn pareto_front(points: &[(f64, f64)], higher_is_better: bool) -> Vec<(f64, f64)> {
    let gain = |y: f64| if higher_is_better { y } else { -y };
    let mut order: Vec<(f64, f64)> =
        points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    // Of equal costs the better one comes first, and the others gain nothing over it.
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(gain(b.1).total_cmp(&gain(a.1))));
    let mut best = f64::NEG_INFINITY;
    order.retain(|(_, y)| {
        let better = gain(*y) > best;
        best = best.max(gain(*y));
        better
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::testkit;

    #[test]
    fn disturbed_times_have_no_figure() {
        let mut records = testkit::suite();
        let titles = |records: &[_]| -> String {
            let report = Report::new(records, &ReportMeta::default()).unwrap();
            let figures = report.workloads.iter().flat_map(|own| figures(&report, own));
            figures.map(|figure| figure.title).collect()
        };
        assert!(titles(&records).contains("against step time"));
        for record in &mut records {
            record.host.jobs = 2;
        }
        let disturbed = titles(&records);
        assert!(!disturbed.contains("step time") && disturbed.contains("against memory"));
    }

    #[test]
    fn the_level_of_guessing_is_that_of_the_region() {
        let mut records = testkit::two_workloads();
        for eval in records.iter_mut().flat_map(|record| &mut record.evals) {
            eval.chance = Some(if eval.in_distribution { 0.5 } else { 0.125 });
        }
        let report = Report::new(records, &ReportMeta::default()).unwrap();
        let figure = figures(&report, &report.workloads[0]).remove(0);
        let Plot::Scatter(scatter) = figure.plot else { panic!("{figure:?}") };
        assert_eq!(scatter.level, Some((0.125, CHANCE.to_owned())));
    }

    #[test]
    fn the_front_holds_what_nothing_beats_in_both() {
        let points = [(1.0, 0.5), (2.0, 0.4), (2.0, 0.9), (3.0, 0.9), (4.0, 0.95), (0.5, f64::NAN)];
        assert_eq!(pareto_front(&points, true), [(1.0, 0.5), (2.0, 0.9), (4.0, 0.95)]);
        assert_eq!(
            pareto_front(&[(1.0, 5.0), (2.0, 4.0), (3.0, 4.5)], false),
            [(1.0, 5.0), (2.0, 4.0)]
        );
    }
}

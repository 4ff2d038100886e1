//! Every seed of every encoding as a dot: whether all seeds solve a task, some or none.

use super::lengths::{CHANCE, scale_of};
use super::series::series_of;
use crate::document::plot::{Axis, Dots, Figure, Plot, Point, Series};
use analysis::ranking::EncodingResult;
use analysis::{Report, Workload};

/// Returns the dots of the deciding region, the best mean first; `None` with one seed, whose value is the mean.
pub(crate) fn figure(report: &Report, workload: &Workload) -> Option<Figure> {
    let ranking = workload.deciding()?;
    let metric = ranking.metric;
    let on_axis = |value: f64| if metric.higher_is_better() { value } else { value.exp() };
    let series = |result: &&EncodingResult| {
        let point = |(seed, value): &(u64, f64)| {
            let note = format!("{}, seed {seed}", metric.show(*value));
            Point { x: 0.0, y: on_axis(*value), bar: None, note }
        };
        series_of(report, &result.encoding, result.per_seed.iter().map(point).collect())
    };
    let series: Vec<Series> = ranking.complete().iter().map(series).collect();
    let several = series.iter().any(|series| series.points.len() > 1);
    let plot = Plot::Dots(Dots {
        value: Axis::new(metric.name(), scale_of(metric, &series)),
        rules: ranking.chance.map(|chance| (chance, CHANCE.to_owned())).into_iter().collect(),
        groups: vec![(ranking.region.name().to_owned(), series)],
    });
    let title = format!("{}: single seeds", workload.name);
    several.then(|| {
        Figure::new(
            title,
            "Each mark is the mean of one seed over the evaluations of the region.",
            plot,
        )
    })
}

//! A metric by length: lines for splits of several lengths, dots for the others.

use std::collections::{BTreeMap, BTreeSet};

use super::series::{drawn, note, series_of};
use crate::document::plot::{Axis, Dots, Figure, Lines, Marks, Plot, Point, Series};
use crate::document::scale::Scale;
use analysis::aggregate::Aggregate;
use analysis::{Report, Workload};
use records::Metric;

/// Label of the exact match of guessing.
pub(super) const CHANCE: &str = "chance";

/// Returns the values of each encoding, each at the `place` of its row.
pub(super) fn series_by_encoding(
    report: &Report,
    rows: &[&Aggregate],
    metric: Metric,
    place: impl Fn(&Aggregate) -> f64,
) -> Vec<Series> {
    let mut by_encoding: BTreeMap<&str, Vec<&Aggregate>> = BTreeMap::new();
    for row in rows {
        by_encoding.entry(&row.encoding).or_default().push(row);
    }
    by_encoding
        .into_iter()
        .map(|(encoding, rows)| {
            let point = |row: &Aggregate| {
                let estimate = row.estimate(metric);
                let (y, bar) = drawn(metric, &estimate);
                Point { x: place(row), y, bar, note: note(metric, &estimate) }
            };
            series_of(report, encoding, rows.into_iter().map(point).collect())
        })
        .collect()
}

/// Creates a scale for `series` from the means only. The interval of two seeds may be a thousand
/// times as wide as the means, so error bars are clipped at the frame.
pub(super) fn scale_of<'a>(metric: Metric, series: impl IntoIterator<Item = &'a Series>) -> Scale {
    if metric.higher_is_better() {
        Scale::percent()
    } else {
        let means: Vec<f64> = series.into_iter().flat_map(|s| &s.points).map(|p| p.y).collect();
        Scale::around(&means)
    }
}

/// Returns the caption of a figure without intervals.
pub(super) fn intervals(several_seeds: bool) -> &'static str {
    if several_seeds { "" } else { "One seed: no interval." }
}

pub(crate) fn figures(report: &Report, workload: &Workload, metric: Metric) -> Vec<Figure> {
    let mut splits: BTreeMap<&str, Vec<&Aggregate>> = BTreeMap::new();
    for row in &workload.rows {
        splits.entry(&row.split).or_default().push(row);
    }
    let rules: Vec<(f64, String)> =
        workload.train_lens.iter().map(|len| (*len as f64, format!("trained at {len}"))).collect();
    let bars = intervals(workload.rows.iter().any(|r| r.exact_match.n > 1));
    let figure = |title: String, plot: Plot| Figure::new(title, bars, plot);
    let mut figures = Vec::new();
    let mut single: Vec<(String, Vec<Series>)> = Vec::new();
    let mut alone: Vec<&Aggregate> = Vec::new();
    let guessing = metric == Metric::ExactMatch;
    // Splits in distribution come first, because the others are compared with them.
    let mut ordered: Vec<_> = splits.into_iter().collect();
    ordered.sort_by_key(|(_, rows)| !rows.iter().any(|r| r.in_distribution));
    for (split, rows) in ordered {
        let series = series_by_encoding(report, &rows, metric, |row| row.len as f64);
        let lens: BTreeSet<u64> = rows.iter().map(|r| r.len).collect();
        if let [len] = lens.iter().copied().collect::<Vec<_>>()[..] {
            let region = if rows.iter().any(|r| r.in_distribution) {
                "in distribution"
            } else {
                "beyond training"
            };
            alone.extend(rows);
            single.push((format!("{split} at {len} {} ({region})", workload.len_unit), series));
            continue;
        }
        let mut along: Vec<f64> = lens.iter().map(|len| *len as f64).collect();
        along.extend(rules.iter().map(|(len, _)| *len));
        let x = Axis::new(format!("length in {}", workload.len_unit), Scale::at(&along));
        let y = Axis::new(metric.name(), scale_of(metric, &series));
        let level = if guessing { chance(&rows, |row| row.len as f64) } else { None };
        let lines = Lines::new(x, y, Marks::Points, series);
        let plot = Plot::Lines(Lines { rules: rules.clone(), level, ..lines });
        let title = format!("{}: {}, split {split}", workload.name, metric.name());
        figures.push(figure(title, plot));
    }
    if !single.is_empty() {
        let scale = scale_of(metric, single.iter().flat_map(|(_, series)| series));
        let which = if figures.is_empty() { "" } else { ", splits of one length" };
        let title = format!("{}: {}{which}", workload.name, metric.name());
        let levels: BTreeSet<u64> =
            alone.iter().filter_map(|r| Some(r.chance?.to_bits())).collect();
        let rules = match (guessing, levels.into_iter().collect::<Vec<_>>().as_slice()) {
            (true, [level]) => vec![(f64::from_bits(*level), CHANCE.to_owned())],
            _ => Vec::new(),
        };
        let plot =
            Plot::Dots(Dots { value: Axis::new(metric.name(), scale), rules, groups: single });
        figures.push(figure(title, plot));
    }
    figures
}

/// Returns the exact match of guessing at the `place` of each row, if the task defines it.
pub(super) fn chance(
    rows: &[&Aggregate],
    place: impl Fn(&Aggregate) -> f64,
) -> Option<(Vec<(f64, f64)>, String)> {
    // The order of positive numbers is that of their bits.
    let chances = rows.iter().filter_map(|row| Some((place(row).to_bits(), row.chance?)));
    let by_place: BTreeMap<u64, f64> = chances.collect();
    let points: Vec<(f64, f64)> =
        by_place.into_iter().map(|(place, chance)| (f64::from_bits(place), chance)).collect();
    (points.len() > 1).then(|| (points, CHANCE.to_owned()))
}

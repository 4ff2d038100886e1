//! A metric by a property of samples or tokens, and by a property and length.

use std::collections::{BTreeMap, BTreeSet};

use super::lengths::{intervals, scale_of};
use super::series::series_of;
use crate::document::plot::{Axis, Figure, Heat, HeatMap, Lines, Marks, Plot, Point, Series};
use crate::document::scale::Scale;
use analysis::{Report, SlicePoint, SliceSet, Workload};
use records::{Metric, PAIR};

/// Maximum number of values that each get a tick of their own.
const FEW: usize = 12;
/// Maximum number of rows and columns of a heat map; operands of addition have up to 80 digits.
const MOST_ROWS: usize = 80;
/// Properties whose values are identifiers without an order. They are shown in tables only.
const NAMES: [&str; 1] = ["document"];
/// Minimum number of lengths for a heat map over lengths; fewer are drawn as curves.
const LENGTHS: usize = 3;

pub(crate) fn figures(report: &Report, workload: &Workload) -> Vec<Figure> {
    let mut groups: BTreeMap<(&str, &str), Vec<&SliceSet>> = BTreeMap::new();
    for set in &workload.slices {
        groups.entry((&set.name, &set.split)).or_default().push(set);
    }
    let mut figures = Vec::new();
    for ((name, _), sets) in &groups {
        if NAMES.contains(name) {
            continue;
        }
        if sets.iter().any(|set| set.pair().is_some()) {
            let last = shown(sets).into_iter().next_back();
            figures.extend(last.and_then(|set| pairs(report, workload, set)));
            continue;
        }
        figures.extend(shown(sets).into_iter().filter_map(|set| curve(report, workload, set)));
        figures.extend(by_length(report, workload, sets));
    }
    figures
}

/// Returns the sets of the longest trained length and of the longest length; the others are shown in tables only.
fn shown<'a>(sets: &[&'a SliceSet]) -> Vec<&'a SliceSet> {
    let longest = |inside: bool| {
        let of = sets.iter().filter(|set| set.in_distribution == inside);
        of.max_by_key(|set| set.len).copied()
    };
    [longest(true), longest(false)].into_iter().flatten().collect()
}

fn point(metric: Metric, point: &SlicePoint) -> Point {
    let held = if metric == Metric::Perplexity { point.nll } else { point.accuracy };
    let show = |x: f64| if metric == Metric::Perplexity { x.exp() } else { x.clamp(0.0, 1.0) };
    let interval =
        held.ci95.map_or_else(String::new, |ci| format!(" [{}]", metric.show_interval(ci)));
    let at = if point.from == point.to {
        point.from.to_string()
    } else {
        format!("{} to {}", point.from, point.to)
    };
    Point {
        x: point.middle(),
        y: show(held.mean),
        bar: held.ci95.map(|(low, high)| (show(low), show(high))),
        note: format!("{}{interval} n={} at {at}", metric.show(held.mean), held.n),
    }
}

fn curve(report: &Report, workload: &Workload, set: &SliceSet) -> Option<Figure> {
    let metric = workload.headline.of_slices(set.unit);
    let series: Vec<Series> = set
        .curves
        .iter()
        .map(|c| {
            series_of(report, &c.encoding, c.points.iter().map(|p| point(metric, p)).collect())
        })
        .collect();
    let mut along: Vec<f64> = series.iter().flat_map(|s| &s.points).map(|p| p.x).collect();
    along.sort_by(f64::total_cmp);
    along.dedup();
    // One value is no curve: it is the evaluation itself.
    if along.len() < 2 {
        return None;
    }
    let several = set.curves.iter().flat_map(|c| &c.points).any(|p| p.accuracy.n > 1);
    let grouped = if set.is_grouped() { " Neighbouring values share a bin." } else { "" };
    let few = along.len() <= FEW;
    let x = Axis::new(&set.name, if few { Scale::at(&along) } else { Scale::around(&along) });
    let y = Axis::new(metric.name(), scale_of(metric, &series));
    let marks = if few { Marks::Points } else { Marks::Few };
    let plot = Plot::Lines(Lines::new(x, y, marks, series));
    let name = &workload.name;
    let title =
        format!("{name}: {} by {} on {} at {}", metric.name(), set.name, set.split, set.len);
    let caption = format!("{}{grouped}", intervals(several));
    Some(Figure::new(title, caption, plot))
}

/// Returns one map of shares for each encoding; `place` is the row and the column of a value in a set. `None` if there are
/// too few or too many rows and columns.
fn maps(
    report: &Report,
    sets: &[&SliceSet],
    place: impl Fn(&SliceSet, u64) -> (u64, u64),
    x_label: String,
    y_label: String,
) -> Option<Plot> {
    let mut cells: BTreeMap<&str, BTreeMap<(u64, u64), f64>> = BTreeMap::new();
    for set in sets {
        for curve in &set.curves {
            let points = curve.points.iter();
            let cells = cells.entry(&curve.encoding).or_default();
            cells.extend(points.map(|p| (place(set, u64::from(p.from)), p.accuracy.mean)));
        }
    }
    let places = || cells.values().flat_map(BTreeMap::keys);
    let rows: BTreeSet<u64> = places().map(|(row, _)| *row).collect();
    let columns: BTreeSet<u64> = places().map(|(_, column)| *column).collect();
    let readable = 2..=MOST_ROWS;
    if !readable.contains(&rows.len()) || !readable.contains(&columns.len()) {
        return None;
    }
    let map = |(encoding, cells): (&&str, &BTreeMap<(u64, u64), f64>)| {
        let row = |row: &u64| -> Vec<Option<f64>> {
            let value = |column: &u64| cells.get(&(*row, *column)).copied();
            columns.iter().map(|c| value(c).filter(|x| x.is_finite())).collect()
        };
        let Series { look, label, .. } = series_of(report, encoding, Vec::new());
        HeatMap { look, label, values: rows.iter().map(row).collect() }
    };
    let maps = cells.iter().map(map).collect();
    let (columns, rows) = (columns.into_iter().collect(), rows.into_iter().collect());
    Some(Plot::Heat(Heat { x_label, y_label, columns, rows, maps }))
}

/// Draws heat maps of a property's value against length.
fn by_length(report: &Report, workload: &Workload, sets: &[&SliceSet]) -> Option<Figure> {
    let first = sets.first()?;
    let metric = workload.headline.of_slices(first.unit);
    let lens: BTreeSet<u64> = sets.iter().map(|set| set.len).collect();
    if metric == Metric::Perplexity
        || lens.len() < LENGTHS
        || sets.iter().any(|set| set.is_grouped())
    {
        return None;
    }
    let along = format!("length in {}", workload.len_unit);
    let plot = maps(report, sets, |set, value| (value, set.len), along, first.name.clone())?;
    let what = format!("{} and length on {}", first.name, first.split);
    Some(heat_figure(workload, metric, &what, plot))
}

/// Draws the figure of a pair of properties; see [`SliceSet::pair`].
fn pairs(report: &Report, workload: &Workload, set: &SliceSet) -> Option<Figure> {
    let (up, along) = set.pair()?;
    let metric = workload.headline.of_slices(set.unit);
    let place = |_: &SliceSet, value: u64| (value / PAIR, value % PAIR);
    let plot = maps(report, &[set], place, along.to_owned(), up.to_owned())?;
    let what = format!("{up} and {along} on {} at {}", set.split, set.len);
    Some(heat_figure(workload, metric, &what, plot))
}

fn heat_figure(workload: &Workload, metric: Metric, what: &str, plot: Plot) -> Figure {
    let title = format!("{}: {} by {what}", workload.name, metric.name());
    let caption = "Dark blue: 0%; yellow: 100%; empty: not measured.".to_owned();
    Figure::new(title, caption, plot)
}

//! Texts that stand for drawings, for readers who do not see them: their first, last, best or worst values.

use crate::document::plot::{Heat, Lines, Plot, Series, ShareMatrix};
use records::number::percent;

/// Returns the values of a plot in a few sentences.
pub(super) fn alt(plot: &Plot) -> String {
    match plot {
        Plot::Lines(plot) => lines(plot),
        Plot::Dots(plot) => {
            let groups = plot.groups.iter().map(|(name, series)| {
                let ends = ends(&series.iter().collect::<Vec<_>>());
                if name.is_empty() { ends } else { format!("{name}: {ends}") }
            });
            groups.collect::<Vec<_>>().join(" ")
        }
        Plot::Scatter(plot) => {
            let mut series: Vec<&Series> =
                plot.series.iter().filter(|s| !s.points.is_empty()).collect();
            series.sort_by(|a, b| b.points[0].y.total_cmp(&a.points[0].y));
            ends(&series)
        }
        Plot::Heat(plot) => heat(plot),
        Plot::Matrix(plot) => matrix(plot),
        Plot::Panels(plots) => {
            let panels = plots.iter().map(|(name, plot)| format!("{name}: {}", lines(plot)));
            panels.collect::<Vec<_>>().join(" ")
        }
    }
}

/// Returns the name of a series with its last value.
fn named(series: &Series) -> Option<String> {
    let note = series.points.iter().rfind(|point| point.y.is_finite())?.note.replace('\n', ", ");
    let note = if note.is_empty() { String::new() } else { format!(" {note}") };
    Some(format!("{}{note}", series.label))
}

/// Returns the first and the last of several series, which are in order.
fn ends(series: &[&Series]) -> String {
    let named: Vec<String> = series.iter().filter_map(|series| named(series)).collect();
    match &named[..] {
        [] => "No values.".to_owned(),
        [only] => format!("{only}."),
        [first, .., last] => format!("{} series, from {first} to {last}.", named.len()),
    }
}

/// Returns where the lines in colour end.
fn lines(plot: &Lines) -> String {
    let shown = plot.series.iter().filter(|series| !plot.quiet.contains(&series.look));
    let named: Vec<String> = shown.filter_map(named).collect();
    if named.is_empty() { "No values.".to_owned() } else { format!("{}.", named.join("; ")) }
}

/// Returns the range of shares.
fn range(values: impl Iterator<Item = f64>) -> String {
    let values = values.filter(|value| value.is_finite());
    let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    });
    ends.map_or_else(
        || "no values".to_owned(),
        |(low, high)| format!("{} to {}", percent(low), percent(high)),
    )
}

fn heat(plot: &Heat) -> String {
    let map = |map: &crate::document::plot::HeatMap| {
        format!("{} {}", map.label, range(map.values.iter().flatten().flatten().copied()))
    };
    format!("{}.", plot.maps.iter().map(map).collect::<Vec<_>>().join("; "))
}

fn matrix(plot: &ShareMatrix) -> String {
    let rows = plot.rows.iter().map(|row| {
        format!("{} {}", row.label, range(row.cells.iter().flatten().map(|cell| cell.share)))
    });
    let rows: Vec<String> = rows.collect();
    format!("{} columns. {}.", plot.columns.len(), rows.join("; "))
}

//! Figures as input of plotly.js: data and layout as JSON. Colours are set by the page from its style sheet, so that
//! a figure follows the light and dark theme.

use plotly::common::{
    Anchor, ColorScale, ColorScalePalette, DashType, ErrorData, ErrorType, Fill, HoverInfo, Line,
    Marker, Mode, Title,
};
use plotly::layout::{
    Annotation, Axis as PlotAxis, AxisType, HoverMode, Margin, Shape, ShapeLine, ShapeType,
};
use plotly::{HeatMap, Layout, Scatter, Trace, Traces};

use crate::document::figures::plot::{
    Axis, Dots, FEW_MARKS, Heat, Lines, Marks, Plot, Point, Scatter as Trade, Series,
};
use crate::document::figures::scale::{Scale, Spacing};
use crate::formats::chart::MarkStyle;
use crate::text::visible;

/// Height of a drawing area in pixels, and its margins above and below.
const HEIGHT: usize = 320;
const HEAT: usize = 230;
const TOP: usize = 22;
const AXIS: usize = 56;

/// Width of a digit relative to an axis on a narrow screen.
const DIGIT: f64 = 7.0 / 290.0;

/// A drawing area of plotly.js.
pub(super) struct Canvas {
    /// Heading of the plot, if a figure has several areas.
    pub(super) label: Option<(usize, String)>,
    /// Height of the area in pixels.
    pub(super) height: usize,
    /// Plot as `{"data":[...],"layout":{...}}`, escaped for a `script` element.
    pub(super) json: String,
}

/// Returns the drawing areas of a figure.
pub(super) fn canvases(plot: &Plot) -> serde_json::Result<Vec<Canvas>> {
    match plot {
        Plot::Lines(plot) => lines(plot).map(|canvas| vec![canvas]),
        Plot::Dots(plot) => dots(plot).map(|canvas| vec![canvas]),
        Plot::Scatter(plot) => scatter(plot).map(|canvas| vec![canvas]),
        Plot::Heat(plot) => (0..plot.maps.len()).map(|map| heat(plot, map)).collect(),
    }
}

/// Escapes text for plotly.js, which interprets some HTML and `%{...}` in labels.
fn plain(text: &str) -> String {
    visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace("%{", "%&#123;")
}

/// Returns the hover texts of points, which may have several lines.
fn notes(points: &[&Point]) -> Vec<String> {
    let lines = |note: &str| note.split('\n').map(plain).collect::<Vec<_>>().join("<br>");
    points.iter().map(|point| lines(&point.note)).collect()
}

fn canvas(traces: &Traces, layout: &Layout, height: usize) -> serde_json::Result<Canvas> {
    let (data, layout) = (serde_json::to_string(traces)?, serde_json::to_string(layout)?);
    // `<` inside a string is all that could end the script element; JSON has it nowhere else.
    let json = format!("{{\"data\":{data},\"layout\":{layout}}}").replace('<', "\\u003c");
    Ok(Canvas { label: None, height, json })
}

/// Returns a layout without a legend; the page has one list of all encodings.
fn layout(height: usize) -> Layout {
    Layout::new()
        .auto_size(true)
        .height(height)
        .margin(Margin::new().left(56).right(12).top(TOP).bottom(AXIS))
        .hover_mode(HoverMode::Closest)
        .show_legend(false)
}

fn axis(axis: &Axis) -> PlotAxis {
    let scale = &axis.scale;
    let plotted = PlotAxis::new().title(Title::with_text(plain(&axis.label))).zero_line(false);
    let plotted = match scale.spacing {
        Spacing::Percent => plotted.tick_format(".0%").range(padded(scale.low, scale.high)),
        Spacing::Linear => plotted.range(padded(scale.low, scale.high)),
        Spacing::Log => {
            plotted.type_(AxisType::Log).range(padded(scale.low.log10(), scale.high.log10()))
        }
    };
    if scale.only_ticks || scale.spacing == Spacing::Log {
        let values = scale.ticks.iter().map(|(value, _)| *value).collect();
        plotted.tick_values(values).tick_text(thinned(scale))
    } else {
        plotted
    }
}

/// Returns the labels of ticks; those that would overlap the previous one on a narrow screen are empty.
fn thinned(scale: &Scale) -> Vec<String> {
    let mut end = f64::NEG_INFINITY;
    let shown = |(value, label): &(f64, String)| {
        let half = 0.5 * DIGIT * label.chars().count() as f64;
        let at = scale.place(*value);
        if at - half < end {
            return String::new();
        }
        end = at + half + DIGIT;
        label.clone()
    };
    scale.ticks.iter().map(shown).collect()
}

fn padded(low: f64, high: f64) -> Vec<f64> {
    let margin = if high > low { 0.03 * (high - low) } else { 0.5 };
    vec![low - margin, high + margin]
}

fn finite(series: &Series) -> Vec<&Point> {
    series.points.iter().filter(|p| p.x.is_finite() && p.y.is_finite()).collect()
}

/// Trace of a series in a plotly figure; `meta` is the slot, from which the page derives its
/// colour.
fn trace(series: &Series, points: &[&Point], mode: Mode) -> Box<Scatter<f64, f64>> {
    let (x, y) = points.iter().map(|p| (p.x, p.y)).unzip();
    let look = MarkStyle::of(series.slot);
    Scatter::new(x, y)
        .name(plain(&series.label))
        .mode(mode)
        .meta(series.slot)
        .line(Line::new().width(2.0).dash(look.dash()))
        .marker(Marker::new().symbol(look.symbol()).size(8))
        .text_array(notes(points))
        .hover_template("%{text}<extra>%{fullData.name}</extra>")
}

/// Returns the intervals of a series as a filled area.
fn band(series: &Series, points: &[&Point]) -> Option<Box<Scatter<f64, f64>>> {
    let ends: Vec<(f64, f64, f64)> = points
        .iter()
        .filter_map(|p| p.bar.map(|(low, high)| (p.x, low, high)))
        .filter(|(_, low, high)| low.is_finite() && high.is_finite())
        .collect();
    if ends.len() < 2 {
        return None;
    }
    let there = ends.iter().map(|(x, _, high)| (*x, *high));
    let back = ends.iter().rev().map(|(x, low, _)| (*x, *low));
    let (x, y) = there.chain(back).unzip();
    Some(
        Scatter::new(x, y)
            .mode(Mode::Lines)
            .meta(series.slot)
            .fill(Fill::ToSelf)
            .line(Line::new().width(0.0))
            .hover_info(HoverInfo::Skip),
    )
}

/// Returns the trace of a line that belongs to no encoding.
fn rule(points: &[(f64, f64)], name: &str) -> Box<Scatter<f64, f64>> {
    let (x, y) = points.iter().copied().unzip();
    Scatter::new(x, y)
        .name(name)
        .mode(Mode::Lines)
        .meta("rule")
        .line(Line::new().width(1.0).dash(DashType::Dot))
        .hover_template(format!("{name} %{{y}}<extra></extra>"))
}

/// Returns a label at the right end of a horizontal rule.
fn rule_label(label: &str, y: f64) -> Annotation {
    let text = Annotation::new().text(plain(label)).x_ref("paper").y_ref("y").x(1.0).y(y);
    text.x_anchor(Anchor::Right).y_anchor(Anchor::Bottom).show_arrow(false)
}

/// Returns vertical rules as shapes, and their labels.
fn upright(rules: &[(f64, String)], x: &Scale) -> (Vec<Shape>, Vec<Annotation>) {
    let log = x.spacing == Spacing::Log;
    let shape = |(x, _): &(f64, String)| {
        let line = ShapeLine::new().width(1.0).dash(DashType::Dot);
        let shape = Shape::new().shape_type(ShapeType::Line).x_ref("x").y_ref("paper").line(line);
        shape.x0(*x).x1(*x).y0(0.0).y1(1.0)
    };
    let label = |(x, label): &(f64, String)| {
        // Annotations, unlike shapes, count a logarithmic axis in powers of ten.
        let place = if log { x.log10() } else { *x };
        let text = Annotation::new().text(plain(label)).x_ref("x").y_ref("paper");
        text.x(place).y(1.0).y_anchor(Anchor::Bottom).show_arrow(false)
    };
    (rules.iter().map(shape).collect(), rules.iter().map(label).collect())
}

fn lines(plot: &Lines) -> serde_json::Result<Canvas> {
    let mut traces = Traces::new();
    let shown: Vec<(&Series, Vec<&Point>)> = plot
        .series
        .iter()
        .map(|series| (series, finite(series)))
        .filter(|(_, points)| !points.is_empty())
        .collect();
    for (series, points) in &shown {
        if let Some(band) = band(series, points) {
            traces.push(band);
        }
    }
    for (series, points) in &shown {
        let mut line = trace(series, points, Mode::LinesMarkers);
        if plot.marks == Marks::Few {
            let marker = Marker::new().symbol(MarkStyle::of(series.slot).symbol()).size(7);
            line = line.marker(marker.max_displayed(FEW_MARKS));
        }
        traces.push(line);
    }
    let (shapes, mut annotations) = upright(&plot.rules, &plot.x.scale);
    if let Some((points, label)) = &plot.level {
        traces.push(rule(points, &plain(label)));
        annotations.extend(points.last().map(|(_, y)| rule_label(label, *y)));
    }
    let layout = layout(HEIGHT).x_axis(axis(&plot.x)).y_axis(axis(&plot.y));
    canvas(&traces, &layout.shapes(shapes).annotations(annotations), HEIGHT)
}

fn errors(points: &[&Point]) -> Option<ErrorData> {
    if points.iter().all(|p| p.bar.is_none()) {
        return None;
    }
    let of = |get: fn(&Point) -> f64| points.iter().map(|p| get(p).max(0.0)).collect();
    Some(
        ErrorData::new(ErrorType::Data)
            .symmetric(false)
            .array(of(|p| p.bar.map_or(0.0, |(_, high)| high - p.y)))
            .array_minus(of(|p| p.bar.map_or(0.0, |(low, _)| p.y - low)))
            .thickness(1.5)
            .width(0),
    )
}

fn dots(plot: &Dots) -> serde_json::Result<Canvas> {
    let mut traces = Traces::new();
    let mut ticks: Vec<(f64, String)> = Vec::new();
    let mut row = 0.0;
    for (heading, group) in &plot.groups {
        if plot.groups.len() > 1 {
            ticks.push((row, format!("<b>{}</b>", plain(heading))));
            row += 1.0;
        }
        for series in group {
            ticks.push((row, plain(&series.label)));
            let points: Vec<&Point> = series.points.iter().filter(|p| p.y.is_finite()).collect();
            let placed = Series {
                points: points
                    .iter()
                    .map(|p| Point { x: p.y, y: row, bar: None, note: p.note.clone() })
                    .collect(),
                ..series.clone()
            };
            let mut dots = trace(&placed, &finite(&placed), Mode::Markers);
            if let Some(errors) = errors(&points) {
                dots = dots.error_x(errors);
            }
            traces.push(dots);
            row += 1.0;
        }
    }
    let (values, labels): (Vec<f64>, Vec<String>) = ticks.into_iter().unzip();
    let height = TOP + AXIS + 22 * values.len();
    let rows = PlotAxis::new()
        .tick_values(values)
        .tick_text(labels)
        .range(vec![row - 0.4, -0.6])
        .auto_margin(true)
        .zero_line(false);
    let (shapes, annotations) = upright(&plot.rules, &plot.value.scale);
    let layout = layout(height).x_axis(axis(&plot.value)).y_axis(rows);
    canvas(&traces, &layout.shapes(shapes).annotations(annotations), height)
}

fn scatter(plot: &Trade) -> serde_json::Result<Canvas> {
    let mut traces = Traces::new();
    if plot.front.len() > 1 {
        traces.push(rule(&plot.front, "Pareto front"));
    }
    for series in &plot.series {
        let points = finite(series);
        let mut marks = trace(series, &points, Mode::Markers);
        if let Some(errors) = errors(&points) {
            marks = marks.error_y(errors);
        }
        traces.push(marks);
    }
    let mut layout = layout(HEIGHT).x_axis(axis(&plot.x)).y_axis(axis(&plot.y));
    if let Some((level, label)) = &plot.level {
        let ends = [plot.x.scale.low, plot.x.scale.high].map(|x| (x, *level));
        traces.push(rule(&ends, &plain(label)));
        layout = layout.annotations(vec![rule_label(label, *level)]);
    }
    canvas(&traces, &layout, HEIGHT)
}

fn heat(plot: &Heat, index: usize) -> serde_json::Result<Canvas> {
    let map = &plot.maps[index];
    let words = |values: &[u64]| values.iter().map(u64::to_string).collect::<Vec<_>>();
    let said = format!(
        "{} %{{x}}<br>{} %{{y}}<br>%{{z:.1%}}<extra></extra>",
        plain(&plot.x_label),
        plain(&plot.y_label)
    );
    let mut traces = Traces::new();
    let cells: Box<dyn Trace> =
        HeatMap::new(words(&plot.columns), words(&plot.rows), map.values.clone())
            .zmin(0.0)
            .zmax(1.0)
            .color_scale(ColorScale::Palette(ColorScalePalette::Cividis))
            .show_scale(false)
            .hover_template(said);
    traces.push(cells);
    let named = |label: &str| {
        let axis = PlotAxis::new().title(Title::with_text(plain(label))).type_(AxisType::Category);
        axis.n_ticks(6).zero_line(false)
    };
    let layout = layout(HEAT).x_axis(named(&plot.x_label)).y_axis(named(&plot.y_label));
    let canvas = canvas(&traces, &layout, HEAT)?;
    Ok(Canvas { label: Some((map.slot, map.label.clone())), ..canvas })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_would_lie_on_each_other_are_left_out() {
        let close = Scale::at(&[1.0, 12.0, 14.0, 16.0, 60.0, 64.0]);
        assert_eq!(thinned(&close), ["1", "12", "", "", "60", ""]);
        assert_eq!(thinned(&Scale::at(&[64.0, 128.0])), ["64", "128"]);
    }
}

//! Figures as data, whose plots are drawn as SVG.

use super::scale::Scale;

/// A point with an optional interval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) bar: Option<(f64, f64)>,
    /// Text shown when the pointer hovers over it: value, interval, n.
    pub(crate) note: String,
}

/// Points of one encoding; `look` selects colour, dash and marker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) look: usize,
    pub(crate) label: String,
    pub(crate) points: Vec<Point>,
}

/// An axis: label and scale.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
}

impl Axis {
    pub(crate) fn new(label: impl Into<String>, scale: Scale) -> Self {
        Self { label: label.into(), scale }
    }
}

/// Number of markers on a line with many points.
pub(crate) const FEW_MARKS: usize = 6;

/// Markers of the points of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marks {
    /// A marker and an interval at each point, for few points.
    Points,
    /// A line with a few markers and no intervals, for many points.
    Few,
}

/// Line chart: one line for each encoding.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lines {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Vertical rules: position and label.
    pub(crate) rules: Vec<(f64, String)>,
    /// A horizontal line with a label and a point for each x, for example the exact match of guessing.
    pub(crate) level: Option<(Vec<(f64, f64)>, String)>,
    pub(crate) marks: Marks,
    pub(crate) series: Vec<Series>,
    /// Looks of the series that are drawn in grey, in the background.
    pub(crate) quiet: Vec<usize>,
}

impl Lines {
    /// A chart without rules.
    pub(crate) fn new(x: Axis, y: Axis, marks: Marks, series: Vec<Series>) -> Self {
        Self { x, y, rules: Vec::new(), level: None, marks, series, quiet: Vec::new() }
    }
}

/// Dots along a horizontal axis. Each group has a heading and one row for each series, whose only point has its value
/// in `y`; `x` is unused.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dots {
    pub(crate) value: Axis,
    /// Vertical rules: value and label, for example the exact match of guessing.
    pub(crate) rules: Vec<(f64, String)>,
    pub(crate) groups: Vec<(String, Vec<Series>)>,
}

/// Scatter chart: one point for each encoding, a metric against a cost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scatter {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Horizontal rule: value and label.
    pub(crate) level: Option<(f64, String)>,
    /// Points of the Pareto front, by rising cost.
    pub(crate) front: Vec<(f64, f64)>,
    pub(crate) series: Vec<Series>,
}

/// Heat maps: one for each encoding.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Heat {
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    pub(crate) columns: Vec<u64>,
    pub(crate) rows: Vec<u64>,
    pub(crate) maps: Vec<HeatMap>,
}

/// A heat map of shares from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HeatMap {
    pub(crate) look: usize,
    pub(crate) label: String,
    /// Rows of values, each with one value per column; `None`: not measured.
    pub(crate) values: Vec<Vec<Option<f64>>>,
}

/// Shares in colours with their values: a row for each encoding, a column for each workload.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShareMatrix {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<MatrixRow>,
}

/// Row of a [`ShareMatrix`] with one cell per column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MatrixRow {
    /// Look of the encoding; `None` for reference values.
    pub(crate) look: Option<usize>,
    pub(crate) label: String,
    pub(crate) cells: Vec<Option<MatrixCell>>,
}

/// Share of a [`ShareMatrix`], 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MatrixCell {
    pub(crate) share: f64,
    pub(crate) is_hatched: bool,
}

/// The plot of a figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plot {
    Lines(Lines),
    Dots(Dots),
    Scatter(Scatter),
    Heat(Heat),
    Matrix(ShareMatrix),
    /// Small line charts of shares below their names, with the names of all series once.
    Panels(Vec<(String, Lines)>),
}

/// A figure of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) plot: Plot,
    /// Name of its file without extension, unique in the document; `None` for a figure of pages alone.
    pub(crate) file: Option<String>,
}

impl Figure {
    pub(crate) fn new(title: String, caption: impl Into<String>, plot: Plot) -> Self {
        Self { title, caption: caption.into(), plot, file: None }
    }

    /// Returns the path of the SVG file, relative to the report; `None` for a figure of pages alone.
    pub(crate) fn path(&self) -> Option<String> {
        self.file.as_ref().map(|file| format!("figures/{file}.svg"))
    }
}

use super::*;
use crate::document::plot::{
    Axis, Dots, Heat, HeatMap, Lines, Marks, MatrixCell, MatrixRow, Point, Scatter, Series,
    ShareMatrix,
};
use crate::document::scale::Scale;
use crate::document::{Section, report};
use analysis::{Report, ReportMeta};
use records::testkit::suite;

fn figure(title: &str, plot: Plot) -> Figure {
    Figure::new(title.into(), "", plot)
}

fn series(look: usize, label: &str, values: &[f64]) -> Series {
    let points = values
        .iter()
        .zip(1..)
        .map(|(y, x)| Point { x: f64::from(x), y: *y, bar: None, note: String::new() })
        .collect();
    Series { look, label: label.into(), points }
}

#[test]
fn a_file_has_namespace_and_style_and_asks_nobody() {
    let axis = Axis::new("value", Scale::percent());
    let file =
        svg(&figure("t", Plot::Dots(Dots { value: axis, rules: Vec::new(), groups: Vec::new() })));
    assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    assert!(file.contains(".chart .s") && file.trim_end().ends_with("</svg>"));
    assert_eq!(file.matches("http").count(), 1, "the namespace alone");
}

#[test]
fn a_long_label_of_an_axis_right_of_long_names_stays_within_the_drawing() {
    let axis = Axis::new("points by which the encoding is better than RoPE", Scale::percent());
    let name = "an encoding with a name of so many characters";
    let groups = vec![(String::new(), vec![series(0, name, &[0.5])])];
    let file = svg(&figure("t", Plot::Dots(Dots { value: axis, rules: Vec::new(), groups })));
    let (before, _) = file.split_once("\" text-anchor=\"middle\">points by").unwrap();
    let place = before.rsplit_once("<text x=\"").unwrap().1.split_once('"').unwrap().0;
    let middle: f64 = place.parse().unwrap();
    // 47 characters of up to 6.7 pixels, in a drawing of 480.
    assert!(middle + 47.0 * 6.7 / 2.0 <= 480.0 && middle > 240.0, "{middle}");
}

#[test]
fn values_that_are_not_finite_leave_no_mark() {
    let plot = Lines {
        x: Axis::new("length", Scale::at(&[1.0, 2.0])),
        y: Axis::new("share", Scale::percent()),
        rules: vec![(1.0, "trained".into())],
        level: Some((vec![(1.0, 0.5), (2.0, 0.5)], "chance".into())),
        marks: Marks::Points,
        series: vec![series(0, "a<b", &[0.5, f64::NAN]), series(9, "gone", &[f64::NAN])],
        quiet: Vec::new(),
    };
    let file = svg(&figure("t & u", Plot::Lines(plot)));
    assert!(!file.contains("NaN") && !file.contains("inf"), "{file}");
    assert!(file.contains("a&lt;b") && file.contains("t &amp; u") && !file.contains("gone"));
    assert_eq!(file.matches("<use ").count(), 1);
}

#[test]
fn both_axes_have_a_label_and_that_of_a_rule_keeps_clear_of_it() {
    let lines = Lines {
        rules: vec![(1.0, "trained at 1".into())],
        ..Lines::new(
            Axis::new("length", Scale::at(&[1.0, 2.0])),
            Axis::new("exact match", Scale::percent()),
            Marks::Points,
            vec![series(0, "RoPE", &[0.5, 0.4])],
        )
    };
    let file = svg(&figure("t", Plot::Lines(lines)));
    assert!(file.contains(">length</text>"), "{file}");
    assert!(file.contains("<text x=\"8\" y=\"32\">exact match</text>"));
    // Eleven characters of 6.7 pixels from 8 on, and a space.
    assert!(file.contains("<text x=\"89.7\" y=\"32\">trained at 1</text>"));
    let dots = Dots {
        value: Axis::new("mean rank", Scale::linear(&[1.0, 2.0])),
        rules: Vec::new(),
        groups: vec![(String::new(), vec![series(0, "RoPE", &[1.5])])],
    };
    let file = svg(&figure("t", Plot::Dots(dots)));
    // One row of a group without a name: 40 + 18 pixels above the ticks, 40 below.
    assert!(file.contains("viewBox=\"0 0 480 98\""), "{file}");
    assert!(file.contains("y=\"91\" text-anchor=\"middle\">mean rank</text>"), "{file}");
}

#[test]
fn an_encoding_keeps_its_colour_in_every_figure() {
    let results = Report::new(suite(), &ReportMeta::default()).unwrap();
    let rope = results.encoding("rope").unwrap().look;
    let document = report(&results, Section::default()).unwrap();
    for figure in document.figures() {
        let mark = format!("<g class=\"s c{rope}\"><title>RoPE</title>");
        assert!(svg(figure).contains(&mark), "{}", figure.title);
    }
}

#[test]
fn a_scatter_names_every_encoding_and_draws_the_front() {
    let plot = Scatter {
        x: Axis::new("FLOPs", Scale::around(&[1.0, 2.0])),
        y: Axis::new("share", Scale::percent()),
        level: Some((0.5, "chance".into())),
        front: vec![(1.0, 0.2), (2.0, 0.9)],
        series: (0..30).map(|i| series(i, &format!("encoding {i}"), &[0.03 * i as f64])).collect(),
    };
    let file = svg(&figure("t", Plot::Scatter(plot)));
    assert_eq!(file.matches("<g class=\"s ").count(), 30);
    assert_eq!(file.matches("<path class=\"rule\"").count(), 2, "chance and the front");
}

#[test]
fn what_was_not_measured_is_a_hole_in_the_map() {
    let map = HeatMap {
        look: 0,
        label: "RoPE".into(),
        values: vec![vec![Some(0.0), Some(1.0)], vec![None, Some(0.5)]],
    };
    let plot = Heat {
        x_label: "length".into(),
        y_label: "depth".into(),
        columns: vec![64, 128],
        rows: vec![0, 1],
        maps: vec![map],
    };
    let file = svg(&figure("t", Plot::Heat(plot)));
    // Three cells of different colours and the 24 steps of the scale.
    assert_eq!(file.matches(" fill=\"#").count(), 27);
    assert!(
        file.contains("d=\"M0 0h1.05v1.05h-1.05z\"") && file.contains("d=\"M1 1h1.05"),
        "{file}"
    );
}

#[test]
fn the_numbers_of_a_matrix_can_be_read_on_their_colours() {
    let cell = |share: f64, is_hatched: bool| Some(MatrixCell { share, is_hatched });
    let cells = vec![cell(0.04, true), cell(0.96, false), None, cell(f64::NAN, false)];
    let rows = vec![MatrixRow { look: Some(0), label: "a<b".into(), cells }];
    let columns = ["v", "w", "x", "y"].map(str::to_owned).to_vec();
    let file = svg(&figure("t", Plot::Matrix(ShareMatrix { columns, rows })));
    assert!(file.contains("class=\"pale\"") && file.contains(">4</text>"), "{file}");
    assert!(
        file.contains("class=\"dark\"") && file.contains(">96</text>") && file.contains("a&lt;b")
    );
    assert_eq!((file.matches("class=\"hatch").count(), file.contains("NaN")), (1, false));
}

#[test]
fn small_charts_share_one_legend() {
    let panel = |name: &str| {
        let axis = Axis::new("length", Scale::at(&[1.0, 2.0]));
        let share = Axis::new("exact match", Scale::percent());
        (
            name.to_owned(),
            Lines::new(axis, share, Marks::Points, vec![series(0, "RoPE", &[1.0, 0.5])]),
        )
    };
    let file = svg(&figure("t", Plot::Panels(vec![panel("v"), panel("w")])));
    assert_eq!(file.matches(">RoPE</text>").count(), 1, "{file}");
    assert_eq!(
        (file.matches("class=\"line\"").count(), file.matches("class=\"frame\"").count()),
        (2, 2)
    );
}

#[test]
fn lines_in_the_background_are_grey_and_named_with_their_values() {
    let mut all: Vec<Series> = (0..3).map(|i| series(i, &format!("e{i}"), &[0.5, 0.4])).collect();
    for series in &mut all {
        series.points[0].note = "50%".to_owned();
        series.points[1].note = "40%".to_owned();
    }
    let lines = Lines::new(
        Axis::new("length", Scale::at(&[1.0, 2.0])),
        Axis::new("share", Scale::percent()),
        Marks::Points,
        all,
    );
    let file = svg(&figure("t", Plot::Lines(Lines { quiet: vec![1], ..lines })));
    let quiet = "<g class=\"s o\"><title>e1: 50%; 40%</title><path class=\"line\"";
    assert!(file.contains(quiet) && !file.contains(">e1</text>"), "{file}");
    assert_eq!(file.matches("<use ").count(), 4);
    assert!(file.contains("aria-label=\"t. e0 40%; e2 40%.\""), "{file}");
    assert!(file.find(quiet) < file.find("<title>e0</title>"), "behind the others");
}

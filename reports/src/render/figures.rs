//! Which figures a report has, in which order.

use std::collections::{BTreeMap, BTreeSet};

use super::chart::{Lines, Point, Series, dots, lines};
use super::scale::Scale;
use crate::aggregate::Aggregate;
use crate::model::{Report, Workload};
use crate::standing::Metric;
use crate::stats::Estimate;

/// What a figure shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The headline metric by length.
    Headline,
    /// The second metric by length.
    Second,
    /// Loss by step.
    Training,
}

/// A figure of a workload.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    pub(super) workload: String,
    pub(super) kind: Kind,
    pub(super) title: String,
    pub(super) caption: String,
    pub(super) svg: String,
    file: String,
}

impl Figure {
    /// Relative to the report.
    pub(super) fn path(&self) -> String {
        format!("figures/{}.svg", self.file)
    }
}

/// All figures: by workload, then headline, second metric, training.
pub(super) fn figures(report: &Report) -> Vec<Figure> {
    let mut figures = Vec::new();
    for workload in &report.workloads {
        figures.extend(by_length(report, workload, workload.headline, Kind::Headline));
        if workload.headline == Metric::ExactMatch {
            figures.extend(by_length(report, workload, Metric::TokenAccuracy, Kind::Second));
        }
        figures.extend(training(report, workload));
    }
    let mut taken = BTreeSet::new();
    for figure in &mut figures {
        let base = slug(&figure.title);
        let mut file = base.clone();
        // Names that differ only in signs must not share a file.
        let mut number = 2;
        while !taken.insert(file.clone()) {
            file = format!("{base}-{number}");
            number += 1;
        }
        figure.file = file;
    }
    figures
}

fn slug(title: &str) -> String {
    let words = title
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase);
    words.collect::<Vec<_>>().join("-")
}

fn estimate_of(row: &Aggregate, metric: Metric) -> Estimate {
    match metric {
        Metric::ExactMatch => row.exact_match,
        Metric::TokenAccuracy => row.token_accuracy,
        Metric::Perplexity => row.nll.map(f64::exp),
    }
}

fn series_of(report: &Report, rows: &[&Aggregate], metric: Metric) -> Vec<Series> {
    let mut by_encoding: BTreeMap<&str, Vec<&Aggregate>> = BTreeMap::new();
    for row in rows {
        by_encoding.entry(&row.encoding).or_default().push(row);
    }
    by_encoding
        .into_iter()
        .map(|(encoding, rows)| Series {
            slot: report.encoding(encoding).map_or(0, |e| e.slot),
            label: report.display(encoding).to_owned(),
            points: rows
                .into_iter()
                .map(|row| {
                    let estimate = estimate_of(row, metric);
                    Point { x: row.len as f64, y: estimate.mean, bar: estimate.ci95 }
                })
                .collect(),
        })
        .collect()
}

/// A scale for `series`. Only means stretch it: the interval of two seeds may be a thousand times
/// as wide as what is to be seen, so bars are cut at the frame.
fn scale_of(metric: Metric, series: &[Series]) -> Scale {
    if metric.higher_is_better() {
        Scale::percent()
    } else {
        let means: Vec<f64> = series.iter().flat_map(|s| &s.points).map(|p| p.y).collect();
        Scale::around(&means)
    }
}

fn by_length(report: &Report, workload: &Workload, metric: Metric, kind: Kind) -> Vec<Figure> {
    let mut splits: BTreeMap<&str, Vec<&Aggregate>> = BTreeMap::new();
    for row in &workload.rows {
        splits.entry(&row.split).or_default().push(row);
    }
    let rules: Vec<(f64, String)> =
        workload.train_lens.iter().map(|len| (*len as f64, format!("trained at {len}"))).collect();
    let bars = if workload.rows.iter().any(|r| r.exact_match.n > 1) {
        " Bars: 95 % interval over seeds, cut at the frame."
    } else {
        " One seed: no interval."
    };
    let figure = |title: String, what: &str, svg: String| Figure {
        workload: workload.name.clone(),
        kind,
        caption: format!("{what}{bars}"),
        title,
        svg,
        file: String::new(),
    };
    let mut figures = Vec::new();
    let mut single: Vec<(String, Vec<Series>)> = Vec::new();
    // Splits in distribution first: they are what the others are compared with.
    let mut ordered: Vec<_> = splits.into_iter().collect();
    ordered.sort_by_key(|(_, rows)| !rows.iter().any(|r| r.in_distribution));
    for (split, rows) in ordered {
        let series = series_of(report, &rows, metric);
        let lens: BTreeSet<u64> = rows.iter().map(|r| r.len).collect();
        if let [len] = lens.iter().copied().collect::<Vec<_>>()[..] {
            let region = if rows.iter().any(|r| r.in_distribution) {
                "in distribution"
            } else {
                "beyond training"
            };
            single.push((format!("{split} at {len} {} ({region})", workload.len_unit), series));
            continue;
        }
        let mut along: Vec<f64> = lens.iter().map(|len| *len as f64).collect();
        along.extend(rules.iter().map(|(len, _)| *len));
        let chance =
            workload.chance.filter(|_| kind == Kind::Headline && metric.higher_is_better());
        let title = format!("{}: {} on {split}", workload.name, metric.name());
        let svg = lines(&Lines {
            title: &title,
            x_label: &format!("length in {}", workload.len_unit),
            x: Scale::at(&along),
            y: scale_of(metric, &series),
            rules: &rules,
            level: chance.map(|chance| (chance, "chance")),
            markers: true,
            series: &series,
        });
        let what = format!("{} by length, mean over seeds.", capital(metric.name()));
        figures.push(figure(title, &what, svg));
    }
    if !single.is_empty() {
        let all: Vec<Series> = single.iter().flat_map(|(_, series)| series.clone()).collect();
        let which = if figures.is_empty() { "" } else { ", splits of one length" };
        let title = format!("{}: {}{which}", workload.name, metric.name());
        let svg = dots(&title, &scale_of(metric, &all), &single);
        let what = format!("{}, mean over seeds.", capital(metric.name()));
        figures.push(figure(title, &what, svg));
    }
    figures
}

fn training(report: &Report, workload: &Workload) -> Option<Figure> {
    let series: Vec<Series> = workload
        .training
        .iter()
        .filter(|curve| !curve.points.is_empty())
        .map(|curve| Series {
            slot: report.encoding(&curve.encoding).map_or(0, |e| e.slot),
            label: report.display(&curve.encoding).to_owned(),
            points: curve
                .points
                .iter()
                .map(|(step, loss)| Point { x: *step as f64, y: *loss, bar: None })
                .collect(),
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    let points = || series.iter().flat_map(|s| &s.points);
    let steps: Vec<f64> = points().map(|p| p.x).collect();
    let losses: Vec<f64> = points().map(|p| p.y).collect();
    let title = format!("{}: training loss", workload.name);
    let svg = lines(&Lines {
        title: &title,
        x_label: "step",
        x: Scale::linear(&steps),
        y: Scale::around(&losses),
        rules: &[],
        level: None,
        markers: false,
        series: &series,
    });
    Some(Figure {
        workload: workload.name.clone(),
        kind: Kind::Training,
        caption: "Loss in nats per scored token, mean since the point before, mean over seeds."
            .into(),
        title,
        svg,
        file: String::new(),
    })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ReportMeta;
    use crate::testkit::{Cell, suite};

    #[test]
    fn splits_with_lengths_have_lines_and_the_others_share_dots() {
        let report = Report::new(&suite(), &ReportMeta::default()).unwrap();
        let titles: Vec<_> = figures(&report).into_iter().map(|f| f.title).collect();
        assert_eq!(
            titles,
            [
                "flip-flop: exact match on sparse",
                "flip-flop: exact match, splits of one length",
                "flip-flop: token accuracy on sparse",
                "flip-flop: token accuracy, splits of one length",
                "flip-flop: training loss",
                "text: perplexity",
                "text: training loss",
            ]
        );
    }

    #[test]
    fn an_encoding_keeps_its_colour_in_every_figure() {
        let report = Report::new(&suite(), &ReportMeta::default()).unwrap();
        let rope = report.encoding("rope").unwrap().slot;
        for figure in figures(&report) {
            let mark = format!("<g class=\"s c{rope} d0\"><title>RoPE</title>");
            assert!(figure.svg.contains(&mark), "{}", figure.title);
        }
    }

    #[test]
    fn figures_of_like_names_do_not_share_a_file() {
        let records = ["a b", "a-b"].map(|name| Cell::new(name, "rope", 0).record());
        let report = Report::new(&records, &ReportMeta::default()).unwrap();
        let paths: BTreeSet<_> = figures(&report).iter().map(Figure::path).collect();
        assert_eq!(paths.len(), figures(&report).len());
        assert!(paths.contains("figures/a-b-exact-match-2.svg"), "{paths:?}");
    }
}

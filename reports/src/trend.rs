//! Trend of every workload and encoding over the nights.

use std::collections::BTreeSet;

use crate::document::figures::series::quieten;
use crate::document::plot::{Axis, Lines, Marks, Plot, Point, Series};
use crate::document::scale::Scale;
use crate::document::{Document, Element, Figure, Section, Table, TableCell};
use analysis::looks;
use analysis::nightly::history::{Night, NightLine};
use records::number::{bytes, percent, si, thousands, three_digits};

/// Maximum number of ticks of the axis of nights.
const TICKS: usize = 8;

/// A quantity that is plotted over the nights.
struct Quantity {
    name: &'static str,
    /// Head of its table column.
    column: &'static str,
    get: fn(&NightLine) -> Option<f64>,
    show: fn(f64) -> String,
    /// Whether the quantity is a share, plotted from 0 to 100%.
    share: bool,
}

const QUANTITIES: [Quantity; 9] = [
    share("exact match in distribution", "exact match", |line| line.exact_match),
    share("token accuracy beyond training", "token accuracy beyond training", |line| {
        line.beyond_token_accuracy
    }),
    quantity("nll in distribution, nats per scored token", "nll", three_digits, |line| line.nll),
    quantity("median step time, ms", "ms per step", three_digits, |line| {
        line.step_seconds.map(|seconds| 1000.0 * seconds)
    }),
    quantity("parameters", "parameters", si, |line| Some(line.params as f64)),
    quantity("operations of a training step, by formula", "FLOPs", si, |line| {
        Some(line.flops_train_step as f64)
    }),
    quantity("instructions of a training step", "instructions", si, |line| line.step_instructions),
    quantity("allocations of a training step", "allocations", whole, |line| line.step_allocations),
    quantity("bytes allocated in a training step", "allocated", bytes, |line| {
        line.step_allocated_bytes
    }),
];

const fn quantity(
    name: &'static str,
    column: &'static str,
    show: fn(f64) -> String,
    get: fn(&NightLine) -> Option<f64>,
) -> Quantity {
    Quantity { name, column, get, show, share: false }
}

const fn share(
    name: &'static str,
    column: &'static str,
    get: fn(&NightLine) -> Option<f64>,
) -> Quantity {
    Quantity { name, column, get, show: percent, share: true }
}

fn whole(count: f64) -> String {
    thousands(count.round() as u64)
}

/// Returns the trend as a document: the last night compared with the one before, figures by workload, the commits.
pub fn document(nights: &[Night]) -> Document {
    let about = match nights {
        [] => "There are no nightly runs yet.".to_owned(),
        [_] => "This page shows 1 nightly run. Each point is the mean over the seeds of this run."
            .to_owned(),
        _ => format!(
            "This page shows {} nightly runs. Each point is the mean over the seeds of a nightly run.",
            nights.len()
        ),
    };
    let mut sections: Vec<Section> =
        nights.last().map(|last| last_night(nights, last)).into_iter().collect();
    sections.extend(names(nights, |line| &line.workload).iter().map(|workload| {
        let figures = QUANTITIES.iter().filter_map(|q| figure(nights, workload, q)).collect();
        Section::of_figures(workload, figures)
    }));
    if !nights.is_empty() {
        sections.push(commits(nights));
    }
    Document { title: "Nights".to_owned(), elements: vec![Element::Prose(about)], sections }
}

/// Returns the section of the last night; numbers that differ from those of the night before are shown with both
/// values.
fn last_night(nights: &[Night], last: &Night) -> Section {
    let before = nights.len().checked_sub(2).and_then(|index| nights.get(index));
    let cell = |quantity: &Quantity, line: &NightLine| -> TableCell {
        let same = |l: &&NightLine| l.workload == line.workload && l.encoding == line.encoding;
        let old = before.and_then(|night| night.lines.iter().find(same));
        let now = (quantity.get)(line).map_or_else(|| "–".to_owned(), quantity.show);
        match old.and_then(quantity.get).map(quantity.show) {
            Some(was) if was != now => format!("{was} → {now}").into(),
            _ => now.into(),
        }
    };
    let table = Table::of(&last.lines)
        .column("workload", |line| line.workload.clone())
        .column("encoding", |line| line.encoding.clone())
        .columns(
            &QUANTITIES,
            |quantity| quantity.column.to_owned(),
            |quantity, line| cell(quantity, line),
        )
        .table();
    Section::of_table("Last night", table)
}

fn commits(nights: &[Night]) -> Section {
    let table = Table::of((1..).zip(nights))
        .column("night", |(number, _): &(usize, _)| number.to_string())
        .column("started", |(_, night)| night.started_utc.clone())
        .column("commit", |(_, night)| {
            let dirty = if night.dirty == Some(true) { ", with uncommitted changes" } else { "" };
            format!("{}{dirty}", night.commit.as_deref().unwrap_or("unknown"))
        })
        .column("gate", |(_, night)| match night.passed {
            Some(true) => "passed",
            Some(false) => "failed",
            None => "no baseline",
        })
        .table();
    Section::of_table("Commits", table.in_words())
}

fn names(nights: &[Night], get: fn(&NightLine) -> &String) -> Vec<String> {
    let all: BTreeSet<&String> = nights.iter().flat_map(|night| &night.lines).map(get).collect();
    all.into_iter().cloned().collect()
}

/// Draws one quantity on one workload, a line for each encoding; `None` if no night has it.
fn figure(nights: &[Night], workload: &str, quantity: &Quantity) -> Option<Figure> {
    let place = |index: usize| (index + 1) as f64;
    let points = |encoding: &str| -> Vec<Point> {
        let own = |l: &&NightLine| l.workload == workload && l.encoding == encoding;
        let values = nights.iter().enumerate().filter_map(|(index, night)| {
            let y = night.lines.iter().find(own).and_then(quantity.get)?;
            let note = format!("{}: {}", night.short_commit(), (quantity.show)(y));
            Some(Point { x: place(index), y, bar: None, note })
        });
        values.collect()
    };
    let encodings = names(nights, |line| &line.encoding);
    let known = encodings.clone();
    let looks = looks(known.iter().map(String::as_str));
    let series: Vec<Series> = encodings
        .into_iter()
        .map(|label| Series { look: looks[&*label], points: points(&label), label })
        .filter(|series| !series.points.is_empty())
        .collect();
    let values: Vec<f64> = series.iter().flat_map(|s| &s.points).map(|p| p.y).collect();
    if values.is_empty() {
        return None;
    }
    let every = nights.len().div_ceil(TICKS).max(1);
    let ticks = nights.iter().enumerate().step_by(every);
    let ticks = ticks.map(|(index, night)| (place(index), night.short_commit())).collect();
    let along = Scale { ticks, only_ticks: true, ..Scale::linear(&[1.0, nights.len() as f64]) };
    let failed = nights.iter().enumerate().filter(|(_, night)| night.passed == Some(false));
    let scale = if quantity.share { Scale::percent() } else { Scale::around(&values) };
    let (x, y) = (Axis::new("commit", along), Axis::new(quantity.name, scale));
    let rules = failed.map(|(index, _)| (place(index), "failed".to_owned())).collect();
    let plot = Plot::Lines(Lines { rules, ..Lines::new(x, y, Marks::Points, series) });
    let title = format!("{workload}: {}", quantity.name);
    let mut figure = Figure::new(title, quantity.name, plot);
    quieten(&mut figure, &[]);
    Some(figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{html_document, markdown_document};
    use records::RunRecord;
    use records::testkit::TestCell;

    #[test]
    fn nights_are_drawn_with_their_commits() {
        let mut records: Vec<RunRecord> =
            ["a", "b"].map(|workload| TestCell::new(workload, "rope", 0).record()).into();
        let first = Night::of(&records, None).unwrap();
        for record in &mut records {
            record.started_utc = "2026-01-03T03:04:05Z".into();
            record.commit = Some("<script>alert(1)</script>".into());
            record.workload = format!("{}<img>", record.workload);
        }
        let nights = [first, Night::of(&records, Some(false)).unwrap()];
        let page = html_document(&document(&nights));
        assert!(page.matches("<script").count() == 1 && !page.contains("<img"), "{page}");
        assert!(
            page.contains("abc1234") && page.contains(">failed</text>"),
            "the failed night is marked"
        );
        let text = markdown_document(&document(&nights));
        assert!(text.contains("| 2 | 2026-01-03T03:04:05Z |") && !text.contains("<img"), "{text}");
        assert_eq!(
            markdown_document(&document(&[])),
            "# Nights\n\nThere are no nightly runs yet.\n"
        );
    }
}

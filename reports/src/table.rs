//! The tables of a report, without a format.

mod costs;
mod front;
mod gates;
mod grid;
mod ranks;
mod records;

pub use costs::{costs, flops};
pub use front::{prices, summary};
pub use gates::gates;
pub use grid::grid;
pub use ranks::{ablation, outcomes, ranks, statistics};
pub use records::{cells, groups, not_counted, skipped_evaluations};

use crate::model::{Report, Workload};
use crate::number::three_digits;
use crate::standing::Metric;
use crate::stats::Estimate;

/// Behind the best by no more than noise.
pub const LEVEL: &str = "†";
/// Not ranked.
pub const UNRANKED: &str = "‡";

/// Rows of text below a heading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Heads of the columns, a second line after `\n` in smaller print. The first column is text, the
    /// others are numbers unless `words`.
    pub columns: Vec<String>,
    /// Each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
    /// Whether columns hold words, not numbers.
    pub words: bool,
    /// What the reader must know, one sentence each.
    pub notes: Vec<String>,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// What belongs to it in smaller print: interval and n.
    pub detail: String,
    /// Set in bold.
    pub strong: bool,
    /// The encoding whose row begins here, by its slot.
    pub encoding: Option<usize>,
    /// The group of records that the number comes from; see [`Report::anchor`].
    pub cells: Option<String>,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl Cell {
    /// The name of an encoding, at the head of its row.
    pub(crate) fn of_encoding(report: &Report, name: &str) -> Self {
        let slot = report.encoding(name).map(|encoding| encoding.slot);
        Self { encoding: slot, ..Self::from(report.display(name)) }
    }

    /// With the records that it comes from.
    fn with_cells(self, report: &Report, workload: &Workload, encoding: &str) -> Self {
        Self { cells: report.anchor(workload, encoding), ..self }
    }
}

impl Table {
    /// Without the columns in which every row has a dash.
    fn without_empty_columns(mut self) -> Self {
        let empty = |column: usize| self.rows.iter().all(|row| row[column].text == "–");
        let kept: Vec<usize> = (0..self.columns.len()).filter(|column| !empty(*column)).collect();
        if !self.rows.is_empty() {
            self.columns = kept.iter().map(|column| self.columns[*column].clone()).collect();
            for row in &mut self.rows {
                *row = kept.iter().map(|column| row[*column].clone()).collect();
            }
        }
        self
    }

    /// The same table in pieces of at most `most` columns beside the first, which every piece repeats.
    pub(crate) fn pieces(&self, most: usize) -> Vec<Self> {
        let columns = self.columns.len().saturating_sub(1);
        // Pieces of nearly one width read better than a full one and a rest.
        let count = columns.div_ceil(most.max(1)).max(1);
        let width = columns.div_ceil(count).max(1);
        (0..count)
            .map(|piece| {
                let from = 1 + piece * width;
                let to = (from + width).min(self.columns.len());
                let cut = |row: &[Cell]| [&row[..1], &row[from..to]].concat();
                let last = piece + 1 == count;
                Self {
                    columns: [&self.columns[..1], &self.columns[from..to]].concat(),
                    rows: self.rows.iter().map(|row| cut(row)).collect(),
                    words: self.words,
                    notes: if last { self.notes.clone() } else { Vec::new() },
                }
            })
            .collect()
    }
}

pub(crate) fn heads<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// `97.1 %`, and in detail `[92.0 to 100.0] n=3`.
fn with_interval(metric: Metric, estimate: &Estimate) -> Cell {
    // An interval without width says no more than the mean.
    let interval = estimate
        .ci95
        .filter(|(low, high)| metric.show(*low) != metric.show(*high))
        .map_or_else(String::new, |ci| format!("[{}] ", metric.show_interval(ci)));
    Cell {
        text: metric.show(estimate.mean),
        detail: format!("{interval}n={}", estimate.n),
        ..Cell::default()
    }
}

/// `97.1 %`, and in detail `[92.0 to 99.0]`, the bootstrap interval.
fn median(metric: Metric, estimate: &Estimate) -> Cell {
    let interval = estimate
        .bootstrap
        .map(|b| b.median95)
        .filter(|(low, high)| metric.show(*low) != metric.show(*high))
        .map_or_else(String::new, |ends| format!("[{}]", metric.show_interval(ends)));
    Cell { text: metric.show(estimate.median), detail: interval, ..Cell::default() }
}

/// Every aggregated evaluation of a workload.
pub fn evaluations(report: &Report, workload: &Workload) -> Table {
    let text = workload.headline == Metric::Perplexity;
    let mut columns = heads(["encoding", "split", "length"]);
    if text {
        columns.extend(heads(["perplexity", "median", "bits per byte", "token accuracy"]));
    } else {
        columns.extend(heads(["exact match", "median", "token accuracy", "nll, nats per token"]));
    }
    let rows = workload
        .rows
        .iter()
        .map(|row| {
            let mut cells = vec![
                Cell::of_encoding(report, &row.encoding).with_cells(
                    report,
                    workload,
                    &row.encoding,
                ),
                Cell::from(if row.in_distribution {
                    row.split.clone()
                } else {
                    format!("{} (beyond)", row.split)
                }),
                Cell::from(row.len.to_string()),
            ];
            let tokens = with_interval(Metric::TokenAccuracy, &row.token_accuracy);
            if text {
                cells.push(with_interval(Metric::Perplexity, &row.nll));
                cells.push(median(Metric::Perplexity, &row.nll));
                cells.push(optional(row.bits_per_byte, three_digits));
                cells.push(tokens);
            } else {
                cells.push(with_interval(Metric::ExactMatch, &row.exact_match));
                cells.push(median(Metric::ExactMatch, &row.exact_match));
                cells.push(tokens);
                cells.push(three_digits(row.nll.mean).into());
            }
            cells
        })
        .collect();
    let notes = vec![ranks::INTERVALS.to_owned()];
    Table { columns, rows, notes, ..Table::default() }
}

fn optional(value: Option<f64>, show: impl Fn(f64) -> String) -> Cell {
    value.map_or_else(|| Cell::from("–"), |value| show(value).into())
}

/// `a`, and in detail `[low to high]`, over several workloads; a dash without any.
fn spread(mut values: Vec<f64>, show: impl Fn(f64) -> String) -> Cell {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (values.first(), values.last()) else { return "–".into() };
    let detail = if values.len() > 1 && show(*low) != show(*high) {
        format!("[{} to {}]", show(*low), show(*high))
    } else {
        String::new()
    };
    Cell { text: show(crate::stats::estimate::middle(&values)), detail, ..Cell::default() }
}

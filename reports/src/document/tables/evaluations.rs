//! Evaluations of a workload, aggregated over seeds.

use super::common::{MEAN, MEDIAN, median, with_interval};
use crate::analysis::{Report, Workload};
use crate::document::table::{Table, TableCell, heads};
use crate::number::three_digits;
use crate::record::Metric;

/// Returns the table of all aggregated evaluations of a workload.
pub fn evaluations(report: &Report, workload: &Workload) -> Table {
    let text = workload.headline == Metric::Perplexity;
    let mut columns = heads(["encoding", "split", "length"]);
    if text {
        columns.extend(heads(["perplexity", "median", "bits per byte", "token accuracy"]));
    } else {
        columns.extend(heads(["exact match", "median", "token accuracy", "nll, nats per token"]));
    }
    let table = Table::of(columns, &workload.rows, |row| {
        let beyond = if row.in_distribution { "" } else { " (beyond)" };
        let mut cells = vec![
            TableCell::of_results(report, workload, &row.encoding),
            format!("{}{beyond}", row.split).into(),
            row.len.to_string().into(),
        ];
        let tokens = with_interval(Metric::TokenAccuracy, &row.token_accuracy);
        if text {
            cells.push(with_interval(Metric::Perplexity, &row.nll));
            cells.push(median(Metric::Perplexity, &row.nll));
            cells.push(TableCell::optional(row.bits_per_byte, three_digits));
            cells.push(tokens);
        } else {
            cells.push(with_interval(Metric::ExactMatch, &row.exact_match));
            cells.push(median(Metric::ExactMatch, &row.exact_match));
            cells.push(tokens);
            cells.push(three_digits(row.nll.mean).into());
        }
        cells
    });
    table.with_legend(MEAN).with_legend(MEDIAN)
}

//! Evaluations of a workload, aggregated over seeds.

use super::common::{MEAN, MEDIAN, median, with_interval};
use crate::document::table::{Table, TableCell};
use analysis::aggregate::Aggregate;
use analysis::{Report, Workload};
use records::Metric;
use records::number::three_digits;

/// Returns the table of all aggregated evaluations of a workload.
pub fn evaluations(report: &Report, workload: &Workload) -> Table {
    let table = Table::of(&workload.rows)
        .column("encoding", |row| TableCell::of_encoding(report, &row.encoding))
        .column("split", |row| {
            let beyond = match (row.in_distribution, row.unseen_samples) {
                (true, _) => "",
                (false, Some(0)) => " (trained sizes)",
                (false, None) => " (beyond training)",
                (false, Some(_)) => " (beyond training, only larger questions)",
            };
            format!("{}{beyond}", row.split)
        })
        .column("length", |row| row.len.to_string());
    let tokens = |row: &&Aggregate| with_interval(Metric::TokenAccuracy, &row.token_accuracy);
    let table = if workload.headline == Metric::Perplexity {
        table
            .column("perplexity", |row| with_interval(Metric::Perplexity, &row.nll))
            .column("median", |row| median(Metric::Perplexity, &row.nll))
            .column("bits per byte", |row| TableCell::optional(row.bits_per_byte, three_digits))
            .column("token accuracy", tokens)
    } else {
        table
            .column("exact match", |row| with_interval(Metric::ExactMatch, &row.exact_match))
            .column("median", |row| median(Metric::ExactMatch, &row.exact_match))
            .column("token accuracy", tokens)
            .column("nll, nats per token", |row| three_digits(row.nll.mean))
    };
    let table = table.table();
    table.with_legend(MEAN).with_legend(MEDIAN)
}

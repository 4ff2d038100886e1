//! Time and memory of a training step, measured alone.

use super::common::ratio;
use crate::document::table::{Table, TableCell};
use analysis::{MeasuredStep, Report, YARDSTICK};
use records::number::{bytes, three_digits};

/// Returns the table of measured training steps, the fastest first; no rows without measurements.
pub fn measured(report: &Report) -> Table {
    let steps = &report.meta.measured;
    let rope = steps.iter().find(|step| step.encoding == YARDSTICK);
    let mut order: Vec<&MeasuredStep> = steps.iter().collect();
    order.sort_by(|a, b| a.step_seconds.total_cmp(&b.step_seconds));
    let over = |get: fn(&MeasuredStep) -> Option<f64>, step: &MeasuredStep| {
        TableCell::optional(get(step).zip(rope.and_then(get)), |(value, rope)| ratio(value / rope))
    };
    let milliseconds = |seconds: f64| three_digits(1000.0 * seconds);
    let mut table = Table::of(order)
        .column("encoding", |step| TableCell::of_encoding(report, &step.encoding))
        .column("ms per training step", |step| milliseconds(step.step_seconds))
        .column("step\ntimes RoPE's", |step| over(|step| Some(step.step_seconds), step))
        .column("peak memory", |step| TableCell::optional(step.peak_bytes, |b| bytes(b as f64)))
        .column("memory\ntimes RoPE's", |step| {
            over(|step| step.peak_bytes.map(|bytes| bytes as f64), step)
        })
        .table();
    let conditions = &report.meta.measured_at;
    table.notes = vec![format!("Measured alone on one machine, in one run: {conditions}.")];
    table.without_empty_columns()
}

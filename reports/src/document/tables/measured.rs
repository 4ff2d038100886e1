//! Time and memory of a training step, measured alone.

use super::common::ratio;
use crate::analysis::{MeasuredStep, Report, YARDSTICK};
use crate::document::table::{Table, TableCell};
use crate::number::{bytes, three_digits};

/// Returns the table of measured training steps, the fastest first; no rows without measurements.
pub fn measured(report: &Report) -> Table {
    let steps = &report.meta.measured;
    let rope = steps.iter().find(|step| step.encoding == YARDSTICK);
    let mut order: Vec<&MeasuredStep> = steps.iter().collect();
    order.sort_by(|a, b| a.step_seconds.total_cmp(&b.step_seconds));
    let over = |get: fn(&MeasuredStep) -> Option<f64>, step: &MeasuredStep| {
        TableCell::optional(get(step).zip(rope.and_then(get)), |(own, rope)| ratio(own / rope))
    };
    let columns = [
        "encoding",
        "ms per training step",
        "step\ntimes RoPE's",
        "peak memory",
        "memory\ntimes RoPE's",
    ];
    let mut table = Table::of(columns, order, |step| {
        vec![
            TableCell::of_encoding(report, &step.encoding),
            three_digits(1000.0 * step.step_seconds).into(),
            over(|step| Some(step.step_seconds), step),
            TableCell::optional(step.peak_bytes, |b| bytes(b as f64)),
            over(|step| step.peak_bytes.map(|bytes| bytes as f64), step),
        ]
    });
    let place = &report.meta.measured_at;
    table.notes = vec![format!("Measured alone on one machine, in one run: {place}.")];
    table.without_empty_columns()
}

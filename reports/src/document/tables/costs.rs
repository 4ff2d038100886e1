//! Measured and analytic costs of encodings on a workload.

use super::common::{disturbed_note, mark, ratio};
use crate::document::table::{Table, TableCell};
use analysis::{EncodingCost, MeasuredStep, Report, Workload, YARDSTICK};
use records::number::{bytes, si, thousands, three_digits};

/// Returns the table of throughput, step time and memory, arranged as Table 4 of TAPE (Zhu et al. 2025, arXiv
/// 2501.00712).
pub fn costs(report: &Report, workload: &Workload) -> Table {
    let time = |value: Option<f64>, show: fn(f64) -> String, is_disturbed: bool| {
        TableCell::optional(value, |value| show(value) + &mark(is_disturbed))
    };
    let milliseconds = |cost: &EncodingCost| cost.step_seconds.map(|seconds| 1000.0 * seconds);
    let mut table = Table::of(&workload.costs)
        .column("encoding", |cost| TableCell::of_encoding(report, &cost.encoding))
        .column("tokens/s", |cost| time(cost.tokens_per_second, si, cost.disturbed))
        .column("ms per step", |cost| time(milliseconds(cost), three_digits, cost.disturbed))
        .column("step time relative to RoPE", |cost| {
            time(cost.step_ratio, ratio, cost.disturbed || cost.rope_disturbed)
        })
        .column("training time", |cost| {
            time(
                cost.training_seconds.filter(|seconds| *seconds > 0.0),
                |seconds| format!("{} s", three_digits(seconds)),
                cost.disturbed,
            )
        })
        .column("peak memory", |cost| TableCell::optional(cost.peak_bytes, |b| bytes(b as f64)))
        .column("memory relative to RoPE", |cost| TableCell::optional(cost.memory_ratio, ratio))
        .table();
    table.notes.extend(disturbed_note(workload.costs.iter().map(|cost| cost.disturbed)));
    if workload.machines.len() > 1 {
        table.notes.push(format!(
            "Warning: these cells ran under {} different conditions ({}). Times and memory are comparable only between \
             cells under the same conditions.",
            workload.machines.len(),
            workload.machines.join("; ")
        ));
    }
    let legend = "Step times: median over the steps of a run, then mean over seeds. Training time: all steps of a \
         run, which may stop early; mean over seeds. Peak memory: maximum over seeds.";
    table.with_legend(legend).without_empty_columns()
}

/// Returns the table of parameters and FLOPs, arranged as Table 3 of TAPE (Zhu et al. 2025, arXiv 2501.00712), and of
/// counts of a training step.
pub fn flops(report: &Report, workload: &Workload) -> Table {
    let known =
        |count, show: fn(f64) -> String| TableCell::optional(EncodingCost::known(count), show);
    let whole = |count: f64| thousands(count as u64);
    let table = Table::of(&workload.costs)
        .column("encoding", |cost| TableCell::of_encoding(report, &cost.encoding))
        .column("parameters", |cost| known(cost.params_total, whole))
        .column("parameters of the encoding", |cost| {
            TableCell::optional(cost.known_params_of_encoding(), thousands)
        })
        .column("FLOPs per token", |cost| known(cost.flops_forward_per_token, si))
        .column("FLOPs per step", |cost| known(cost.flops_train_step, si))
        .column("FLOPs relative to RoPE", |cost| {
            TableCell::optional(cost.flops_ratio, |ratio| format!("{ratio:.3}"))
        })
        .column("FLOPs of the training", |cost| {
            TableCell::optional(cost.flops_training.filter(|flops| *flops > 0.0), si)
        })
        .column("instructions per step", |cost| TableCell::optional(cost.step_instructions, si))
        .column("allocations per step", |cost| {
            TableCell::optional(cost.step_allocations, |count| thousands(count.round() as u64))
        })
        .column("allocated per step", |cost| TableCell::optional(cost.step_allocated_bytes, bytes))
        .table();
    let mut table = table.with_legend(
        "FLOPs: analytic counts; a multiply-add counts as two operations. Per token: a forward pass at the trained \
         length. Per step: forward and backward pass of the whole batch. Of the training: all steps of a run, which \
         may stop early; mean over seeds.",
    );
    let counted = |c: &EncodingCost| c.step_allocations.is_some() || c.step_instructions.is_some();
    if workload.costs.iter().any(counted) {
        table = table.with_legend(
            "Allocations and instructions are counted on one thread: allocations in the third step, instructions as \
             the mean of steps 3 and 4. The table shows means over the seeds with counts.",
        );
    }
    table.without_empty_columns()
}

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
        .column("step\nrelative to RoPE", |step| over(|step| Some(step.step_seconds), step))
        .column("peak memory", |step| TableCell::optional(step.peak_bytes, |b| bytes(b as f64)))
        .column("memory\nrelative to RoPE", |step| {
            over(|step| step.peak_bytes.map(|bytes| bytes as f64), step)
        })
        .table();
    let conditions = &report.meta.measured_at;
    table.notes =
        vec![format!("Measured on one machine in one run of `pe-bench speed` with {conditions}.")];
    table.without_empty_columns()
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::testkit;

    #[test]
    fn disturbed_times_are_marked_and_so_are_ratios_to_them() {
        let mut records = testkit::two_workloads();
        let ropes = records.iter_mut().filter(|record| record.encoding.name == "rope");
        ropes.for_each(|record| record.host.jobs = 2);
        let report = Report::new(&records, &ReportMeta::default()).unwrap();
        let table = costs(&report, &report.workloads[0]);
        let marks = |name: &str| {
            let row = table.rows.iter().find(|row| row[0].text == name).unwrap();
            [1, 2, 3, 4, 5].map(|column: usize| row[column].text.ends_with('†'))
        };
        assert_eq!(marks("CoPE"), [false, false, true, false, false], "{:?}", table.columns);
        assert_eq!(marks("RoPE"), [true, true, true, true, false]);
        assert!(table.notes[0].starts_with("† Measured while other cells"), "{:?}", table.notes);
    }

    #[test]
    fn cells_of_several_machines_are_noted() {
        let cell = |encoding| testkit::TestCell::new("w", encoding, 0);
        let other = cell("cope").change(|r| r.host.cpu = "other".into()).record();
        let records = [cell("rope").record(), other];
        let report = Report::new(&records, &ReportMeta::default()).unwrap();
        assert_eq!(report.workloads[0].machines.len(), 2);
        let notes = costs(&report, &report.workloads[0]).notes;
        assert!(notes.iter().any(|n| n.starts_with("Warning: these cells ran under 2")));
    }
}

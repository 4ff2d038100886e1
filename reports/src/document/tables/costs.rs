//! Measured and analytic costs of encodings on a workload.

use super::common::ratio;
use crate::analysis::{EncodingCost, Report, Workload};
use crate::document::table::{Table, TableCell};
use crate::number::{bytes, si, thousands, three_digits};

/// Returns the table of throughput, step time and memory, arranged as Table 4 of TAPE (Zhu et al. 2025, arXiv
/// 2501.00712).
pub fn costs(report: &Report, workload: &Workload) -> Table {
    let columns =
        ["encoding", "tokens/s", "ms per step", "time / RoPE's", "peak memory", "memory / RoPE's"];
    let mut table = Table::of(columns, &workload.costs, |cost| {
        let name = TableCell::of_encoding(report, &cost.encoding);
        let timed = |value: Option<f64>, show: fn(f64) -> String| {
            TableCell::optional(value, |value| show(value) + &mark(cost))
        };
        vec![
            name.with_cells(report, workload, &cost.encoding),
            timed(cost.tokens_per_second, si),
            timed(cost.step_seconds.map(|seconds| 1000.0 * seconds), three_digits),
            timed(cost.step_ratio, ratio),
            TableCell::optional(cost.peak_bytes, |b| bytes(b as f64)),
            TableCell::optional(cost.memory_ratio, ratio),
        ]
    });
    if workload.costs.iter().any(|cost| cost.disturbed) {
        table.notes.push(format!(
            "{DISTURBED} Measured while other cells or programs ran on the machine: of little worth."
        ));
    }
    if workload.machines.len() > 1 {
        table.notes.push(format!(
            "Warning: these cells ran under {} conditions ({}); times and memory are comparable only \
             within one of them.",
            workload.machines.len(),
            workload.machines.join("; ")
        ));
    }
    let legend = "Step times: median over steps, mean over seeds. Peak memory: maximum over seeds.";
    table.with_legend(legend).without_empty_columns()
}

/// Marks times that other work disturbed.
const DISTURBED: &str = "†";

fn mark(cost: &EncodingCost) -> String {
    if cost.disturbed { format!(" {DISTURBED}") } else { String::new() }
}

/// Returns the table of parameters and FLOPs, arranged as Table 3 of TAPE (Zhu et al. 2025, arXiv 2501.00712), and of
/// counts of a training step.
pub fn flops(report: &Report, workload: &Workload) -> Table {
    let columns = [
        "encoding",
        "parameters",
        "of the encoding",
        "FLOPs per token",
        "FLOPs per step",
        "FLOPs / RoPE's",
        "instructions per step",
        "allocations per step",
        "allocated per step",
    ];
    let table = Table::of(columns, &workload.costs, |cost| {
        let name = TableCell::of_encoding(report, &cost.encoding);
        vec![
            name.with_cells(report, workload, &cost.encoding),
            thousands(cost.params_total).into(),
            thousands(cost.params_encoding).into(),
            si(cost.flops_forward_per_token as f64).into(),
            si(cost.flops_train_step as f64).into(),
            TableCell::optional(cost.flops_ratio, |r| format!("{r:.3}")),
            TableCell::optional(cost.step_instructions, si),
            TableCell::optional(cost.step_allocations, |count| thousands(count.round() as u64)),
            TableCell::optional(cost.step_allocated_bytes, bytes),
        ]
    });
    let mut table = table.with_legend(
        "FLOPs: analytic counts; a multiply-add counts as two operations. Per token: a forward pass at the training \
         length. Per step: forward and backward pass of the whole batch.",
    );
    let counted = |c: &EncodingCost| c.step_allocations.is_some() || c.step_instructions.is_some();
    if workload.costs.iter().any(counted) {
        table = table.with_legend(
            "Instructions and allocations are counted in the third step, on one thread; means over the seeds \
             that have them.",
        );
    }
    table.without_empty_columns()
}

//! Measured and analytic costs of encodings on a workload.

use super::common::{optional, ratio};
use crate::analysis::{EncodingCost, Report, Workload};
use crate::document::table::{Table, TableCell, heads};
use crate::number::{bytes, si, thousands, three_digits};

/// Returns the table of throughput, step time and memory, arranged as Table 4 of TAPE (Zhu et al. 2025, arXiv
/// 2501.00712).
pub fn costs(report: &Report, workload: &Workload) -> Table {
    let rows = workload
        .costs
        .iter()
        .map(|cost| {
            let name = TableCell::of_encoding(report, &cost.encoding);
            vec![
                name.with_cells(report, workload, &cost.encoding),
                optional(cost.tokens_per_second, |rate| si(rate) + &mark(cost)),
                optional(cost.step_seconds, |s| three_digits(1000.0 * s) + &mark(cost)),
                optional(cost.step_ratio, |found| ratio(found) + &mark(cost)),
                optional(cost.peak_bytes.map(|b| b as f64), bytes),
                optional(cost.memory_ratio, ratio),
            ]
        })
        .collect();
    let legends = vec![
        "Step times: median over steps, mean over seeds. Peak memory: maximum over seeds."
            .to_owned(),
    ];
    let mut notes = Vec::new();
    if workload.costs.iter().any(|cost| cost.disturbed) {
        notes.push(format!(
            "{DISTURBED} Measured while other cells or programs ran on the machine: of little worth."
        ));
    }
    if workload.machines.len() > 1 {
        notes.push(format!(
            "Warning: these cells ran under {} conditions ({}); times and memory are comparable only \
             within one of them.",
            workload.machines.len(),
            workload.machines.join("; ")
        ));
    }
    Table {
        columns: heads([
            "encoding",
            "tokens/s",
            "ms per step",
            "time / RoPE's",
            "peak memory",
            "memory / RoPE's",
        ]),
        rows,
        notes,
        legends,
        ..Table::default()
    }
    .without_empty_columns()
}

/// Marks times that other work disturbed.
const DISTURBED: &str = "†";

fn mark(cost: &EncodingCost) -> String {
    if cost.disturbed { format!(" {DISTURBED}") } else { String::new() }
}

/// Returns the table of parameters and FLOPs, arranged as Table 3 of TAPE (Zhu et al. 2025, arXiv 2501.00712), and of
/// counts of a training step.
pub fn flops(report: &Report, workload: &Workload) -> Table {
    let rows = workload
        .costs
        .iter()
        .map(|cost: &EncodingCost| {
            let name = TableCell::of_encoding(report, &cost.encoding);
            vec![
                name.with_cells(report, workload, &cost.encoding),
                thousands(cost.params_total).into(),
                thousands(cost.params_encoding).into(),
                si(cost.flops_forward_per_token as f64).into(),
                si(cost.flops_train_step as f64).into(),
                optional(cost.flops_ratio, |r| format!("{r:.3}")),
                optional(cost.step_instructions, si),
                optional(cost.step_allocations, |count| thousands(count.round() as u64)),
                optional(cost.step_allocated_bytes, bytes),
            ]
        })
        .collect();
    let mut legends = vec![
        "FLOPs: analytic counts; a multiply-add counts as two operations. Per token: a forward pass at the training \
         length. Per step: forward and backward pass of the whole batch."
            .to_owned(),
    ];
    let counted = |c: &EncodingCost| c.step_allocations.is_some() || c.step_instructions.is_some();
    if workload.costs.iter().any(counted) {
        legends.push(
            "Instructions and allocations are counted in the third step, on one thread; means over the seeds \
             that have them."
                .to_owned(),
        );
    }
    Table {
        columns: heads([
            "encoding",
            "parameters",
            "of the encoding",
            "FLOPs per token",
            "FLOPs per step",
            "FLOPs / RoPE's",
            "instructions per step",
            "allocations per step",
            "allocated per step",
        ]),
        rows,
        legends,
        ..Table::default()
    }
    .without_empty_columns()
}

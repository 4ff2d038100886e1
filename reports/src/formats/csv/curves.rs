//! Costs, training curves, slices and gate scores as tables for other programs.

use polars::prelude::*;

use analysis::frame::frame;
use analysis::{
    Curve, EncodingCost, GateMean, Report, SliceCurve, SlicePoint, SliceSet, StepMean, Workload,
};
use stats::Mean;

fn low(mean: Mean) -> Option<f64> {
    mean.ci95.map(|(low, _)| low)
}

fn high(mean: Mean) -> Option<f64> {
    mean.ci95.map(|(_, high)| high)
}

/// Returns the costs, one row for each workload and encoding.
pub(super) fn costs(report: &Report) -> PolarsResult<DataFrame> {
    let rows: Vec<(&Workload, &EncodingCost)> =
        report.workloads.iter().flat_map(|w| w.costs.iter().map(move |cost| (w, cost))).collect();
    frame!(rows;
        "workload": |(w, _)| w.name.as_str(),
        "encoding": |(_, c)| c.encoding.as_str(),
        "params_total": |(_, c)| c.params_total,
        "params_encoding": |(_, c)| c.params_encoding,
        "flops_train_step": |(_, c)| c.flops_train_step,
        "flops_forward_per_token": |(_, c)| c.flops_forward_per_token,
        "step_instructions": |(_, c)| c.step_instructions,
        "step_allocations": |(_, c)| c.step_allocations,
        "step_allocated_bytes": |(_, c)| c.step_allocated_bytes,
        "flops_ratio_to_rope": |(_, c)| c.flops_ratio,
        "tokens_per_second": |(_, c)| c.tokens_per_second,
        "step_seconds": |(_, c)| c.step_seconds,
        "step_ratio_to_rope": |(_, c)| c.step_ratio,
        "times_disturbed": |(_, c)| c.disturbed,
        "peak_bytes": |(_, c)| c.peak_bytes,
        "memory_ratio_to_rope": |(_, c)| c.memory_ratio,
        "conditions": |(w, _)| w.machines.len() as u64,
    )
}

/// Returns the curves of loss and validation, one row for each point.
pub(super) fn training(report: &Report) -> PolarsResult<DataFrame> {
    let mut rows: Vec<(&Workload, (&str, &str), &Curve, StepMean)> = Vec::new();
    for workload in &report.workloads {
        let validated = if workload.headline.higher_is_better() { "exact_match" } else { "nll" };
        let splits = workload.split_validation.iter();
        let splits = splits.map(|split| ((validated, split.split.as_str()), &split.curves));
        let own = [(("loss", ""), &workload.training), ((validated, ""), &workload.validation)];
        for (what, curves) in own.into_iter().chain(splits) {
            let points = curves.iter().flat_map(|c| c.points.iter().map(move |p| (c, *p)));
            rows.extend(points.map(|(curve, point)| (workload, what, curve, point)));
        }
    }
    frame!(rows;
        "workload": |(w, ..)| w.name.as_str(),
        "encoding": |(.., c, _)| c.encoding.as_str(),
        "value": |(_, (what, _), ..)| *what,
        "split": |(_, (_, split), ..)| *split,
        "step": |(.., p)| p.step,
        "n": |(.., p)| p.value.n,
        "mean": |(.., p)| p.value.mean,
        "ci_low": |(.., p)| low(p.value),
        "ci_high": |(.., p)| high(p.value),
    )
}

/// Returns the slices, one row for each value.
pub(super) fn slices(report: &Report) -> PolarsResult<DataFrame> {
    let mut rows: Vec<(&Workload, &SliceSet, &SliceCurve, &SlicePoint)> = Vec::new();
    for workload in &report.workloads {
        for set in &workload.slices {
            for curve in &set.curves {
                rows.extend(curve.points.iter().map(|point| (workload, set, curve, point)));
            }
        }
    }
    frame!(rows;
        "workload": |(w, ..)| w.name.as_str(),
        "encoding": |(_, _, c, _)| c.encoding.as_str(),
        "split": |(_, s, ..)| s.split.as_str(),
        "len": |(_, s, ..)| s.len,
        "in_distribution": |(_, s, ..)| s.in_distribution,
        "slice": |(_, s, ..)| s.name.as_str(),
        "unit": |(_, s, ..)| s.unit.name(),
        "from": |(.., p)| p.from,
        "to": |(.., p)| p.to,
        "count": |(.., p)| p.count,
        "n": |(.., p)| p.accuracy.n,
        "accuracy_mean": |(.., p)| p.accuracy.mean,
        "accuracy_ci_low": |(.., p)| low(p.accuracy),
        "accuracy_ci_high": |(.., p)| high(p.accuracy),
        "nll_mean": |(.., p)| p.nll.mean,
        "nll_ci_low": |(.., p)| low(p.nll),
        "nll_ci_high": |(.., p)| high(p.nll),
    )
}

/// Returns the gate scores, one row for each head with gates.
pub(super) fn gates(report: &Report) -> PolarsResult<DataFrame> {
    let rows: Vec<(&Workload, &GateMean)> =
        report.workloads.iter().flat_map(|w| w.gates.iter().map(move |gate| (w, gate))).collect();
    frame!(rows;
        "workload": |(w, _)| w.name.as_str(),
        "encoding": |(_, g)| g.encoding.as_str(),
        "gate": |(_, g)| g.gate.as_str(),
        "layer": |(_, g)| g.layer,
        "head": |(_, g)| g.head,
        "n": |(_, g)| g.auc.n,
        "auc_mean": |(_, g)| g.auc.mean,
        "auc_ci_low": |(_, g)| low(g.auc),
        "auc_ci_high": |(_, g)| high(g.auc),
    )
}

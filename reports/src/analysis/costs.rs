//! Costs of encodings on a workload.

use std::collections::BTreeSet;

use super::grouping::by_encoding;
use crate::number::count;
use crate::record::{RunRecord, Status};
use crate::stats::Mean;

/// Name of the encoding that ratios refer to.
const YARDSTICK: &str = "rope";

/// Costs of an encoding on a workload: means over seeds of finished cells.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodingCost {
    /// Name of the encoding.
    pub encoding: String,
    /// Parameters of the model.
    pub params_total: u64,
    /// Parameters of the encoding.
    pub params_encoding: u64,
    /// Analytic FLOPs of a training step.
    pub flops_train_step: u64,
    /// Analytic FLOPs of a forward pass at the trained length, for each token.
    pub flops_forward_per_token: u64,
    /// Allocations of a training step.
    pub step_allocations: Option<f64>,
    /// Bytes allocated in a training step.
    pub step_allocated_bytes: Option<f64>,
    /// Instructions of a training step.
    pub step_instructions: Option<f64>,
    /// Ratio of its FLOPs per training step to those of `rope`.
    pub flops_ratio: Option<f64>,
    /// Tokens per second in training.
    pub tokens_per_second: Option<f64>,
    /// Seconds of a step (mean over seeds of the median).
    pub step_seconds: Option<f64>,
    /// Ratio of its step time to that of `rope`.
    pub step_ratio: Option<f64>,
    /// Highest peak memory of a seed, in bytes.
    pub peak_bytes: Option<u64>,
    /// Ratio of its peak memory to that of `rope`.
    pub memory_ratio: Option<f64>,
}

pub(super) fn costs(records: &[&RunRecord]) -> Vec<EncodingCost> {
    let mut costs: Vec<EncodingCost> = by_encoding(records)
        .into_iter()
        .filter_map(|(encoding, records)| cost(encoding, &records))
        .collect();
    if let Some(rope) = costs.iter().find(|cost| cost.encoding == YARDSTICK).cloned() {
        for cost in &mut costs {
            let over = |own: Option<f64>, rope: Option<f64>| {
                own.zip(rope).map(|(own, rope)| own / rope).filter(|ratio| ratio.is_finite())
            };
            let real = |whole: u64| Some(whole as f64);
            cost.flops_ratio = over(real(cost.flops_train_step), real(rope.flops_train_step));
            cost.step_ratio = over(cost.step_seconds, rope.step_seconds);
            let bytes = |cost: &EncodingCost| cost.peak_bytes.map(|bytes| bytes as f64);
            cost.memory_ratio = over(bytes(cost), bytes(&rope));
        }
    }
    costs
}

fn cost(encoding: &str, records: &[&RunRecord]) -> Option<EncodingCost> {
    let first = records.first()?;
    debug_assert!(records.iter().all(|r| r.status == Status::Done));
    let mean = |get: fn(&RunRecord) -> Option<f64>| {
        let values: Vec<f64> = records.iter().filter_map(|r| get(r)).collect();
        Mean::of(&values).map(|found| found.mean)
    };
    Some(EncodingCost {
        encoding: encoding.to_owned(),
        params_total: first.params.total,
        params_encoding: first.params.encoding,
        flops_train_step: first.flops.train_step,
        flops_forward_per_token: first.flops.forward_per_token,
        step_allocations: mean(|r| r.step_allocations.map(|asked| asked.count as f64)),
        step_allocated_bytes: mean(|r| r.step_allocations.map(|asked| asked.bytes as f64)),
        step_instructions: mean(|r| r.step_instructions.map(|count| count as f64)),
        flops_ratio: None,
        tokens_per_second: mean(|r| r.train.tokens_per_second),
        step_seconds: mean(|r| r.train.step_seconds_median),
        step_ratio: None,
        peak_bytes: records.iter().filter_map(|r| r.peak_bytes).max(),
        memory_ratio: None,
    })
}

/// Distinct conditions that the cells ran under: CPU, threads, concurrent cells, engine.
pub(super) fn machines(records: &[&RunRecord]) -> Vec<String> {
    let conditions: BTreeSet<String> = records
        .iter()
        .map(|r| {
            let host = &r.host;
            let side = match host.jobs {
                0 | 1 => "alone".to_owned(),
                jobs => format!("{jobs} concurrent cells"),
            };
            format!("{}, {}, {side}, {}", host.cpu, count(host.threads, "thread"), r.engine)
        })
        .collect();
    conditions.into_iter().collect()
}

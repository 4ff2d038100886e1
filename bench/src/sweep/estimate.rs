//! How long cells will take, from a few timed steps of each kind.

use std::collections::BTreeMap;
use std::time::Instant;

use pe_zoo::EncodingConfig;

use super::plan::{Plan, Planned};
use crate::runner;
use crate::train::Trainer;

/// The first step warms up; the mean of the others is used.
const TIMED_STEPS: usize = 3;

/// Steps of more operations than this are not tried but reckoned.
const MOST_FLOPS_TRIED: f64 = 2e11;

/// What a step that is not tried is reckoned with: a processor core of the slower kind.
pub const FLOPS_PER_SECOND: f64 = 2e10;

/// Expected seconds of training for each cell of a plan; 0 where `settled` says that it is not to be run.
pub fn training_seconds(plan: &Plan, settled: &[bool]) -> Vec<f64> {
    let mut step_seconds = BTreeMap::new();
    let cells = plan.cells.iter().zip(settled);
    cells
        .map(|(planned, settled)| {
            if *settled {
                return 0.0;
            }
            let kind = (planned.cell.workload.as_str(), planned.cell.name.as_str());
            let known = step_seconds.get(&kind).copied();
            let seconds = known.unwrap_or_else(|| one_step(planned));
            step_seconds.insert(kind, seconds);
            seconds * planned.cell.train.steps as f64
        })
        .collect()
}

fn one_step(planned: &Planned) -> f64 {
    let flops = planned.train_flops() as f64 / planned.cell.train.steps as f64;
    let reckoned = flops / FLOPS_PER_SECOND;
    if flops > MOST_FLOPS_TRIED {
        return reckoned;
    }
    // A cell that cannot be trained says so when its turn comes, in its record.
    timed_step(planned).unwrap_or(reckoned)
}

fn timed_step(planned: &Planned) -> Option<f64> {
    let cell = &planned.cell;
    let (model, device) = runner::build(cell, &*planned.task).ok()?;
    let mut trainer = Trainer::new(
        model,
        cell.encoding.meta().id,
        &cell.train,
        cell.model.dropout,
        &*planned.task,
        cell.seed,
        &device,
    );
    trainer.step().ok()?;
    let start = Instant::now();
    for _ in 1..TIMED_STEPS {
        trainer.step().ok()?;
    }
    Some(start.elapsed().as_secs_f64() / (TIMED_STEPS - 1) as f64)
}

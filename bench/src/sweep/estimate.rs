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

/// Expected seconds of training for each cell of a plan; 0 where `kept` says that it is done.
///
/// # Errors
/// The reason, if a model cannot be built or trained.
pub fn training_seconds(plan: &Plan, kept: &[bool]) -> Result<Vec<f64>, String> {
    let mut step_seconds = BTreeMap::new();
    let cells = plan.cells.iter().zip(kept);
    cells
        .map(|(planned, kept)| {
            if *kept {
                return Ok(0.0);
            }
            let kind = (planned.cell.workload.as_str(), planned.cell.name.as_str());
            let known = step_seconds.get(&kind).copied();
            let seconds = if let Some(seconds) = known { seconds } else { one_step(planned)? };
            step_seconds.insert(kind, seconds);
            Ok(seconds * planned.cell.train.steps as f64)
        })
        .collect()
}

fn one_step(planned: &Planned) -> Result<f64, String> {
    let cell = &planned.cell;
    let flops = planned.train_flops() as f64 / cell.train.steps as f64;
    if flops > MOST_FLOPS_TRIED {
        return Ok(flops / FLOPS_PER_SECOND);
    }
    let (model, device) = runner::build(cell, &*planned.task)?;
    let mut trainer = Trainer::new(
        model,
        cell.encoding.meta().id,
        &cell.train,
        cell.model.dropout,
        &*planned.task,
        cell.seed,
        &device,
    );
    trainer.step().map_err(|error| error.to_string())?;
    let start = Instant::now();
    for _ in 1..TIMED_STEPS {
        trainer.step().map_err(|error| error.to_string())?;
    }
    Ok(start.elapsed().as_secs_f64() / (TIMED_STEPS - 1) as f64)
}

//! `--dry-run`: the cells, and how long they would take from a few timed steps of each kind.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pe_zoo::EncodingConfig;

use super::table::{clock, encoding_label};
use crate::cli::list::aligned;
use crate::cli::out::say;
use crate::runner;
use crate::sweep::{Plan, Planned, SweepOptions};
use crate::train::Trainer;

/// The first step warms up; the mean of the others is used.
const TIMED_STEPS: usize = 3;

pub(super) fn print(plan: &Plan, options: &SweepOptions) -> anyhow::Result<()> {
    let existing = plan.existing(options)?;
    let header = ["workload", "encoding", "seed", "parameters", "training", "about"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let mut step_seconds = BTreeMap::new();
    let mut total = 0.0;
    for (index, planned) in plan.cells.iter().enumerate() {
        let cell = &planned.cell;
        let kind = (cell.workload.clone(), cell.name.clone());
        let about = if existing[index].is_some() {
            "done".to_owned()
        } else {
            let known = step_seconds.get(&kind).copied();
            let seconds = if let Some(seconds) = known { seconds } else { time_step(planned)? };
            step_seconds.insert(kind, seconds);
            let seconds = seconds * cell.train.steps as f64;
            total += seconds;
            clock(Duration::from_secs_f64(seconds))
        };
        let parameters = cell.model.param_count(planned.task.vocab_size())
            + cell.encoding.param_count(&cell.dims(&*planned.task));
        rows.push(vec![
            cell.workload.clone(),
            encoding_label(plan, index),
            cell.seed.to_string(),
            parameters.to_string(),
            format!("{:.2e} FLOPs", planned.train_flops() as f64),
            about,
        ]);
    }
    for line in aligned(&rows) {
        say(&line);
    }
    say(&format!(
        "{} cells; about {} of training in all, {} with {} side by side; evaluation comes on top",
        plan.cells.len(),
        clock(Duration::from_secs_f64(total)),
        clock(Duration::from_secs_f64(total / options.jobs as f64)),
        options.jobs
    ));
    Ok(())
}

fn time_step(planned: &Planned) -> anyhow::Result<f64> {
    let cell = &planned.cell;
    let (model, device) =
        runner::build(cell, &*planned.task).map_err(|reason| anyhow::anyhow!(reason))?;
    let mut trainer = Trainer::new(
        model,
        cell.encoding.meta().id,
        &cell.train,
        cell.model.dropout,
        &*planned.task,
        cell.seed,
        &device,
    );
    trainer.step()?;
    let start = Instant::now();
    for _ in 1..TIMED_STEPS {
        trainer.step()?;
    }
    Ok(start.elapsed().as_secs_f64() / (TIMED_STEPS - 1) as f64)
}

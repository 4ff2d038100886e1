//! `--dry-run`: table of the cells with their estimated training times.

use std::time::Duration;

use super::table::{clock, encoding_label};
use crate::cli::list::aligned;
use crate::cli::out::say;
use crate::sweep::{CellStatus, SweepOptions, SweepPlan, look_up_all, training_seconds};

pub(super) fn print(plan: &SweepPlan, options: &SweepOptions, rate: impl FnOnce() -> f64) {
    let statuses = look_up_all(plan, &options.out, &options.retry);
    let others = |index: usize| !options.shard.has(&plan.keys[index]);
    let seconds = training_seconds(plan, &statuses, options, rate);
    let header = ["workload", "encoding", "seed", "parameters", "training", "estimate"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for (index, planned) in plan.cells.iter().enumerate() {
        let cell = &planned.cell;
        let own = cell.encoding.param_count(&cell.dims(&*planned.task));
        let model = cell.model.param_count(planned.task.vocab_size());
        let parameters = own.map_or("unknown".to_owned(), |own| (model + own).to_string());
        let about = duration(seconds[index]);
        rows.push(vec![
            cell.workload.clone(),
            encoding_label(plan, index),
            cell.seed.to_string(),
            parameters,
            format!("{:.2e} FLOPs", planned.train_flops() as f64),
            match &statuses[index].status {
                CellStatus::Kept(record) => record.status.name().to_owned(),
                CellStatus::Unreadable(_) => "damaged".to_owned(),
                CellStatus::Open if others(index) => "other shard".to_owned(),
                CellStatus::Open => clock(about),
            },
        ]);
    }
    for line in aligned(&rows) {
        say(&line);
    }
    let total = seconds.iter().sum::<f64>();
    say(&format!(
        "{} cells; about {} of training in total, {} with {} in parallel; evaluation not included",
        plan.cells.len(),
        clock(duration(total)),
        clock(duration(total / options.jobs as f64)),
        options.jobs
    ));
}

/// Converts seconds to a duration, saturating at the longest one.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

//! `--dry-run`: the cells, and how long they would take.

use std::time::Duration;

use pe_zoo::EncodingConfig;

use super::table::{clock, encoding_label};
use crate::cli::list::aligned;
use crate::cli::out::say;
use crate::sweep::{Plan, Standing, SweepOptions, training_seconds};

pub(super) fn print(plan: &Plan, options: &SweepOptions) {
    let surveyed = plan.survey(&options.out, &options.redo);
    let others = |index: usize| !options.shard.has(&plan.keys[index]);
    let settled = (0..plan.cells.len())
        .map(|index| surveyed[index].is_settled() || others(index))
        .collect::<Vec<_>>();
    let seconds = training_seconds(plan, &settled);
    let header = ["workload", "encoding", "seed", "parameters", "training", "about"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for (index, planned) in plan.cells.iter().enumerate() {
        let cell = &planned.cell;
        let parameters = cell.model.param_count(planned.task.vocab_size())
            + cell.encoding.param_count(&cell.dims(&*planned.task));
        let about = Duration::from_secs_f64(seconds[index]);
        rows.push(vec![
            cell.workload.clone(),
            encoding_label(plan, index),
            cell.seed.to_string(),
            parameters.to_string(),
            format!("{:.2e} FLOPs", planned.train_flops() as f64),
            match &surveyed[index].standing {
                Standing::Kept(record) => record.status.name().to_owned(),
                Standing::Unreadable(_) => "damaged".to_owned(),
                Standing::Open if others(index) => "another part".to_owned(),
                Standing::Open => clock(about),
            },
        ]);
    }
    for line in aligned(&rows) {
        say(&line);
    }
    let total = seconds.iter().sum::<f64>();
    say(&format!(
        "{} cells; about {} of training in all, {} with {} side by side; evaluation comes on top",
        plan.cells.len(),
        clock(Duration::from_secs_f64(total)),
        clock(Duration::from_secs_f64(total / options.jobs as f64)),
        options.jobs
    ));
}

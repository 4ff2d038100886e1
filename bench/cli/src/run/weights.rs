//! `--keep-weights`: which weights a sweep keeps.

use std::collections::BTreeMap;

use records::WeightsAt;

use super::options::{KeepWeights, SweepArgs};
use sweep::{SweepOptions, SweepPlan};
use train::experiment::budget::bytes_text;

/// Bytes up to which weights are kept by default.
const MOST_BYTES: u64 = 2 << 30;

/// Decides which weights the sweep keeps and returns a line that describes the decision.
///
/// # Errors
///
/// If the weights of the best validation are asked for and a cell has no validations during its training, or a suite
/// that evaluates them does not keep them.
pub(super) fn decide(
    arguments: &SweepArgs,
    plan: &SweepPlan,
    options: &mut SweepOptions,
    dry_run: bool,
) -> anyhow::Result<String> {
    let evaluates_best = plan.cells.iter().find(|cell| cell.cell.eval.weights == WeightsAt::Best);
    if let Some(planned) = evaluates_best {
        anyhow::ensure!(
            matches!(arguments.keep_weights, None | Some(KeepWeights::Best)),
            "workload `{}` evaluates the weights of the best validation; leave out --keep-weights, or use \
             --keep-weights best",
            planned.cell.workload
        );
    }
    let bytes = bytes(plan);
    let folder = options.weights.results.join("weights");
    let would = if dry_run { "would be " } else { "" };
    let kept = format!("{would}saved in {} ({})", folder.display(), bytes_text(bytes));
    let (keep, text) = match arguments.keep_weights {
        Some(KeepWeights::None) => (None, "not saved".to_owned()),
        Some(KeepWeights::Last) => (Some(WeightsAt::Last), kept),
        Some(KeepWeights::Best) => (Some(WeightsAt::Best), format!("last and best weights {kept}")),
        None if evaluates_best.is_some() => (
            Some(WeightsAt::Best),
            format!("last and best weights {kept}; the best weights are evaluated"),
        ),
        None if bytes <= MOST_BYTES => {
            (Some(WeightsAt::Last), format!("{kept}; --keep-weights none does not save weights"))
        }
        None => (
            None,
            format!(
                "not saved, because they would take {}, more than {}; --keep-weights last saves them",
                bytes_text(bytes),
                bytes_text(MOST_BYTES)
            ),
        ),
    };
    if keep == Some(WeightsAt::Best) {
        let validated = |cell: &train::experiment::Experiment| {
            cell.train.validation.as_ref().is_some_and(|v| v.every_steps.is_some())
        };
        if let Some(planned) = plan.cells.iter().find(|planned| !validated(&planned.cell)) {
            anyhow::bail!(
                "--keep-weights best: workload `{}` has no validations during its training; set \
                 train.validation.every_steps, or keep the last weights",
                planned.cell.workload
            );
        }
    }
    options.weights.keep = keep;
    Ok(format!("weights: {text}"))
}

/// Returns the size in bytes of the weights of all trainings of a plan.
fn bytes(plan: &SweepPlan) -> u64 {
    let sizes = plan.cells.iter().map(|planned| {
        let (cell, task) = (&planned.cell, &*planned.task);
        let own = cell.encoding.param_count(&cell.dims(task)).unwrap_or(0);
        let numbers = cell.model.param_count(task.vocab_size()) + own;
        (cell.training(task), (numbers * size_of::<f32>()) as u64)
    });
    sizes.collect::<BTreeMap<_, _>>().into_values().fold(0, u64::saturating_add)
}

//! Experiments restored from their records.

use std::fmt::Display;

use anyhow::{Result, anyhow, ensure};
use records::RunRecord;
use serde::de::DeserializeOwned;
use tasks::Task;

use super::{Budget, Experiment};

/// Restores the experiment of a record, and its task.
///
/// # Errors
///
/// As [`as_configured`], and if the configuration has another key in this program.
pub fn of_record(record: &RunRecord) -> Result<(Experiment, Box<dyn Task>)> {
    let (experiment, task) = as_configured(record)?;
    let now = experiment.key(&*task);
    ensure!(
        now == record.key,
        "record {}: the same configuration now has the key {now}, because the task's version or data, or a default, has changed \
         since; run the cell again",
        record.key
    );
    Ok((experiment, task))
}

/// Experiment with the settings of a record, and its task, even if its key is another one now.
///
/// # Errors
///
/// If this program cannot read the configuration, or the record is of `extend`, whose weights belong to a pretrained model.
pub fn as_configured(record: &RunRecord) -> Result<(Experiment, Box<dyn Task>)> {
    ensure!(
        record.config.get("trained_rotation").is_none(),
        "record {} is from `pe-bench extend`, and its weights have no tokenizer; repeat that command with \
         `--export DIR`, which does not tune again, and use the folder that the command prints",
        record.key
    );
    let encoding = crate::encodings::parse(&record.encoding.id);
    let experiment = Experiment {
        workload: record.workload.clone(),
        name: record.encoding.name.clone(),
        encoding: encoding.map_err(|error| unreadable(record, "encoding", &error))?,
        task: read(record, "task")?,
        model: read(record, "model")?,
        train: read(record, "train")?,
        eval: read(record, "eval")?,
        grid: record.grid.clone(),
        budget: Budget::default(),
        seed: record.seed,
        backend: record.backend.clone(),
        engine: read(record, "engine")?,
    };
    let task = experiment.task.build()?;
    Ok((experiment, task))
}

fn read<T: DeserializeOwned>(record: &RunRecord, part: &str) -> Result<T> {
    let value = record.config.get(part).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| unreadable(record, part, &error))
}

fn unreadable(record: &RunRecord, part: &str, reason: &dyn Display) -> anyhow::Error {
    anyhow!(
        "record {}: cannot read `{part}`: {reason}; the record was written by another version of this program; run \
         the cell again",
        record.key
    )
}

//! Experiments restored from their records.

use records::RunRecord;
use serde::de::DeserializeOwned;
use tasks::{Task, TaskError};

use super::{Budget, Experiment};

/// Reason why the experiment of a record cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum OfRecordError {
    /// The configuration of the record cannot be read by this program.
    #[error(
        "record {key}: cannot read `{part}`: {reason}; the record was written by another version of this program, run the cell again"
    )]
    Config {
        /// Key of the record.
        key: String,
        /// Which part of the configuration.
        part: &'static str,
        /// Reason for the refusal.
        reason: String,
    },
    /// The record is of `extend`, whose weights belong to a pretrained model.
    #[error(
        "record {key} is of `pe-bench extend`, and its weights alone have no tokenizer; give the same command `--export DIR`, \
         which tunes nothing again, and use the folder that it names"
    )]
    Extended {
        /// Key of the record.
        key: String,
    },
    /// The configuration has another key in this program.
    #[error(
        "record {key}: the same configuration now has the key {now}, because the task's version or data, or a default, has changed since; run the cell again"
    )]
    Changed {
        /// Key of the record.
        key: String,
        /// Key of the same settings now.
        now: String,
    },
    /// The task cannot be built.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// Restores the experiment of a record, and its task.
///
/// # Errors
///
/// [`OfRecordError`].
pub fn of_record(record: &RunRecord) -> Result<(Experiment, Box<dyn Task>), OfRecordError> {
    let (experiment, task) = as_configured(record)?;
    let now = experiment.key(&*task);
    if now == record.key {
        Ok((experiment, task))
    } else {
        Err(OfRecordError::Changed { key: record.key.clone(), now })
    }
}

/// Experiment with the settings of a record, and its task, even if its key is another one now.
///
/// # Errors
///
/// [`OfRecordError`], but not [`OfRecordError::Changed`].
pub fn as_configured(record: &RunRecord) -> Result<(Experiment, Box<dyn Task>), OfRecordError> {
    if record.config.get("trained_rotation").is_some() {
        return Err(OfRecordError::Extended { key: record.key.clone() });
    }
    let encoding = crate::encodings::parse(&record.encoding.id)
        .map_err(|error| refuse(record, "encoding", error.to_string()))?;
    let experiment = Experiment {
        workload: record.workload.clone(),
        name: record.encoding.name.clone(),
        encoding,
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

fn read<T: DeserializeOwned>(record: &RunRecord, part: &'static str) -> Result<T, OfRecordError> {
    let value = record.config.get(part).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| refuse(record, part, error.to_string()))
}

fn refuse(record: &RunRecord, part: &'static str, reason: String) -> OfRecordError {
    OfRecordError::Config { key: record.key.clone(), part, reason }
}

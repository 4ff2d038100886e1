//! Weights kept after a training: `<results>/weights/<training>.safetensors`, with a settings file next to it.
//!
//! The settings file, `<training>.json`, is the record of the cell after its training and before its evaluation, with a
//! checksum like every record; it contains the hash of the weights. Both files are written atomically, the weights
//! first, and weights without a settings file are ignored. Weights of the best validation are
//! `<training>-best.safetensors`; their settings have the status `interrupted` until the training has ended.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail, ensure};
use records::{KeptWeights, Program, RunRecord, Status, WeightsAt, store};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::experiment::TrainingId;
use crate::host;
use crate::weights::{NamedTensors, collect, restore};
use pe_zoo::model::Decoder;
use tasks::{FileError, unless_absent};

/// Use of kept weights by a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reuse {
    /// Every cell is trained.
    Never,
    /// A cell whose weights are kept is not trained again.
    IfKept,
    /// A cell without kept weights fails.
    Only,
}

/// Folder of the kept weights of a run, and their use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightsPolicy {
    /// Results folder with the weights.
    pub results: PathBuf,
    /// Weights to write; with `best`, both the last and those of the best validation.
    pub keep: Option<WeightsAt>,
    /// Whether kept weights replace the training.
    pub reuse: Reuse,
}

impl WeightsPolicy {
    /// Policy of a run that neither keeps nor uses weights.
    pub fn none() -> Self {
        Self { results: PathBuf::new(), keep: None, reuse: Reuse::Never }
    }
}

/// Weights of a training with the record of the cell that trained them, before its evaluation.
#[derive(Debug)]
pub struct KeptTraining {
    /// Path of the weights.
    pub path: PathBuf,
    /// The record; `weights` describes the file.
    pub record: RunRecord,
    /// Parameters of the model, by name.
    pub tensors: NamedTensors,
}

/// Path of the weights of a training in a results folder.
pub fn weights_path(results: &Path, training: &TrainingId, at: WeightsAt) -> PathBuf {
    let best = if at == WeightsAt::Best { "-best" } else { "" };
    results.join("weights").join(format!("{training}{best}.safetensors"))
}

/// Removes the weights at a path and their settings file, so that they replace no training.
///
/// # Errors
///
/// [`FileError`].
pub fn remove(path: &Path) -> Result<(), FileError> {
    // The settings first: weights without them are ignored.
    for file in [path.with_extension("json"), path.to_owned()] {
        unless_absent(fs::remove_file(&file)).map_err(FileError::of("remove", &file))?;
    }
    Ok(())
}

impl KeptTraining {
    /// Reads the weights at a path and their settings file; `None` if they do not exist or their training has not
    /// ended.
    ///
    /// # Errors
    ///
    /// If the files cannot be read or do not belong together.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let settings = path.with_extension("json");
        let text = match fs::read(&settings) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(FileError::of("read", &settings))?,
        };
        let record = RunRecord::parse(&settings, &text).map_err(of_settings)?;
        if record.status != Status::Done {
            return Ok(None);
        }
        let bytes = fs::read(path).map_err(FileError::of("read", path))?;
        let stated = record.weights.as_ref().map(|weights| weights.sha256.as_str());
        ensure!(
            stated == Some(&sha256(&bytes)),
            "{} is damaged: its checksum differs from the one in {}; {REMEDY}",
            path.display(),
            settings.display()
        );
        let tensors = NamedTensors::parse(&bytes).map_err(|error| of_weights(path, &error))?;
        Ok(Some(Self { path: path.to_owned(), record, tensors }))
    }

    /// Puts the parameters into a model with the same configuration.
    ///
    /// # Errors
    ///
    /// If the model has other parameters.
    pub fn restore(&self, model: Decoder) -> Result<Decoder> {
        restore(model, &self.tensors, |_| true, false, &mut ())
            .map_err(|error| of_weights(&self.path, &error))
    }

    /// Copies the description of the training into the record of another evaluation of the same training.
    pub fn describe_in(self, record: &mut RunRecord) {
        let Self { record: trained, .. } = self;
        let evaluated_by = Program {
            commit: record.commit.take(),
            dirty: record.dirty,
            versions: std::mem::take(&mut record.versions),
            host: record.host.clone(),
            started_utc: std::mem::take(&mut record.started_utc),
        };
        let RunRecord { train, weights, peak_bytes, host, commit, dirty, versions, .. } = trained;
        let started_utc = trained.started_utc;
        *record = RunRecord {
            train,
            weights,
            peak_bytes,
            host,
            commit,
            dirty,
            versions,
            started_utc,
            evaluated_by: Some(evaluated_by),
            ..record.clone()
        };
    }
}

/// Writes the weights of a model and their settings file. `record` is that of the cell so far; its status is replaced
/// by `done` or, if the training has not ended, `interrupted`.
///
/// # Errors
///
/// If a file cannot be written.
pub fn write(
    path: &Path,
    model: &Decoder,
    record: &RunRecord,
    at: WeightsAt,
    step: usize,
    has_ended: bool,
) -> Result<KeptWeights> {
    let bytes = collect(model, false, &()).and_then(|tensors| tensors.bytes());
    let bytes = bytes.map_err(|error| of_weights(path, &error))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(FileError::of("create", folder))?;
    }
    store::remove_leftovers(path);
    store::write_atomically(path, &bytes).map_err(FileError::of("write", path))?;
    let weights = KeptWeights {
        file: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        sha256: sha256(&bytes),
        at,
        step: step as u64,
    };
    write_settings(path, record, &weights, has_ended)?;
    Ok(weights)
}

/// Writes the settings file of weights.
fn write_settings(
    path: &Path,
    record: &RunRecord,
    weights: &KeptWeights,
    has_ended: bool,
) -> Result<()> {
    let settings = path.with_extension("json");
    let record = RunRecord {
        status: if has_ended { Status::Done } else { Status::Interrupted },
        weights: Some(weights.clone()),
        peak_bytes: host::peak_bytes(),
        ..record.clone()
    };
    store::remove_leftovers(&settings);
    store::write_atomically(&settings, record.text().map_err(of_settings)?.as_bytes())
        .map_err(FileError::of("write", &settings))?;
    Ok(())
}

/// Marks the weights of the best validation as those of a training that has ended, with its final summary.
///
/// # Errors
///
/// If a file cannot be read or written, or holds the weights of another step than `step`.
pub fn finish_best(path: &Path, record: &RunRecord, step: usize) -> Result<()> {
    let settings = path.with_extension("json");
    let text = fs::read(&settings).map_err(FileError::of("read", &settings))?;
    match RunRecord::parse(&settings, &text).map_err(of_settings)?.weights {
        Some(weights) if weights.step == step as u64 => {
            write_settings(path, record, &weights, true)
        }
        found => bail!(
            "{} is damaged: it holds the weights after {} steps, expected {step}; {REMEDY}",
            path.display(),
            found.map_or(0, |weights| weights.step)
        ),
    }
}

const REMEDY: &str = "delete it, and run the cell again with --force";

fn of_settings(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("the settings file of the saved weights: {error}")
}

/// Error about the tensors of a file of weights.
pub fn of_weights(path: &Path, error: &anyhow::Error) -> anyhow::Error {
    anyhow!("weights {}: {error}", path.display())
}

fn sha256(bytes: &[u8]) -> String {
    store::hex(&Sha256::digest(bytes))
}

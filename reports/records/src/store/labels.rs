//! Labels of the questions of older records: `<results folder>/unseen.json`.
//!
//! Records of schema 4 and before do not say which questions of a longer evaluation have trained sizes. Questions are
//! drawn from fixed streams, so they can be drawn again; this file keeps what that says about the evaluations of the folder,
//! and records are labelled when they are read for a report.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::RecordError;
use crate::record::{QuestionMarks, RunRecord, Unseen};

/// Labels of the evaluations of a results folder whose questions are not all alike or cannot all be answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelledQuestions {
    /// One entry for each set of questions and training length.
    pub evaluations: Vec<LabelledEvaluation>,
}

/// Labels of one evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelledEvaluation {
    /// Id of the task, for readers.
    pub task: String,
    /// Name of the split, for readers.
    pub split: String,
    /// Length of the samples, for readers.
    pub len: u64,
    /// Length of the samples in training.
    pub train_len: u64,
    /// Hash of the questions, as [`crate::Outcomes`] has it.
    pub questions: String,
    /// Marks of the unseen questions; `None` if all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<QuestionMarks>,
    /// Exact match of guessing the unseen questions; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// Share of the unseen questions whose answers occur in training; `None` if all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<f64>,
}

impl LabelledQuestions {
    /// Path of the file in a results folder.
    pub fn path(folder: &Path) -> PathBuf {
        folder.join("unseen.json")
    }

    /// Reads the labels of a results folder; none without the file.
    ///
    /// # Errors
    /// [`RecordError::Io`] if the file cannot be read, [`RecordError::Damaged`] if it is no file of labels.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        let path = Self::path(folder);
        if !path.is_file() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(&path)
            .map_err(|error| RecordError::io("read", &path, error))?;
        serde_json::from_str(&text)
            .map_err(|error| RecordError::Damaged { path, reason: error.to_string() })
    }

    /// Labels the evaluations of a record of schema 4 or before that keep the answers to their questions.
    pub fn label(&self, record: &mut RunRecord) {
        if record.schema > 4 {
            return;
        }
        for eval in &mut record.evals {
            let Some(outcomes) = &eval.outcomes else { continue };
            let same = |label: &&LabelledEvaluation| {
                label.questions == outcomes.questions && label.train_len == record.train_len
            };
            let Some(label) = self.evaluations.iter().find(same) else { continue };
            let tokens = eval.scored_tokens.checked_div(eval.samples);
            let tokens = tokens.filter(|tokens| tokens * eval.samples == eval.scored_tokens);
            let unseen = label.unseen.clone();
            eval.unseen = unseen
                .and_then(|marks| Unseen::from_answers(marks, label.chance, outcomes, tokens));
            eval.ceiling = label.ceiling;
        }
    }
}

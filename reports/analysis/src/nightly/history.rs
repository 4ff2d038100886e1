//! History of nights, with one small file for each night.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use records::store::{RecordError, files_in, without_mark, write_atomically};
use records::{EvalPoint, RunRecord, Status, json_float};
use stats::Estimate;

/// Version of a night's file.
pub const SCHEMA: u32 = 1;

/// Summary of a night.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Night {
    /// Version of the file layout; see [`SCHEMA`].
    pub schema: u32,
    /// Start time of its first cell, RFC 3339, UTC.
    pub started_utc: String,
    /// Commit of the source; `None` if unknown.
    pub commit: Option<String>,
    /// Whether the source had uncommitted changes; `None` if unknown.
    pub dirty: Option<bool>,
    /// Whether the gate passed it; `None` without a baseline.
    pub passed: Option<bool>,
    /// Summaries by workload and encoding, sorted.
    pub lines: Vec<NightLine>,
}

/// Results of a workload and encoding in a night; means over the finished seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NightLine {
    /// Name of the workload.
    pub workload: String,
    /// Name of the encoding.
    pub encoding: String,
    /// Number of finished seeds.
    pub seeds: u32,
    /// Exact match in distribution, 0 to 1; `None` for text.
    #[serde(with = "json_float::option")]
    pub exact_match: Option<f64>,
    /// Token accuracy beyond training, 0 to 1.
    #[serde(with = "json_float::option")]
    pub beyond_token_accuracy: Option<f64>,
    /// Negative log-likelihood in distribution, nats per scored token.
    #[serde(with = "json_float::option")]
    pub nll: Option<f64>,
    /// Median seconds of a training step.
    #[serde(with = "json_float::option")]
    pub step_seconds: Option<f64>,
    /// Number of parameters of the model.
    pub params: u64,
    /// Analytic FLOPs of a training step.
    pub flops_train_step: u64,
    /// Allocations of a training step; absent if they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "json_float::option")]
    pub step_allocations: Option<f64>,
    /// Bytes allocated in a training step.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "json_float::option")]
    pub step_allocated_bytes: Option<f64>,
    /// Instructions of a training step.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "json_float::option")]
    pub step_instructions: Option<f64>,
}

/// Errors of reading and writing the history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// An operation of the file system failed; see [`RecordError::Io`].
    #[error(transparent)]
    Io(#[from] RecordError),
    /// A file that does not hold a night.
    #[error("{} is not a night of schema {SCHEMA}: {reason}; delete it, or give another --history folder", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect.
        reason: String,
    },
}

impl Night {
    /// Summarizes records; `None` if there are none.
    pub fn of(records: &[RunRecord], passed: Option<bool>) -> Option<Self> {
        let first = records.iter().min_by_key(|record| &record.started_utc)?;
        let mut groups: BTreeMap<(&str, &str), Vec<&RunRecord>> = BTreeMap::new();
        for record in records.iter().filter(|record| record.status == Status::Done) {
            groups.entry((&record.workload, &record.encoding.name)).or_default().push(record);
        }
        let lines = groups
            .into_iter()
            .map(|((workload, encoding), records)| line(workload, encoding, &records))
            .collect();
        Some(Self {
            schema: SCHEMA,
            started_utc: first.started_utc.clone(),
            commit: first.commit.clone(),
            dirty: first.dirty,
            passed,
            lines,
        })
    }

    /// Returns the first digits of the commit, `?` if it is unknown, with `+` for uncommitted changes.
    pub fn short_commit(&self) -> String {
        let commit: String = self.commit.as_deref().unwrap_or("?").chars().take(7).collect();
        if self.dirty == Some(true) { format!("{commit}+") } else { commit }
    }

    fn file_name(&self) -> String {
        let plain = |text: &str| -> String {
            text.chars().filter(char::is_ascii_alphanumeric).take(20).collect()
        };
        format!("{}-{}.json", plain(&self.started_utc), plain(&self.short_commit()))
    }

    /// Writes the night into a folder of nights, where it replaces an earlier file of the same night.
    ///
    /// # Errors
    /// [`HistoryError::Io`].
    pub fn write(&self, folder: &Path) -> Result<PathBuf, HistoryError> {
        fs::create_dir_all(folder).map_err(|e| RecordError::io("create", folder, e))?;
        let path = folder.join(self.file_name());
        serde_json::to_string_pretty(self)
            .map_err(std::io::Error::other)
            .and_then(|text| write_atomically(&path, text.as_bytes()))
            .map_err(|e| RecordError::io("write", &path, e))?;
        Ok(path)
    }
}

fn line(workload: &str, encoding: &str, records: &[&RunRecord]) -> NightLine {
    let mean = |values: Vec<f64>| Estimate::of(&values).map(|e| e.mean).filter(|m| m.is_finite());
    let over = |inside: bool, get: fn(&EvalPoint) -> f64| {
        let one = |record: &&RunRecord| {
            let evals = record.evals.iter().filter(|e| e.in_distribution == inside);
            mean(evals.map(get).collect())
        };
        mean(records.iter().filter_map(one).collect())
    };
    let text = records[0].task.headline == "perplexity";
    let counted = |get: fn(&RunRecord) -> Option<u64>| {
        mean(records.iter().filter_map(|r| get(r)).map(|count| count as f64).collect())
    };
    let steps: Vec<f64> = records.iter().filter_map(|r| r.train.step_seconds_median).collect();
    NightLine {
        workload: workload.to_owned(),
        encoding: encoding.to_owned(),
        seeds: records.len() as u32,
        exact_match: over(true, |e| e.exact_match).filter(|_| !text),
        beyond_token_accuracy: over(false, |e| e.token_accuracy),
        nll: over(true, |e| e.nll),
        step_seconds: Estimate::of(&steps).map(|e| e.median),
        params: records[0].params.total,
        flops_train_step: records[0].flops.train_step,
        step_allocations: counted(|r| Some(r.step_allocations?.count)),
        step_allocated_bytes: counted(|r| Some(r.step_allocations?.bytes)),
        step_instructions: counted(|r| r.step_instructions),
    }
}

/// Reads all nights of a folder, the oldest first; none if the folder does not exist.
///
/// # Errors
/// [`HistoryError`] for the first file that cannot be read.
pub fn read(folder: &Path) -> Result<Vec<Night>, HistoryError> {
    let mut nights = Vec::new();
    for path in files_in(folder, "json").map_err(|e| RecordError::io("list", folder, e))? {
        let bytes = fs::read(&path).map_err(|e| RecordError::io("read", &path, e))?;
        let damaged = |reason: String| HistoryError::Damaged { path: path.clone(), reason };
        let night: Night =
            serde_json::from_slice(without_mark(&bytes)).map_err(|e| damaged(e.to_string()))?;
        if night.schema != SCHEMA {
            return Err(damaged(format!("it has schema {}", night.schema)));
        }
        nights.push(night);
    }
    nights.sort_by(|a, b| (&a.started_utc, &a.commit).cmp(&(&b.started_utc, &b.commit)));
    Ok(nights)
}

//! Cells of a sweep as a file beside its records, for commands that are given only the results folder.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tasks::FileError;

use super::plan::SweepPlan;

/// Cells that the last `run` in a results folder planned, whatever its shard: `<results>/plan.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepManifest {
    /// Name of the suite.
    pub suite: String,
    /// Estimated speed of a training in operations per second; `None` if the sweep had nothing to train.
    pub flops_per_second: Option<f64>,
    /// Number of cells that follow when all of these have a record: those of fresh seeds at the chosen rates.
    pub following: usize,
    /// All cells, in the order of the suite.
    pub cells: Vec<ManifestCell>,
}

/// Cell of a plan, for readers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestCell {
    /// Key of the cell.
    pub key: String,
    /// Name of its workload, with the learning rate of a grid.
    pub workload: String,
    /// Name of its encoding in the suite.
    pub encoding: String,
    /// Seed of the cell.
    pub seed: u64,
    /// Number of training steps.
    pub steps: usize,
    /// Analytic operations of the training.
    pub train_flops: u64,
}

impl SweepManifest {
    /// Name of the file in a results folder.
    pub const FILE: &str = "plan.json";

    /// Manifest of a plan that `following` cells follow; `seconds` are the expected times of the cells that are trained, 0
    /// for the others.
    pub fn of(plan: &SweepPlan, seconds: &[f64], following: usize) -> Self {
        let cells = plan.cells.iter().zip(&plan.keys).map(|(planned, key)| ManifestCell {
            key: key.clone(),
            workload: planned.workload_label(),
            encoding: planned.cell.name.clone(),
            seed: planned.cell.seed,
            steps: planned.cell.train.steps,
            train_flops: planned.train_flops(),
        });
        let cells = cells.collect::<Vec<_>>();
        let timed = cells.iter().zip(seconds).filter(|(_, seconds)| **seconds > 0.0);
        let (flops, seconds) = timed.fold((0.0, 0.0), |(flops, sum), (cell, seconds)| {
            (flops + cell.train_flops as f64, sum + seconds)
        });
        let flops_per_second = (flops > 0.0 && seconds > 0.0).then(|| flops / seconds);
        Self { suite: plan.suite.clone(), flops_per_second, following, cells }
    }

    /// Manifest of these cells and those of a later plan.
    #[must_use]
    pub fn followed_by(mut self, later: Self) -> Self {
        self.cells.extend(later.cells);
        Self {
            flops_per_second: later.flops_per_second.or(self.flops_per_second),
            following: later.following,
            ..self
        }
    }

    /// Writes the manifest to a results folder, unless the one there has the same cells.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, results: &Path) -> Result<(), FileError> {
        // A damaged manifest is replaced.
        if let Ok(Some(there)) = Self::read(results)
            && there == (Self { flops_per_second: there.flops_per_second, ..self.clone() })
        {
            return Ok(());
        }
        let path = results.join(Self::FILE);
        let failed = FileError::of("write", &path);
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        records::store::write_atomically(&path, &text).map_err(failed)
    }

    /// Reads the manifest of a results folder; `None` if it has none, as folders of older versions.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a manifest.
    pub fn read(results: &Path) -> anyhow::Result<Option<Self>> {
        let path = results.join(Self::FILE);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(FileError::of("read", &path))?,
        };
        let manifest = serde_json::from_slice(records::store::without_mark(&bytes)).map_err(|error| {
            let path = path.display();
            anyhow::anyhow!(
                "{path} is not a list of cells: {error}; delete the file; the next `pe-bench run` writes it again"
            )
        })?;
        Ok(Some(manifest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> SweepManifest {
        let cell = |key: &str| ManifestCell {
            key: key.to_owned(),
            workload: "copy".to_owned(),
            encoding: "rope".to_owned(),
            seed: 0,
            steps: 10,
            train_flops: 1000,
        };
        SweepManifest {
            suite: "small".to_owned(),
            flops_per_second: Some(1e9),
            following: 0,
            cells: vec![cell("0123456789abcdef"), cell("fedcba9876543210")],
        }
    }

    #[test]
    fn equal_cells_leave_the_file_alone_and_other_cells_replace_it() {
        let results = tempfile::tempdir().unwrap();
        assert_eq!(SweepManifest::read(results.path()).unwrap(), None);
        let first = manifest();
        first.write(results.path()).unwrap();
        SweepManifest { flops_per_second: Some(2e9), ..manifest() }.write(results.path()).unwrap();
        assert_eq!(SweepManifest::read(results.path()).unwrap(), Some(first));
        let mut fewer = manifest();
        fewer.cells.pop();
        fewer.write(results.path()).unwrap();
        assert_eq!(SweepManifest::read(results.path()).unwrap(), Some(fewer.clone()));
        // An editor may have put a byte-order mark before it.
        let path = results.path().join(SweepManifest::FILE);
        let marked = format!("\u{feff}{}", fs::read_to_string(&path).unwrap());
        fs::write(&path, marked).unwrap();
        assert_eq!(SweepManifest::read(results.path()).unwrap(), Some(fewer));
    }

    #[test]
    fn a_damaged_file_is_named_and_replaced_by_the_next_sweep() {
        let results = tempfile::tempdir().unwrap();
        for text in ["", "[]", "{\"suite\": \"x\", \"cells\": [], \"more\": 1}"] {
            fs::write(results.path().join(SweepManifest::FILE), text).unwrap();
            let said = SweepManifest::read(results.path()).unwrap_err().to_string();
            assert!(said.contains("plan.json is not a list of cells"), "{said}");
        }
        manifest().write(results.path()).unwrap();
        assert_eq!(SweepManifest::read(results.path()).unwrap(), Some(manifest()));
    }
}

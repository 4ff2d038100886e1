//! Builder of records of runs that have not begun.

use pe_zoo::attention::Engine;
use pe_zoo::ops::MatmulPrecision;
use records::{EncodingInfo, RunRecord, SCHEMA, Status, TaskInfo, TrainSummary};
use serde_json::Value;
use tasks::Task;

use super::RunContext;
use crate::flops::CountedStep;
use crate::host;

/// Builder of the record of a run that has not begun.
#[derive(Debug)]
pub struct RecordBuilder<'a> {
    /// Suite and resources of the run.
    pub run: &'a RunContext,
    /// Key of the cell.
    pub key: String,
    /// Complete configuration, of which the key is a hash.
    pub config: Value,
    /// Name of the workload within the suite.
    pub workload: String,
    /// Name of the encoding in the suite.
    pub name: String,
    /// Label of the encoding's card.
    pub label: String,
    /// Task that the cell trains on.
    pub task: &'a dyn Task,
    /// Configuration of the task.
    pub task_config: Value,
    /// Seed of the cell.
    pub seed: u64,
    /// Length of the training samples.
    pub train_len: usize,
    /// Sequences per training step; 0 without training.
    pub batch_size: usize,
    /// Sizes by which a training step is counted.
    pub step: CountedStep<'a>,
    /// Name of the backend.
    pub backend: &'a str,
    /// Attention engine of the run.
    pub engine: Engine,
    /// Precision of matrix products.
    pub precision: MatmulPrecision,
}

impl RecordBuilder<'_> {
    /// Builds a record without results and without a grid point.
    pub fn build(self) -> RunRecord {
        let task = self.task.meta();
        let CountedStep { encoding, dims, .. } = self.step;
        let (commit, dirty) = host::commit();
        RunRecord {
            schema: SCHEMA,
            key: self.key,
            suite: self.run.suite.clone(),
            suite_sha256: self.run.suite_sha256.clone(),
            workload: self.workload,
            encoding: EncodingInfo {
                id: encoding.id().to_owned(),
                name: self.name,
                label: self.label,
                config: serde_json::to_value(encoding).unwrap_or_default(),
            },
            task: TaskInfo {
                id: task.id.to_owned(),
                label: task.label.to_owned(),
                version: task.version,
                headline: task.headline.id().to_owned(),
                len_unit: task.len_unit.to_owned(),
                chance: self.task.chance(),
                config: self.task_config,
            },
            config: self.config,
            seed: self.seed,
            grid: None,
            status: Status::Interrupted,
            train_len: self.train_len as u64,
            params: self.step.params(encoding.param_count(&dims).unwrap_or(0)),
            flops: self.step.count(),
            step_allocations: None,
            step_instructions: None,
            train: TrainSummary::not_begun(self.batch_size as u64),
            evals: Vec::new(),
            skipped_evals: Vec::new(),
            gates: Vec::new(),
            peak_bytes: None,
            host_peak_bytes: None,
            device: None,
            host: host::host(self.run.threads, self.run.jobs),
            backend: self.backend.to_owned(),
            engine: self.engine.id().to_owned(),
            score_form: None,
            precision: self.precision.id().to_owned(),
            commit,
            dirty,
            versions: host::versions(),
            started_utc: host::now_utc(),
            weights: None,
            evaluated_by: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pe_zoo::Combination;
    use serde_json::json;
    use tasks::TaskConfig;

    use super::*;
    use pe_zoo::model::ModelConfig;

    #[test]
    fn a_blank_record_says_of_everything_what_was_given() {
        let encoding = Combination::parse("learned-absolute").unwrap();
        let model = ModelConfig { width: 32, ..ModelConfig::default() };
        let task = TaskConfig::from_id("flip-flop").unwrap().build().unwrap();
        let run = RunContext {
            suite: "s".to_owned(),
            suite_sha256: Some("0a".to_owned()),
            threads: 3,
            jobs: 2,
        };
        let (dims, vocabulary) = (model.dims(10, 20), task.vocab_size());
        let (encoding, model) = (&encoding, &model);
        let step = CountedStep { encoding, model, dims, vocabulary, sequences: 6, tokens: 7 };
        let blank = RecordBuilder {
            run: &run,
            key: "k".to_owned(),
            config: json!({ "c": 1 }),
            workload: "w".to_owned(),
            name: "n".to_owned(),
            label: "l".to_owned(),
            task: &*task,
            task_config: json!({ "t": 2 }),
            seed: 4,
            train_len: 9,
            batch_size: 5,
            step,
            backend: "b",
            engine: Engine::Fused,
            precision: MatmulPrecision::Bf16,
        };
        let record = blank.build();
        assert_eq!((record.host.threads, record.host.jobs), (3, 2));
        let mut said = serde_json::to_value(&record).unwrap();
        let of_the_machine = ["host", "commit", "dirty", "versions", "started_utc"];
        for field in of_the_machine {
            assert!(said.as_object_mut().unwrap().remove(field).is_some(), "{field}");
        }
        let own = encoding.param_count(&dims).unwrap();
        assert!(own > 0);
        let expected = json!({
            "schema": SCHEMA,
            "key": "k",
            "suite": "s",
            "suite_sha256": "0a",
            "workload": "w",
            "encoding": {
                "id": encoding.id(), "name": "n", "label": "l", "config": encoding,
            },
            "task": {
                "id": "flip-flop", "label": "Flip-flop", "version": task.meta().version,
                "headline": "exact-match", "len_unit": task.meta().len_unit,
                "chance": task.chance(), "config": { "t": 2 },
            },
            "config": { "c": 1 },
            "seed": 4,
            "status": { "state": "interrupted" },
            "train_len": 9,
            "params": { "total": model.param_count(vocabulary) + own, "encoding": own },
            "flops": step.count(),
            "train": TrainSummary::not_begun(5),
            "evals": [],
            "skipped_evals": [],
            "peak_bytes": null,
            "backend": "b",
            "engine": "fused",
            "precision": "bf16",
        });
        assert_eq!(said, expected);
    }
}

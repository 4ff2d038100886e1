//! Synthetic records for the tests of crates that read records.

use std::collections::BTreeMap;

use serde_json::json;

use crate::record::{
    CurvePoint, EncodingInfo, EvalPoint, FlopCount, GridPoint, Host, ParamCount, RunRecord, SCHEMA,
    SkippedEval, Status, TaskInfo, TrainSummary, Validation,
};
use crate::store::cell_key;

/// Builder of a record with two perfect evaluations: `in-distribution` at length 64 and `sparse` at length 128.
#[derive(Debug, Clone)]
pub struct TestCell(RunRecord);

impl From<RunRecord> for TestCell {
    fn from(record: RunRecord) -> Self {
        Self(record)
    }
}

impl TestCell {
    /// Record of an encoding on a workload with a seed; the configuration has these three alone.
    pub fn new(workload: &str, encoding: &str, seed: u64) -> Self {
        let id = encoding.split('(').next().unwrap_or(encoding);
        let label = match id {
            "rope" => "RoPE",
            "cope" => "CoPE",
            "alibi" => "ALiBi",
            "nope" => "NoPE",
            other => other,
        };
        let config = json!({"encoding": encoding, "workload": workload, "seed": seed});
        let curve = (1..=4_u64)
            .map(|i| CurvePoint {
                step: i * 50,
                loss: 2.0 / (i as f64) + 0.01 * seed as f64,
                learning_rate: 1e-3,
                seconds: i as f64,
            })
            .collect();
        let record = RunRecord {
            schema: SCHEMA,
            key: cell_key(&config),
            suite: "quick".into(),
            suite_sha256: None,
            workload: workload.into(),
            encoding: EncodingInfo {
                id: id.into(),
                name: encoding.into(),
                label: label.into(),
                config: json!({"kind": id}),
            },
            task: TaskInfo {
                id: workload.into(),
                label: workload.to_uppercase(),
                version: 1,
                headline: "exact-match".into(),
                len_unit: "tokens".into(),
                chance: Some(0.5),
                config: json!({}),
            },
            config,
            seed,
            grid: None,
            status: Status::Done,
            train_len: 64,
            params: ParamCount { total: 104_000, encoding: if id == "cope" { 4096 } else { 0 } },
            flops: FlopCount { train_step: 1_500_000_000, forward_per_token: 250_000 },
            step_allocations: None,
            step_instructions: None,
            train: TrainSummary {
                steps: 200,
                batch_size: 16,
                tokens: 204_800,
                final_loss: Some(0.5),
                seconds: 4.0,
                step_seconds_median: Some(if id == "cope" { 0.04 } else { 0.02 }),
                tokens_per_second: Some(51_200.0),
                machine_load: Some(1.0),
                data_parallel: None,
                curve,
                validations: Vec::new(),
                split_validations: Vec::new(),
                solved: None,
                stopped_early: false,
            },
            evals: Vec::new(),
            skipped_evals: Vec::new(),
            gates: Vec::new(),
            peak_bytes: Some(64 << 20),
            host_peak_bytes: None,
            device: None,
            host: Host {
                cpu: "Test CPU <9000>".into(),
                logical_cpus: 2,
                os: "linux".into(),
                threads: 2,
                jobs: 1,
            },
            backend: "flex".into(),
            engine: "reference".into(),
            score_form: None,
            precision: "f32".into(),
            commit: Some("abc1234".into()),
            dirty: Some(false),
            versions: BTreeMap::from([("burn".into(), "0.22.1".into())]),
            started_utc: "2026-01-02T03:04:05Z".into(),
            weights: None,
            evaluated_by: None,
        };
        Self(record).eval("in-distribution", true, 64, 1.0).eval("sparse", false, 128, 1.0)
    }

    /// Adds an evaluation; the token accuracy is half way between `exact` and 1.
    #[must_use]
    pub fn eval(mut self, split: &str, inside: bool, len: u64, exact: f64) -> Self {
        let nll = 0.5 * (1.0 - exact);
        self.0.evals.push(EvalPoint {
            split: split.into(),
            in_distribution: inside,
            trained_split: None,
            len,
            samples: 256,
            scored_tokens: 256 * len,
            exact_match: exact,
            token_accuracy: f64::midpoint(1.0, exact),
            nll,
            perplexity: nll.exp(),
            bits_per_byte: None,
            seconds: 0.25,
            chance: None,
            outcomes: None,
            unseen: None,
            ceiling: None,
            slices: Vec::new(),
        });
        self
    }

    fn evals(
        mut self,
        which: impl Fn(&EvalPoint) -> bool,
        change: impl Fn(&mut EvalPoint),
    ) -> Self {
        self.0.evals.iter_mut().filter(|e| which(e)).for_each(change);
        self
    }

    /// Sets the exact match of all evaluations.
    #[must_use]
    pub fn exact(self, value: f64) -> Self {
        self.inside(value).beyond(value)
    }

    /// Sets the exact match of the evaluations in distribution.
    #[must_use]
    pub fn inside(self, value: f64) -> Self {
        self.evals(|e| e.in_distribution, |e| e.exact_match = value)
    }

    /// Sets the exact match of the other evaluations.
    #[must_use]
    pub fn beyond(self, value: f64) -> Self {
        self.evals(|e| !e.in_distribution, |e| e.exact_match = value)
    }

    /// Sets the token accuracy of all evaluations.
    #[must_use]
    pub fn token_accuracy(self, value: f64) -> Self {
        self.evals(|_| true, |e| e.token_accuracy = value)
    }

    /// Turns the cell into a text task with these negative log-likelihoods.
    #[must_use]
    pub fn text(mut self, inside: f64, beyond: f64) -> Self {
        self.0.task.headline = "perplexity".into();
        self.0.task.chance = None;
        self.evals(
            |_| true,
            |e| {
                e.nll = if e.in_distribution { inside } else { beyond };
                e.perplexity = e.nll.exp();
                e.bits_per_byte = Some(e.nll / std::f64::consts::LN_2);
                e.exact_match = 0.0;
                e.token_accuracy = 0.4;
            },
        )
    }

    /// Sets the status of the cell.
    #[must_use]
    pub fn status(mut self, status: Status) -> Self {
        self.0.status = status;
        self
    }

    /// Removes all evaluations of the cell.
    #[must_use]
    pub fn without_evals(mut self) -> Self {
        self.0.evals.clear();
        self
    }

    /// Removes the evaluations longer than `limit` and records that they were skipped.
    #[must_use]
    pub fn limited_to(mut self, limit: u64) -> Self {
        let (kept, cut): (Vec<_>, Vec<_>) = self.0.evals.into_iter().partition(|e| e.len <= limit);
        self.0.evals = kept;
        self.0.skipped_evals = cut
            .into_iter()
            .map(|e| SkippedEval {
                split: e.split,
                len: e.len,
                reason: format!("the table has {limit} positions"),
            })
            .collect();
        self
    }

    /// Applies a change to the record.
    #[must_use]
    pub fn change(mut self, change: impl FnOnce(&mut RunRecord)) -> Self {
        change(&mut self.0);
        self
    }

    /// Returns the record that was built.
    pub fn record(self) -> RunRecord {
        self.0
    }
}

/// Builds a cell at a grid value with its last validation and its exact match beyond training.
pub fn grid_cell(encoding: &str, seed: u64, value: f64, validated: f64, beyond: f64) -> TestCell {
    TestCell::new("w", encoding, seed).beyond(beyond).change(|r| {
        r.grid = Some(GridPoint {
            axis: "train.optimizer.learning_rate".into(),
            value,
            default: (value - 1e-3).abs() < 1e-12,
            fresh: false,
        });
        r.config = json!({
            "train": { "optimizer": { "learning_rate": value } },
            "encoding": encoding,
            "seed": seed,
        });
        r.key = cell_key(&r.config);
        let point = |exact_match: f64| Validation {
            step: 100,
            exact_match,
            token_accuracy: exact_match,
            nll: 1.0 - exact_match,
            samples: 64,
            seconds: 1.0,
        };
        // Validations before the last one are ignored.
        r.train.validations = vec![point(1.0), point(validated)];
    })
}

/// Builds a small suite with all cases of a report: two tasks, several seeds, an encoding with a limited length, a
/// diverged and a failed cell.
pub fn suite() -> Vec<RunRecord> {
    let mut records = Vec::new();
    for seed in 0..3_u64 {
        let noise = 0.01 * seed as f64;
        for (encoding, beyond) in
            [("cope", 0.96), ("rope", 0.60), ("rope(linear)", 0.61 + 3.0 * noise)]
        {
            records.push(
                TestCell::new("flip-flop", encoding, seed)
                    .eval("sparse", false, 256, 0.0)
                    .beyond(beyond + noise)
                    .record(),
            );
        }
        records.push(
            TestCell::new("flip-flop", "learned-absolute", seed)
                .eval("sparse", false, 256, 0.0)
                .limited_to(64)
                .record(),
        );
    }
    records.push(
        TestCell::new("flip-flop", "nope", 0)
            .without_evals()
            .status(Status::Diverged { step: 17, reason: "loss is NaN".into() })
            .record(),
    );
    for (encoding, beyond) in [("cope", 1.50), ("rope", 1.55), ("alibi", 1.6)] {
        records.push(TestCell::new("text", encoding, 0).text(1.4, beyond).record());
    }
    records.push(
        TestCell::new("text", "nope", 0)
            .without_evals()
            .status(Status::Failed { reason: "no corpus | <gone>".into() })
            .record(),
    );
    records
}

/// Eight seeds of CoPE and RoPE: on `v` CoPE is better at longer lengths by 20 points, on `w` both are equal.
pub fn two_workloads() -> Vec<RunRecord> {
    let cell = |workload: &str, encoding: &str, seed: u64, value: f64| {
        TestCell::new(workload, encoding, seed).beyond(value + 0.01 * seed as f64).record()
    };
    let mut records = Vec::new();
    for seed in 0..8 {
        records.extend([cell("v", "cope", seed, 0.9), cell("v", "rope", seed, 0.7)]);
        records.extend([cell("w", "cope", seed, 0.8), cell("w", "rope", seed, 0.8)]);
    }
    records
}

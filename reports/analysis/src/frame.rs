//! Tidy polars frames of records, from which all results of a report are queried.

mod cached;
mod rows;
mod settings;
mod sorted;

use std::collections::BTreeSet;
use std::path::PathBuf;

use polars::prelude::*;

pub use self::cached::read_frames;
pub use self::rows::{FromColumn, rows};
use records::store::RecordError;
use records::{EvalPoint, RunRecord, Unseen};

/// Error of converting records to frames.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// A polars operation failed.
    #[error("cannot build data frames from the records: {0}")]
    Polars(#[from] PolarsError),
    /// The records cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Frames could not be stored, or stored frames could not be read.
    #[error("cannot store data frames in {}: {source}", path.display())]
    Keep {
        /// Path of the folder.
        path: PathBuf,
        /// Error of the file system.
        source: std::io::Error,
    },
}

/// Frames of records. Every frame has a column `cell`: the row of the record in [`Frames::cells`]. The rows of a frame
/// are in the order of cells, and those of one cell in the order of its record.
#[derive(Debug, Clone)]
pub struct Frames {
    /// One row for each record: what was trained, how it ended, what it cost.
    pub cells: DataFrame,
    /// One row for each evaluation.
    pub evaluations: DataFrame,
    /// One row for each property of each evaluation; values, counts, accuracy and nll are lists.
    pub slices: DataFrame,
    /// One row for each point of each training curve, without its learning rate, which no result needs.
    pub curves: DataFrame,
    /// One row for each validation.
    pub validations: DataFrame,
    /// One row for each validation of a further split.
    pub split_validations: DataFrame,
    /// One row for each gate score.
    pub gates: DataFrame,
    /// One row for each evaluation that was not possible.
    pub skipped: DataFrame,
}

/// Columns that contain JSON, the number of the cell or its age, which no table shows.
const INTERNAL: [&str; 6] =
    ["cell", "config", "task_config", "encoding_config", "outcomes", "newest_utc"];

/// Builds a frame of rows, with one column for each name and function of a row.
#[macro_export]
macro_rules! frame {
    ($rows:expr; $($name:literal: $get:expr,)*) => {{
        let rows = &$rows;
        polars::prelude::df!($($name => rows.iter().map($get).collect::<Vec<_>>(),)*)
    }};
}
pub use frame;

/// Joins frames by `cell`, in the order of the rows of the first, then of the second.
pub fn join_cells(left: LazyFrame, right: LazyFrame, how: JoinType) -> LazyFrame {
    let args = JoinArgs { maintain_order: MaintainOrderJoin::LeftRight, ..JoinArgs::new(how) };
    left.join(right, [col("cell")], [col("cell")], args)
}

/// Iterates over the elements of a list of all records, each with the number of its record.
fn elements<'a, T>(
    records: &'a [RunRecord],
    list: impl Fn(&'a RunRecord) -> &'a [T],
) -> Vec<(u32, &'a T)> {
    (0..).zip(records).flat_map(|(cell, r)| list(r).iter().map(move |item| (cell, item))).collect()
}

/// Builds a column of lists.
fn lists<'a, T: PolarsNumericType>(
    name: &str,
    lists: impl ExactSizeIterator<Item = &'a [T::Native]>,
) -> Column {
    let rows = lists.len();
    let mut builder =
        ListPrimitiveChunkedBuilder::<T>::new(name.into(), rows, 8 * rows, T::get_static_dtype());
    lists.for_each(|list| builder.append_slice(list));
    builder.finish().into_column()
}

impl Frames {
    /// Builds the frames of `records`, in their order.
    ///
    /// # Errors
    /// If polars cannot build a frame or start its threads.
    pub fn of(records: &[RunRecord]) -> PolarsResult<Self> {
        crate::threads::check()?;
        let evaluations = elements(records, |r| &r.evals);
        Ok(Self {
            cells: cells(records)?,
            slices: slices(&evaluations)?,
            evaluations: frame!(evaluations;
                "cell": |(cell, _)| *cell,
                "split": |(_, e)| e.split.as_str(),
                "in_distribution": |(_, e)| e.in_distribution,
                "trained_split": |(_, e)| e.trained_split,
                "len": |(_, e)| e.len,
                "samples": |(_, e)| e.samples,
                "scored_tokens": |(_, e)| e.scored_tokens,
                "exact_match": |(_, e)| e.exact_match,
                "token_accuracy": |(_, e)| e.token_accuracy,
                "nll": |(_, e)| e.nll,
                "perplexity": |(_, e)| e.perplexity,
                "bits_per_byte": |(_, e)| e.bits_per_byte,
                "chance": |(_, e)| e.chance,
                "unseen_samples": |(_, e)| e.unseen.as_ref().map(|unseen| unseen.questions.count()),
                "unseen_exact_match": |(_, e)| unseen(e, |unseen| Some(unseen.exact_match)),
                "unseen_token_accuracy": |(_, e)| unseen(e, |unseen| unseen.token_accuracy),
                "unseen_nll": |(_, e)| unseen(e, |unseen| unseen.nll),
                "unseen_chance": |(_, e)| e.partly_unseen().and_then(|unseen| unseen.chance),
                "unseen_bits_per_byte": |(_, e)| e.partly_unseen().and_then(|u| u.bits_per_byte),
                "ceiling": |(_, e)| e.ceiling,
                "outcomes": |(_, e)| e.counted_outcomes().and_then(|o| serde_json::to_string(&o).ok()),
                "seconds": |(_, e)| e.seconds,
            )?,
            curves: frame!(elements(records, |r| &r.train.curve);
                "cell": |(cell, _)| *cell,
                "step": |(_, p)| p.step,
                "loss": |(_, p)| p.loss,
                "seconds": |(_, p)| p.seconds,
            )?,
            validations: frame!(elements(records, |r| &r.train.validations);
                "cell": |(cell, _)| *cell,
                "step": |(_, v)| v.step,
                "exact_match": |(_, v)| v.exact_match,
                "token_accuracy": |(_, v)| v.token_accuracy,
                "nll": |(_, v)| v.nll,
                "samples": |(_, v)| v.samples,
                "seconds": |(_, v)| v.seconds,
            )?,
            split_validations: frame!(elements(records, |r| &r.train.split_validations);
                "cell": |(cell, _)| *cell,
                "split": |(_, v)| v.split.as_str(),
                "step": |(_, v)| v.result.step,
                "exact_match": |(_, v)| v.result.exact_match,
                "token_accuracy": |(_, v)| v.result.token_accuracy,
                "nll": |(_, v)| v.result.nll,
                "samples": |(_, v)| v.result.samples,
            )?,
            gates: frame!(elements(records, |r| &r.gates);
                "cell": |(cell, _)| *cell,
                "gate": |(_, g)| g.gate.as_str(),
                "layer": |(_, g)| g.layer,
                "head": |(_, g)| g.head,
                "auc": |(_, g)| g.auc,
                "rows": |(_, g)| g.rows,
            )?,
            skipped: frame!(elements(records, |r| &r.skipped_evals);
                "cell": |(cell, _)| *cell,
                "split": |(_, s)| s.split.as_str(),
                "len": |(_, s)| s.len,
                "reason": |(_, s)| s.reason.as_str(),
            )?,
        })
    }

    /// Returns the names of the suites, sorted.
    ///
    /// # Errors
    /// If the cells have no column of suites.
    pub fn suites(&self) -> PolarsResult<Vec<String>> {
        self.distinct("suite")
    }

    /// Returns the keys of the cells, sorted.
    ///
    /// # Errors
    /// If the cells have no column of keys.
    pub fn keys(&self) -> PolarsResult<Vec<String>> {
        self.distinct("key")
    }

    /// Returns the names of the workloads in a report, sorted: with the suite before them if there are several suites,
    /// because the names are unique within a suite only.
    ///
    /// # Errors
    /// If the cells lack a column.
    pub fn workloads(&self) -> PolarsResult<Vec<String>> {
        self.clone().with_unique_workloads()?.distinct("workload")
    }

    /// Returns the distinct texts of a column of the cells, sorted.
    fn distinct(&self, column: &str) -> PolarsResult<Vec<String>> {
        let texts = self.cells.column(column)?.unique()?.sort(SortOptions::default())?;
        String::read(texts.as_materialized_series())
    }

    /// Puts the name of the suite before the names of workloads, if there are several suites.
    ///
    /// # Errors
    /// If the cells lack a column.
    pub fn with_unique_workloads(mut self) -> PolarsResult<Self> {
        if self.suites()?.len() > 1 {
            let name = col("suite") + lit(": ") + col("workload");
            self.cells = self.cells.lazy().with_columns([name.alias("workload")]).collect()?;
        }
        Ok(self)
    }

    /// Name and id of the encoding and id of the task of all cells, each combination once, sorted.
    ///
    /// # Errors
    /// If the cells lack one of these columns.
    pub fn trained(&self) -> PolarsResult<Vec<[String; 3]>> {
        let read = |name: &str| -> PolarsResult<Vec<String>> {
            String::read(self.cells.column(name)?.as_materialized_series())
        };
        let (names, ids, tasks) = (read("encoding")?, read("encoding_id")?, read("task")?);
        let all = names.into_iter().zip(ids).zip(tasks).map(|((name, id), task)| [name, id, task]);
        Ok(all.collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Returns the frames with their names in files.
    pub fn each(&mut self) -> [(&'static str, &mut DataFrame); 8] {
        [
            ("cells", &mut self.cells),
            ("evaluations", &mut self.evaluations),
            ("slices", &mut self.slices),
            ("curves", &mut self.curves),
            ("validations", &mut self.validations),
            ("split_validations", &mut self.split_validations),
            ("gates", &mut self.gates),
            ("skipped", &mut self.skipped),
        ]
    }

    /// Appends the frames of other cells.
    ///
    /// # Errors
    /// If the columns differ.
    pub fn append(&mut self, mut other: Self) -> PolarsResult<()> {
        let offset = self.cells.height() as u32;
        for ((_, own), (_, other)) in self.each().into_iter().zip(other.each()) {
            let cell = &(other.column("cell")?.as_materialized_series() + offset);
            other.with_column(cell.clone().into_column())?;
            own.vstack_mut(other)?;
        }
        Ok(())
    }

    /// Adds every setting of the cells as a column `config.<path>`, for example `config.train.optimizer.learning_rate`.
    ///
    /// # Errors
    /// If polars cannot build a column.
    pub fn with_settings(mut self) -> PolarsResult<Self> {
        self.cells = self.cells.hstack(settings::settings(&self.cells)?.columns())?;
        Ok(self)
    }

    /// Returns the cells without their configurations as JSON.
    pub fn table(&self) -> DataFrame {
        self.cells.drop_many(INTERNAL)
    }

    /// Returns one row for each evaluation with the columns of its cell, and one row for each cell without
    /// evaluations, with nulls in the columns of evaluations. After [`Frames::with_settings`] the settings are among
    /// the columns.
    ///
    /// # Errors
    /// If polars cannot join the frames.
    pub fn data(&self) -> PolarsResult<DataFrame> {
        let (left, right) = (self.cells.clone().lazy(), self.evaluations.clone().lazy());
        Ok(join_cells(left, right, JoinType::Left).collect()?.drop_many(INTERNAL))
    }
}

/// A value of the unseen questions of an evaluation, if it has some and others; NaN if it is not known.
fn unseen(eval: &EvalPoint, value: impl Fn(&Unseen) -> Option<f64>) -> Option<f64> {
    let unseen = eval.partly_unseen()?;
    Some(value(unseen).unwrap_or(f64::NAN))
}

fn cells(records: &[RunRecord]) -> PolarsResult<DataFrame> {
    let versions = |r: &RunRecord| {
        r.versions
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let planned = |r: &RunRecord| {
        // It may have ended earlier, solved or diverged.
        let planned = r.config.pointer("/train/steps").and_then(serde_json::Value::as_u64);
        planned.unwrap_or(r.train.steps)
    };
    let mut cells = frame!(records;
        "suite": |r| r.suite.as_str(),
        "suite_sha256": |r| r.suite_sha256.as_deref(),
        "workload": |r| r.workload.as_str(),
        "task": |r| r.task.id.as_str(),
        "task_label": |r| r.task.label.as_str(),
        "task_version": |r| r.task.version,
        "task_chance": |r| r.task.chance,
        "task_config": |r| r.task.config.to_string(),
        "headline": |r| r.task.headline.as_str(),
        "len_unit": |r| r.task.len_unit.as_str(),
        "encoding": |r| r.encoding.name.as_str(),
        "encoding_id": |r| r.encoding.id.as_str(),
        "encoding_label": |r| r.encoding.label.as_str(),
        "encoding_config": |r| r.encoding.config.to_string(),
        "seed": |r| r.seed,
        "key": |r| r.key.as_str(),
        "config": |r| r.config.to_string(),
        "status": |r| r.status.name(),
        "train_len": |r| r.train_len,
        "params_total": |r| r.params.total,
        "params_encoding": |r| r.params.encoding,
        "flops_train_step": |r| r.flops.train_step,
        "flops_forward_per_token": |r| r.flops.forward_per_token,
        "step_instructions": |r| r.step_instructions,
        "step_allocations": |r| r.step_allocations.map(|asked| asked.count),
        "step_allocated_bytes": |r| r.step_allocations.map(|asked| asked.bytes),
        "grid_axis": |r| r.grid.as_ref().map(|g| g.axis.as_str()),
        "grid_value": |r| r.grid.as_ref().map(|g| g.value),
        "grid_default": |r| r.grid.as_ref().map(|g| g.default),
        "grid_fresh": |r| r.grid.as_ref().is_some_and(|g| g.fresh),
        "solved_step": |r| r.train.solved.map(|s| s.step),
        "solved_seconds": |r| r.train.solved.map(|s| s.seconds),
        "stopped_early": |r| r.train.stopped_early,
        "train_steps": |r| r.train.steps,
        "planned_steps": planned,
        "batch_size": |r| r.train.batch_size,
        "train_tokens": |r| r.train.tokens,
        "final_loss": |r| r.train.final_loss,
        "train_seconds": |r| r.train.seconds,
        "step_seconds_median": |r| r.train.step_seconds_median,
        "tokens_per_second": |r| r.train.tokens_per_second,
        "machine_load": |r| r.train.machine_load,
        "disturbed": |r| r.disturbance().is_some(),
        "peak_bytes": |r| r.peak_bytes,
        "host_cpu": |r| r.host.cpu.as_str(),
        "logical_cpus": |r| r.host.logical_cpus,
        "os": |r| r.host.os.as_str(),
        "threads": |r| r.host.threads,
        "jobs": |r| r.host.jobs,
        "backend": |r| r.backend.as_str(),
        "engine": |r| r.engine.as_str(),
        "score_form": |r| r.score_form.as_deref(),
        "precision": |r| r.precision.as_str(),
        "commit": |r| r.commit.as_deref(),
        "dirty": |r| r.dirty,
        "versions": versions,
        "started_utc": |r| r.started_utc.as_str(),
        "newest_utc": |r| r.started().0,
        "reason": |r| r.status.reason(),
    )?;
    let numbers: Vec<u32> = (0..records.len() as u32).collect();
    cells.insert_column(0, Column::new("cell".into(), numbers))?;
    Ok(cells)
}

fn slices(evaluations: &[(u32, &records::EvalPoint)]) -> PolarsResult<DataFrame> {
    let rows: Vec<_> = evaluations
        .iter()
        .flat_map(|(cell, eval)| eval.slices.iter().map(move |slices| (*cell, *eval, slices)))
        .collect();
    let mut frame = frame!(rows;
        "cell": |(cell, ..)| *cell,
        "split": |(_, e, _)| e.split.as_str(),
        "len": |(_, e, _)| e.len,
        "in_distribution": |(_, e, _)| e.in_distribution,
        "slice": |(.., s)| s.name.as_str(),
        "unit": |(.., s)| s.unit.name(),
    )?;
    // Columns of unequal length end with the shortest.
    let len = |s: &records::Slices| {
        s.values.len().min(s.counts.len()).min(s.accuracy.len()).min(s.nll.len())
    };
    let each = || rows.iter().map(|(.., s)| (*s, len(s)));
    frame.with_column(lists::<UInt32Type>("value", each().map(|(s, len)| &s.values[..len])))?;
    frame.with_column(lists::<UInt64Type>("count", each().map(|(s, len)| &s.counts[..len])))?;
    frame
        .with_column(lists::<Float64Type>("accuracy", each().map(|(s, len)| &s.accuracy[..len])))?;
    frame.with_column(lists::<Float64Type>("nll", each().map(|(s, len)| &s.nll[..len])))?;
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::testkit::suite;

    #[test]
    fn no_record_is_without_a_row() {
        let records = suite();
        let evals: usize = records.iter().map(|r| r.evals.len().max(1)).sum();
        let frames = Frames::of(&records).unwrap();
        let data = frames.data().unwrap();
        assert_eq!(data.height(), evals);
        let without = records.iter().filter(|r| r.evals.is_empty()).count();
        assert!(without > 0);
        assert_eq!(data.column("split").unwrap().null_count(), without);
        assert_eq!(frames.cells.height(), records.len());
        assert_eq!(Frames::of(&[]).unwrap().data().unwrap().height(), 0);
    }

    #[test]
    fn every_setting_is_a_column_of_its_type() {
        let mut records = suite()[..2].to_vec();
        records[0].config =
            serde_json::json!({"train": {"rate": 1, "on": true, "lens": [1, 2]}, "only": "here"});
        records[1].config =
            serde_json::json!({"train": {"rate": 0.5, "on": false, "lens": null}, "seed": "text"});
        let cells = Frames::of(&records).unwrap().with_settings().unwrap().cells;
        let column = |name: &str| cells.column(name).unwrap().as_materialized_series().clone();
        assert_eq!(
            column("config.train.rate").f64().unwrap().iter().flatten().collect::<Vec<_>>(),
            [1.0, 0.5]
        );
        assert_eq!(column("config.train.on").bool().unwrap().get(1), Some(false));
        assert_eq!(column("config.train.lens").str().unwrap().get(0), Some("[1,2]"));
        assert_eq!(column("config.train.lens").str().unwrap().get(1), None);
        assert_eq!(column("config.only").str().unwrap().get(0), Some("here"));
        assert_eq!(column("config.seed").str().unwrap().get(0), None);
    }
}

//! Selection of the cells that enter the numbers of a report.

use polars::prelude::*;

use crate::frame::{Frames, join_cells, rows};
use stats::Mean;

rows! {
    /// A cell that is excluded from all numbers, with the reason.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct NotCounted {
        /// Name of the workload: a task at one size.
        pub workload: String,
        /// Name of the encoding.
        pub encoding: String,
        /// Seed of the cell.
        pub seed: u64,
        /// Key of the cell.
        pub key: String,
        /// `diverged`, `failed`, `interrupted` or `superseded`.
        pub state: String,
        /// Reason, as a phrase.
        pub reason: String,
    }
}

/// Cells of one workload with the frames of their evaluations, curves and other lists.
#[derive(Debug, Clone)]
pub(crate) struct Selection<'a> {
    frames: &'a Frames,
    cells: DataFrame,
}

impl<'a> Selection<'a> {
    /// Creates a selection of the given cells, sorted by encoding and seed.
    ///
    /// # Errors
    /// If the query fails.
    pub(super) fn new(frames: &'a Frames, cells: LazyFrame) -> PolarsResult<Self> {
        let cells = cells.sort(["encoding", "seed"], stable()).collect()?;
        Ok(Self { frames, cells })
    }

    #[cfg(test)]
    pub(crate) fn counted(frames: &'a Frames) -> PolarsResult<Self> {
        let cells = with_newest(frames.cells.clone().lazy())?;
        Self::new(frames, cells.filter(is_newest().and(has_status("done"))))
    }

    /// The cells, sorted by encoding and seed.
    pub(super) fn cells(&self) -> LazyFrame {
        self.cells.clone().lazy()
    }

    /// Returns the rows of a frame that belong to these cells, in their order, with the columns `workload`,
    /// `encoding`, `seed`, `train_len`, `headline` and `task_chance` of the cell.
    pub(super) fn rows(&self, frame: fn(&Frames) -> &DataFrame) -> LazyFrame {
        let names =
            ["cell", "workload", "encoding", "seed", "train_len", "headline", "task_chance"];
        let of_cell = self.cells().select(names.map(col));
        join_cells(of_cell, frame(self.frames).clone().lazy(), JoinType::Inner)
    }

    /// Returns the evaluations of these cells, where only some questions are unseen with the results on these.
    pub(super) fn evaluations(&self) -> LazyFrame {
        let unseen = |name: &str| col(format!("unseen_{name}")).fill_null(col(name)).alias(name);
        self.rows(|frames| &frames.evaluations).with_columns(COUNTED.map(unseen))
    }
}

/// Columns of evaluations that have another value on the unseen questions, in the column `unseen_<name>`.
const COUNTED: [&str; 5] = ["exact_match", "token_accuracy", "nll", "chance", "bits_per_byte"];

pub(super) fn stable() -> SortMultipleOptions {
    SortMultipleOptions::default().with_maintain_order(true)
}

/// Returns an aggregation: the mean of the non-null values of a column, summed from first to last.
pub(super) fn mean(name: &str) -> Expr {
    let mean = |values: Column| {
        let name = values.name().clone();
        let values: Vec<f64> = values.f64()?.iter().flatten().collect();
        Ok(Column::new(name, [Mean::of(&values).map(|found| found.mean)]))
    };
    // A group's result is a list of one element.
    col(name).cast(DataType::Float64).apply(mean, |_, field| Ok(field.clone())).first()
}

/// Adds the columns `newest` and `newest_key` to the cells: the cell of the same encoding and seed that was trained, or
/// evaluated again from kept weights, last.
///
/// A results folder keeps the cells of older configurations. Two cells of one encoding and seed are one seed, not two.
///
/// # Errors
/// If polars refuses the window.
pub(super) fn with_newest(cells: LazyFrame) -> PolarsResult<LazyFrame> {
    let last = |name: &str| col(name).last().over([col("encoding"), col("seed")]);
    Ok(cells
        .sort(["encoding", "seed", "newest_utc", "key"], stable())
        .with_columns([last("cell")?.alias("newest"), last("key")?.alias("newest_key")]))
}

/// Returns the condition that a cell of [`with_newest`] is the newest of its encoding and seed.
pub(super) fn is_newest() -> Expr {
    col("cell").eq(col("newest"))
}

pub(super) fn has_status(status: &'static str) -> Expr {
    col("status").eq(lit(status))
}

/// Returns the cells of [`with_newest`] that are excluded, sorted by encoding and seed.
///
/// # Errors
/// If the query fails.
pub(super) fn not_counted(cells: LazyFrame) -> PolarsResult<Vec<NotCounted>> {
    let superseded = lit("cell ")
        + col("newest_key")
        + lit(" of the same encoding and seed, with another configuration, is newer");
    let others = cells
        .filter(is_newest().and(has_status("done")).not())
        .with_columns([
            when(is_newest()).then(col("status")).otherwise(lit("superseded")).alias("state"),
            when(is_newest()).then(col("reason")).otherwise(superseded).alias("reason"),
            is_newest().not().alias("old"),
        ])
        .sort(["encoding", "seed", "old", "newest_utc", "key"], stable());
    NotCounted::of(others)
}

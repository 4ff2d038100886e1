//! Comparison of published numbers with those of records: which agree, which differ, which were not run.
//!
//! [`published`] contains the numbers as data with their sources. [`reproduction`] finds the records of the same
//! experiment (task, split, length, encoding with its settings, and the other settings that a table names as its
//! identity), groups them by recipe, and gives a verdict on each number; see [`Verdict`]. Where a table names a suite of
//! another size, the order of its rows there is judged as claims of papers are; see [`SizeOrder`].
//!
//! A paper publishes only a part of its recipe. Settings that are not published are not compared; they are listed
//! below the table.

mod order;
pub mod published;
pub mod recipe;
mod runs;
mod verdict;

use std::collections::BTreeMap;

pub use self::order::SizeOrder;
pub use self::published::PublishedError;
use self::published::{Paper, Printed, PublishedColumn, PublishedTable, Source};
use self::recipe::Identity;
pub use self::runs::RecipeRun;
use self::runs::{Candidates, Wanted};
pub use self::verdict::{VERDICTS, Verdict, published_interval};
use crate::frame::Frames;

/// All published numbers with the results of the records.
#[derive(Debug, Clone)]
pub struct Reproduction {
    /// Tables by source, in the order of the files.
    pub tables: Vec<TableResult>,
}

/// A table of a source with the runs beside its numbers.
#[derive(Debug, Clone)]
pub struct TableResult {
    /// Source of the table.
    pub source: Source,
    /// Table as it was published.
    pub table: PublishedTable,
    /// Numbers by row, one for each column.
    pub rows: Vec<Vec<NumberResult>>,
    /// Order of the rows in each suite of another size that the table names.
    pub orders: Vec<SizeOrder>,
}

/// A published number with the runs that reproduce it.
#[derive(Debug, Clone)]
pub struct NumberResult {
    /// The number as published.
    pub published: Printed,
    /// Range of values that the published number represents; see [`published_interval`]. `None` if it has not been copied.
    pub published_interval: Option<(f64, f64)>,
    /// Verdict, given by the first of `runs`.
    pub verdict: Verdict,
    /// Runs by recipe, the one nearest to the published recipe first.
    pub runs: Vec<RecipeRun>,
    /// Runs in suites of another size, at most one for each, which have no part in the verdict.
    pub other_sizes: Vec<RecipeRun>,
}

impl NumberResult {
    /// Formats the runs of suites of another size; empty without any.
    pub fn other_sizes_text(&self) -> String {
        let texts = self.other_sizes.iter().map(|run| format!("ours {}", run.text_with_suite()));
        texts.collect::<Vec<_>>().join("; ")
    }
}

impl TableResult {
    /// Iterates over all numbers with the title of their row and their column, row by row.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, &PublishedColumn, &NumberResult)> {
        self.table.rows.iter().zip(&self.rows).flat_map(|(row, numbers)| {
            let columns = self.table.columns.iter().zip(numbers);
            columns.map(|(column, number)| (row.title(), column, number))
        })
    }

    /// Returns the settings of a run that differ from the published ones, and the differences of the task, as one text.
    pub fn differences(&self, run: &RecipeRun) -> String {
        let settings = run.differences.iter().map(ToString::to_string);
        settings.chain(self.table.unlike.iter().cloned()).collect::<Vec<_>>().join("; ")
    }
}

/// Compares every published number with the cells of `frames`, in whatever order they come.
///
/// # Errors
/// [`PublishedError`] if the numbers that are compiled in cannot be used, or a query fails.
pub fn reproduction(frames: &Frames) -> Result<Reproduction, PublishedError> {
    beside(published::papers()?, &published::encodings()?, frames)
}

/// Compares the numbers of `papers` with the cells of `frames`. `encodings` are the settings behind the expressions of the rows.
///
/// # Errors
/// As [`reproduction`].
pub fn beside(
    papers: Vec<Paper>,
    encodings: &BTreeMap<String, Identity>,
    frames: &Frames,
) -> Result<Reproduction, PublishedError> {
    let candidates = Candidates::of(frames, papers.iter().flat_map(|paper| &paper.tables))?;
    let mut tables = Vec::new();
    for Paper { paper: source, tables: own } in papers {
        for table in own {
            tables.push(beside_table(&source, table, encodings, &candidates)?);
        }
    }
    Ok(Reproduction { tables })
}

fn beside_table(
    source: &Source,
    table: PublishedTable,
    encodings: &BTreeMap<String, Identity>,
    candidates: &Candidates,
) -> Result<TableResult, PublishedError> {
    let mut rows = Vec::new();
    for row in &table.rows {
        let encoding = row.trained().map(|expression| {
            encodings.get(expression).ok_or_else(|| PublishedError::Encoding {
                file: source.id.clone(),
                expression: expression.to_owned(),
            })
        });
        let encoding = encoding.transpose()?;
        let number = |(column, printed): (&PublishedColumn, &Printed)| {
            let runs = |smaller| {
                let wanted = encoding.zip(column.split.as_deref()).map(|(encoding, split)| {
                    Wanted { table: &table, row, column, split, encoding, smaller }
                });
                wanted.map_or_else(Vec::new, |wanted| candidates.runs(&wanted))
            };
            let mut number = NumberResult {
                published: printed.clone(),
                published_interval: published_interval(&table, row, column, printed),
                verdict: Verdict::NotRun,
                runs: if table.task.is_some() { runs(None) } else { Vec::new() },
                other_sizes: Vec::new(),
            };
            for smaller in &table.smaller {
                let run = runs(Some(smaller)).into_iter().find(|run| !run.by_seed.is_empty());
                number.other_sizes.extend(run);
            }
            let spread_known =
                table.unread_deviations.is_none() || row.deviations.contains_key(&column.name);
            number.verdict = verdict::judge(&table, &number, spread_known);
            number
        };
        rows.push(table.columns.iter().zip(&row.values).map(number).collect());
    }
    let orders = table.smaller.iter().map(|smaller| SizeOrder::of(&smaller.suite, &table, &rows));
    let orders = orders.collect();
    Ok(TableResult { source: source.clone(), table, rows, orders })
}

#[cfg(test)]
mod tests;

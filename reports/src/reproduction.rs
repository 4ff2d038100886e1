//! Published numbers beside ours: what agrees, what differs, what was not run.
//!
//! [`published`] holds the numbers as data with their sources. [`reproduction`] looks for records of the
//! same experiment (task, split, length, encoding with its settings, and what else a table names as its
//! identity), gathers them by recipe, and says for each number how it stands; see [`Verdict`] for the rule.
//!
//! A paper tells only part of its recipe. What it does not tell cannot differ, and is listed as not
//! published beside the table.

mod page;
pub mod published;
pub mod recipe;
mod runs;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

pub use page::Section;
pub use published::PublishedError;
pub use runs::Run;
pub use verdict::{VERDICTS, Verdict, published_interval};

use self::published::{Column, Paper, Plan, PublishedTable, Row, Source};
use self::recipe::Identity;
use self::runs::{Candidates, Wanted, runs};
use crate::record::RunRecord;

/// Every published number with what records say of it.
#[derive(Debug, Clone)]
pub struct Reproduction {
    /// Sorted by id.
    pub papers: Vec<PaperResult>,
}

/// A source with its tables.
#[derive(Debug, Clone)]
pub struct PaperResult {
    /// The source.
    pub source: Source,
    /// In the order of the file.
    pub tables: Vec<TableResult>,
}

/// A table of a paper.
#[derive(Debug, Clone)]
pub struct TableResult {
    /// The published side.
    pub table: PublishedTable,
    /// In the order of the file.
    pub rows: Vec<RowResult>,
}

/// A row of a table.
#[derive(Debug, Clone)]
pub struct RowResult {
    /// As the paper calls it, or its encoding's expression.
    pub title: String,
    /// One for each column.
    pub numbers: Vec<NumberResult>,
}

/// One published number.
#[derive(Debug, Clone)]
pub struct NumberResult {
    /// As published.
    pub published: f64,
    /// The values that it stands for; see [`published_interval`].
    pub published_interval: (f64, f64),
    /// What is said of it, after the first of `runs`.
    pub verdict: Verdict,
    /// Ours, by recipe: the nearest to the published one first.
    pub runs: Vec<Run>,
    /// What is different here whatever the settings.
    pub unlike: Vec<String>,
}

impl NumberResult {
    /// Everything in which the nearest run is another experiment, as one text; empty if nothing.
    pub fn listed_differences(&self) -> String {
        let Some(run) = self.runs.first() else { return String::new() };
        let settings = run.differences.iter().map(ToString::to_string);
        settings.chain(self.unlike.iter().cloned()).collect::<Vec<_>>().join("; ")
    }
}

impl TableResult {
    /// All numbers with their row and column, row by row.
    pub fn numbers(&self) -> impl Iterator<Item = ((&str, &Column), &NumberResult)> {
        self.rows.iter().flat_map(|row| {
            let places = self.table.columns.iter().map(|column| (row.title.as_str(), column));
            places.zip(&row.numbers)
        })
    }
}

/// Sets every published number beside what `records` say, in whatever order they come.
///
/// # Errors
/// [`PublishedError`] if the numbers that are compiled in cannot be used.
pub fn reproduction(records: &[RunRecord]) -> Result<Reproduction, PublishedError> {
    beside(published::papers()?, &published::encodings()?, records)
}

fn beside(
    papers: Vec<Paper>,
    encodings: &BTreeMap<String, Identity>,
    records: &[RunRecord],
) -> Result<Reproduction, PublishedError> {
    let tables = papers.iter().flat_map(|paper| &paper.tables);
    let tasks: BTreeSet<String> =
        tables.filter_map(|table| table.task().map(str::to_owned)).collect();
    let candidates = Candidates::of(records, &tasks, encodings);
    let mut results = Vec::new();
    for Paper { paper: source, tables } in papers {
        let mut done = Vec::new();
        for table in tables {
            let mut rows = Vec::new();
            for row in &table.rows {
                let encoding = known(&source, &table, row, encodings)?;
                let numbers = table
                    .columns
                    .iter()
                    .zip(&row.values)
                    .map(|(column, value)| {
                        number(&table, row, column, *value, encoding, &candidates)
                    })
                    .collect();
                rows.push(RowResult { title: row.title().to_owned(), numbers });
            }
            done.push(TableResult { table, rows });
        }
        results.push(PaperResult { source, tables: done });
    }
    Ok(Reproduction { papers: results })
}

/// The settings of a row's encoding, if it names one.
fn known<'a>(
    source: &Source,
    table: &PublishedTable,
    row: &Row,
    encodings: &'a BTreeMap<String, Identity>,
) -> Result<Option<&'a Identity>, PublishedError> {
    let Some(expression) = &row.encoding else { return Ok(None) };
    let found = encodings.get(expression).ok_or_else(|| PublishedError::Entry {
        file: source.id.clone(),
        at: format!("table `{}`: row `{}`", table.id, row.title()),
        reason: format!(
            "`{expression}` is not in published/encodings.json; `cargo test --workspace --test published` \
             says how to write it anew"
        ),
    })?;
    Ok(Some(found))
}

fn number(
    table: &PublishedTable,
    row: &Row,
    column: &Column,
    value: f64,
    encoding: Option<&Identity>,
    candidates: &Candidates<'_>,
) -> NumberResult {
    let interval = published_interval(table, row, column, value);
    let runs = match (&table.plan, &column.split, encoding) {
        (Plan::Records { task, .. }, Some(split), Some(encoding)) => runs(
            candidates,
            &Wanted {
                table,
                column,
                task,
                split,
                encoding,
                free: &row.free,
                identity: table.identity_of(row, column),
            },
        ),
        _ => Vec::new(),
    };
    let verdict = match (runs.first(), &table.plan) {
        (Some(run), _) => verdict::judge(table, run, interval),
        (None, Plan::Instead(_)) => Verdict::Elsewhere,
        (None, Plan::Records { .. } | Plan::Missing(_)) => Verdict::NotRun,
    };
    NumberResult {
        published: value,
        published_interval: interval,
        verdict,
        runs,
        unlike: table.unlike.clone(),
    }
}

#[cfg(test)]
mod tests;

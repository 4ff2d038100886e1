//! Comparison of published numbers with those of records: which agree, which differ, which were not run.
//!
//! [`published`] contains the numbers as data with their sources. [`reproduction`] finds the records of the same
//! experiment (task, split, length, encoding with its settings, and the other settings that a table names as its
//! identity), groups them by recipe, and gives a verdict on each number; see [`Verdict`].
//!
//! A paper publishes only a part of its recipe. Settings that are not published are not compared; they are listed
//! below the table.

mod document;
pub mod published;
pub mod recipe;
mod result;
mod runs;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

pub use self::published::PublishedError;
use self::published::{
    Coverage, Paper, Printed, PublishedColumn, PublishedRow, PublishedTable, Source,
};
use self::recipe::Identity;
pub use self::result::{NumberResult, PaperResult, Reproduction, RowResult, TableResult};
pub use self::runs::RecipeRun;
use self::runs::{Candidates, Wanted, runs};
pub use self::verdict::{VERDICTS, Verdict, published_interval};
use crate::frame::Frames;

/// Compares every published number with the cells of `frames`, in whatever order they come.
///
/// # Errors
/// [`PublishedError`] if the numbers that are compiled in cannot be used, or a query fails.
pub fn reproduction(frames: &Frames) -> Result<Reproduction, PublishedError> {
    beside(published::papers()?, &published::encodings()?, frames)
}

fn beside(
    papers: Vec<Paper>,
    encodings: &BTreeMap<String, Identity>,
    frames: &Frames,
) -> Result<Reproduction, PublishedError> {
    let tables = papers.iter().flat_map(|paper| &paper.tables);
    let tasks: BTreeSet<String> =
        tables.filter_map(|table| table.task().map(str::to_owned)).collect();
    let candidates = Candidates::of(frames, &tasks, encodings)?;
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
                        number(&table, row, column, value, encoding, &candidates)
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

/// Returns the settings of a row's encoding, if the row names one.
fn known<'a>(
    source: &Source,
    table: &PublishedTable,
    row: &PublishedRow,
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
    row: &PublishedRow,
    column: &PublishedColumn,
    printed: &Printed,
    encoding: Option<&Identity>,
    candidates: &Candidates,
) -> NumberResult {
    let interval = published_interval(table, row, column, printed);
    let runs = match (&table.plan, &column.split, encoding) {
        (Coverage::Records { task, .. }, Some(split), Some(encoding)) => runs(
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
    let spread_known =
        table.unread_deviations.is_none() || row.deviations.contains_key(&column.name);
    let verdict = match (interval, runs.first(), &table.plan) {
        (None, ..) => Verdict::Unread,
        (Some(interval), Some(run), _) => verdict::judge(table, run, interval, spread_known),
        (Some(_), None, Coverage::Instead(_)) => Verdict::Elsewhere,
        (Some(_), None, Coverage::Records { .. } | Coverage::Missing(_)) => Verdict::NotRun,
    };
    NumberResult {
        published: printed.clone(),
        published_interval: interval,
        verdict,
        runs,
        unlike: table.unlike.clone(),
    }
}

#[cfg(test)]
mod tests;

//! Comparison of published numbers with those of records: which agree, which differ, which were not run.
//!
//! [`published`] contains the numbers as data with their sources. [`reproduction`] finds the records of the same
//! experiment (task, split, length, encoding with its settings, and the other settings that a table names as its
//! identity), groups them by recipe, and gives a verdict on each number; see [`Verdict`].
//!
//! A paper publishes only a part of its recipe. Settings that are not published are not compared; they are listed
//! below the table.

mod document;
mod order;
pub mod published;
pub mod recipe;
mod result;
mod runs;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use self::order::OrderedNumber;
pub use self::order::SizeOrder;
pub use self::published::PublishedError;
use self::published::{
    Coverage, Paper, Printed, PublishedColumn, PublishedRow, PublishedTable, SmallerSuite, Source,
};
use self::recipe::Identity;
pub use self::result::{
    NumberResult, OtherSize, PaperResult, Reproduction, RowResult, TableResult,
};
pub use self::runs::RecipeRun;
use self::runs::{Candidates, Wanted, runs};
pub use self::verdict::{VERDICTS, Verdict, published_interval};
use analysis::frame::Frames;

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
    let tasks: BTreeSet<String> = tables
        .flat_map(|table| {
            let smaller = table.smaller.iter().map(|smaller| smaller.task.as_str());
            table.task().into_iter().chain(smaller).map(str::to_owned)
        })
        .collect();
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
            let mut orders = Vec::new();
            for smaller in &table.smaller {
                let numbers = ordered(&source, &table, smaller, encodings, &candidates)?;
                // A fixed stream: the same records give the same interval.
                let mut rng = ChaCha8Rng::seed_from_u64(0);
                orders.push(SizeOrder::of(&smaller.suite, &numbers, &mut rng));
                for OrderedNumber { row, column, metric, run, .. } in numbers {
                    let other = OtherSize { suite: smaller.suite.clone(), metric, run };
                    rows[row].numbers[column].other_sizes.push(other);
                }
            }
            done.push(TableResult { table, rows, orders });
        }
        results.push(PaperResult { source, tables: done });
    }
    Ok(Reproduction { papers: results })
}

/// Returns the settings of the encoding that records of a row have, if the row names one.
fn known<'a>(
    source: &Source,
    table: &PublishedTable,
    row: &PublishedRow,
    encodings: &'a BTreeMap<String, Identity>,
) -> Result<Option<&'a Identity>, PublishedError> {
    let Some(expression) = row.trained() else { return Ok(None) };
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

/// Returns the numbers of a table of which a suite of another size has runs.
fn ordered(
    source: &Source,
    table: &PublishedTable,
    smaller: &SmallerSuite,
    encodings: &BTreeMap<String, Identity>,
    candidates: &Candidates,
) -> Result<Vec<OrderedNumber>, PublishedError> {
    let task = &smaller.task;
    let mut numbers = Vec::new();
    for (row_index, row) in table.rows.iter().enumerate() {
        let Some(encoding) = known(source, table, row, encodings)? else { continue };
        for (column_index, (column, printed)) in table.columns.iter().zip(&row.values).enumerate() {
            let Some((split, published)) = column.split.as_ref().zip(printed.value) else {
                continue;
            };
            let identity = smaller.identity(table.identity_of(row, column));
            let (free, smaller) = (&row.free, Some(smaller));
            let wanted = Wanted { table, column, task, split, encoding, free, identity, smaller };
            // Scores are in the order of their opposites where the records have losses.
            let is_turned = wanted.metric().is_gain() != table.metric_of(column).is_gain();
            let published = if is_turned { -published } else { published };
            let run = runs(candidates, &wanted).into_iter().find(|run| !run.by_seed.is_empty());
            let metric = wanted.metric().clone();
            numbers.extend(run.map(|run| OrderedNumber {
                row: row_index,
                column: column_index,
                published,
                metric,
                run,
            }));
        }
    }
    Ok(numbers)
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
        (Coverage::Records { task, .. }, Some(split), Some(encoding)) => {
            let identity = table.identity_of(row, column);
            let free = &row.free;
            let smaller = None;
            let wanted = Wanted { table, column, task, split, encoding, free, identity, smaller };
            runs(candidates, &wanted)
        }
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
        other_sizes: Vec::new(),
        unlike: table.unlike.clone(),
    }
}

#[cfg(test)]
mod tests;

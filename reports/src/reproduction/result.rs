//! Published numbers with the runs beside them, as data.

use super::published::{PublishedColumn, PublishedTable, Source};
use super::runs::RecipeRun;
use super::verdict::Verdict;

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
    pub runs: Vec<RecipeRun>,
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
    pub fn numbers(&self) -> impl Iterator<Item = ((&str, &PublishedColumn), &NumberResult)> {
        self.rows.iter().flat_map(|row| {
            let places = self.table.columns.iter().map(|column| (row.title.as_str(), column));
            places.zip(&row.numbers)
        })
    }
}

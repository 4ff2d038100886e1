//! Published numbers with the runs beside them, as data.

use super::order::SizeOrder;
use super::published::{Printed, PublishedColumn, PublishedMetric, PublishedTable, Source};
use super::runs::RecipeRun;
use super::verdict::Verdict;

/// All published numbers with the results of the records.
#[derive(Debug, Clone)]
pub struct Reproduction {
    /// Sources, sorted by id.
    pub papers: Vec<PaperResult>,
}

/// A source with its tables.
#[derive(Debug, Clone)]
pub struct PaperResult {
    /// Source of the numbers.
    pub source: Source,
    /// Tables in the order of the file.
    pub tables: Vec<TableResult>,
}

/// A table of a paper.
#[derive(Debug, Clone)]
pub struct TableResult {
    /// Table as it was published.
    pub table: PublishedTable,
    /// Rows in the order of the file.
    pub rows: Vec<RowResult>,
    /// Order of the rows in each suite of another size that the table names.
    pub orders: Vec<SizeOrder>,
}

/// A row of a table.
#[derive(Debug, Clone)]
pub struct RowResult {
    /// Title: the paper's name of the row, or the expression of its encoding.
    pub title: String,
    /// Numbers, one for each column.
    pub numbers: Vec<NumberResult>,
}

/// A published number with the runs that reproduce it.
#[derive(Debug, Clone)]
pub struct NumberResult {
    /// The number as published.
    pub published: Printed,
    /// Range of values that the published number represents; see `published_interval`. `None` if it has not been copied.
    pub published_interval: Option<(f64, f64)>,
    /// Verdict, given by the first of `runs`.
    pub verdict: Verdict,
    /// Runs by recipe, the one nearest to the published recipe first.
    pub runs: Vec<RecipeRun>,
    /// Runs of the suites of another size that the table names.
    pub other_sizes: Vec<OtherSize>,
    /// Differences of the task that exist whatever the settings.
    pub unlike: Vec<String>,
}

/// Run of a row in a suite of another size, which has no part in the verdict.
#[derive(Debug, Clone)]
pub struct OtherSize {
    /// Name of the suite.
    pub suite: String,
    /// Metric of the run.
    pub metric: PublishedMetric,
    /// Nearest run of the suite.
    pub run: RecipeRun,
}

impl OtherSize {
    /// Formats the result with its unit and suite: ``1.6 [1.5 to 1.7] n=3 perplexity in `small` ``.
    pub fn text(&self) -> String {
        format!("{} {} in `{}`", self.run.text(&self.metric), self.metric.unit(), self.suite)
    }
}

impl NumberResult {
    /// Returns the differences of the nearest run as one text; empty without differences.
    pub fn listed_differences(&self) -> String {
        let Some(run) = self.runs.first() else { return String::new() };
        let settings = run.differences.iter().map(ToString::to_string);
        settings.chain(self.unlike.iter().cloned()).collect::<Vec<_>>().join("; ")
    }
}

impl TableResult {
    /// Iterates over all numbers with their row and column, row by row.
    pub fn numbers(&self) -> impl Iterator<Item = ((&str, &PublishedColumn), &NumberResult)> {
        self.rows.iter().flat_map(|row| {
            let places = self.table.columns.iter().map(|column| (row.title.as_str(), column));
            places.zip(&row.numbers)
        })
    }
}

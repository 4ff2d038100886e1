//! Published numbers as data: `reports/analysis/published/*.toml`, one file for each source, compiled in.
//!
//! A table of a file is a table of the paper: rows are encodings, columns are settings of the evaluation. It also
//! defines how records of the experiment are found: by `task`, split and length of the column, the encoding's
//! settings, and
//!
//! * `identity`: paths of a record's `config` whose values must match, or the record is of another experiment;
//! * `recipe`: paths whose values may differ, which makes it the same experiment with another recipe.
//!
//! Entries of a column override those of a row, which override those of the table. `"unset"` matches a path without a
//! value, `{ any = [..] }` one of several values, `{ contains = ".." }` a text that contains another. A table that no record can reproduce states the reason (`missing`)
//! or the command that reproduces it (`instead`); `needs` states requirements for a verdict on its numbers. `smaller`
//! lists suites and tasks at another size with all rows or some of them, whose order alone is compared and whose numbers are shown. A
//! row that is refused here because it is another encoding names that one (`trained_as`). `stability` names numbers in the
//! output of `pe-bench stability`, which are set beside the published ones without a verdict.
//!
//! Numbers are texts with the printed digits, which determine the rounding. `"unread"` is a number that the source
//! prints and that has not been copied; `unread_deviations` is the same for standard deviations.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::recipe::{Expected, Identity, Paths};
use records::Metric;

/// Contents of the files, each with its id.
const FILES: &[(&str, &str)] = &[
    ("cope", include_str!("../../published/cope.toml")),
    ("cope-vs-rope", include_str!("../../published/cope-vs-rope.toml")),
    ("grape", include_str!("../../published/grape.toml")),
    ("tape", include_str!("../../published/tape.toml")),
];

/// Settings of every encoding that a file names, in the form of records. A test of `bench`, which knows the
/// encodings, writes it.
const ENCODINGS: &str = include_str!("../../published/encodings.json");

/// Errors of published numbers. The files are compiled in and tested, so a program that passed its tests returns only the first.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// The records cannot be compared.
    #[error("the records cannot be compared with published numbers: {0}")]
    Records(#[from] polars::prelude::PolarsError),
    /// The file is not valid TOML or not of this layout.
    #[error("published/{file}.toml: {source}")]
    Syntax {
        /// Id of the file.
        file: String,
        /// Error of the parser, with its position.
        source: Box<toml::de::Error>,
    },
    /// The file `encodings.json` is damaged.
    #[error(
        "published/encodings.json: {0}; `cargo test --workspace --test published` prints how to write the file again"
    )]
    Encodings(#[from] serde_json::Error),
    /// The file `encodings.json` lacks an encoding.
    #[error(
        "published/{file}.toml: `{expression}` is not in published/encodings.json; `cargo test --workspace --test \
         published` prints how to write the file again"
    )]
    Encoding {
        /// Id of the file that names it.
        file: String,
        /// Expression of the encoding.
        expression: String,
    },
}

/// Reads one file.
///
/// # Errors
/// [`PublishedError::Syntax`], with the file and the position in it.
pub fn parse(file: &str, text: &str) -> Result<Paper, PublishedError> {
    let syntax =
        |source| PublishedError::Syntax { file: file.to_owned(), source: Box::new(source) };
    toml::from_str(text).map_err(syntax)
}

/// Returns every source, sorted by id.
///
/// # Errors
/// As [`parse`].
pub fn papers() -> Result<Vec<Paper>, PublishedError> {
    FILES.iter().map(|(file, text)| parse(file, text)).collect()
}

/// Returns the settings of every encoding that a row names, by expression.
///
/// # Errors
/// [`PublishedError::Encodings`].
pub fn encodings() -> Result<BTreeMap<String, Identity>, PublishedError> {
    Ok(serde_json::from_str(ENCODINGS)?)
}

/// A source with its tables.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Source of the numbers.
    pub paper: Source,
    /// Tables of the source.
    #[serde(rename = "table")]
    pub tables: Vec<PublishedTable>,
}

/// Source of published numbers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Kebab-case id, equal to the name of the file.
    pub id: String,
    /// Short name for headings.
    pub label: String,
    /// Full title of the source.
    pub title: String,
    /// URL of the source.
    pub url: String,
    /// Description of how the numbers were read.
    pub about: String,
}

/// Metric of a published number.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishedMetric {
    /// Share of answers that are correct as a whole, in percent.
    ExactMatchPercent,
    /// Share of answers with an error anywhere, in percent.
    ErrorPercent,
    /// Share of scored tokens that are wrong, in percent.
    TokenErrorPercent,
    /// Perplexity per scored token.
    Perplexity,
    /// A metric that records do not have, with this unit.
    Other(String),
}

impl PublishedMetric {
    /// Returns `number` with its unit: `1.6 perplexity`, `0.03%`, `12.5% wrong`.
    pub fn with_unit(&self, number: &str) -> String {
        let unit = self.unit();
        let blank = if unit.starts_with('%') { "" } else { " " };
        format!("{number}{blank}{unit}")
    }

    /// Returns the unit or name of the metric for use in text.
    pub fn unit(&self) -> &str {
        match self {
            Self::ExactMatchPercent => "% right",
            Self::ErrorPercent | Self::TokenErrorPercent => "% wrong",
            Self::Perplexity => "perplexity",
            Self::Other(unit) => unit,
        }
    }

    /// Whether a greater number is the better one.
    pub(super) fn is_gain(&self) -> bool {
        matches!(self, Self::ExactMatchPercent | Self::Other(_))
    }

    pub(super) fn is_percent(&self) -> bool {
        matches!(self, Self::ExactMatchPercent | Self::ErrorPercent | Self::TokenErrorPercent)
    }

    /// Metric of records from which the number follows; `None` for a metric that they do not have.
    pub(super) fn of_records(&self) -> Option<Metric> {
        match self {
            Self::ExactMatchPercent | Self::ErrorPercent => Some(Metric::ExactMatch),
            Self::TokenErrorPercent => Some(Metric::TokenAccuracy),
            Self::Perplexity => Some(Metric::Perplexity),
            Self::Other(_) => None,
        }
    }

    /// Converts a value of the metric of records to the published unit.
    pub(super) fn shown(&self, value: f64) -> f64 {
        match self {
            Self::Perplexity => value.exp(),
            Self::ErrorPercent | Self::TokenErrorPercent => 100.0 * (1.0 - value),
            Self::ExactMatchPercent | Self::Other(_) => 100.0 * value,
        }
    }
}

/// Published number with its printed digits.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Printed {
    /// The number with all printed digits, or `unread`.
    pub text: String,
    /// The number; `None` if the source prints one that has not been copied.
    pub value: Option<f64>,
}

/// Text of a number that the source prints and that has not been copied.
const UNREAD: &str = "unread";

impl TryFrom<String> for Printed {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let value = match text.as_str() {
            UNREAD => None,
            text => Some(text.parse().map_err(|_| {
                format!("`{text}`, expected a number as it is printed, or `{UNREAD}`")
            })?),
        };
        Ok(Self { text, value })
    }
}

impl Printed {
    /// Half of the last printed digit.
    pub fn rounding(&self) -> f64 {
        let decimals = self.text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        0.5 * 10f64.powi(-(decimals as i32))
    }
}

/// A suite of another size with the same rows, whose order is compared with the published one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmallerSuite {
    /// Name of the suite.
    pub suite: String,
    /// Registry id of its task.
    pub task: String,
    /// Name of its workload; `None`: any.
    pub workload: Option<String>,
    /// Metric of the suite's records where the table has scores that records do not have, of which more is better.
    pub metric: Option<PublishedMetric>,
    /// Settings of the suite in place of published ones that identify a row: by path and published value, as text.
    #[serde(default)]
    pub settings: BTreeMap<String, BTreeMap<String, Expected>>,
}

impl SmallerSuite {
    /// Returns the settings that a record of the suite must have, given those of the published experiment.
    pub fn identity(&self, published: Paths) -> Paths {
        let ours = |(path, expected): (String, Expected)| {
            let own = self.settings.get(&path).and_then(|values| values.get(&expected.text()));
            let own = own.cloned().unwrap_or(expected);
            (path, own)
        };
        published.into_iter().map(ours).collect()
    }
}

/// A table of a paper. Exactly one of `task`, `instead` and `missing` is given.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// Kebab-case id, unique in its file.
    pub id: String,
    /// Place in the source, for example `Table 1`.
    pub source: String,
    /// Description of the experiment and its sizes.
    pub what: String,
    /// Metric of the numbers, unless a column has another.
    pub metric: PublishedMetric,
    /// Number of seeds behind each number; `None` if not published.
    pub seeds: Option<u32>,
    /// Reason why standard deviations that the source prints have not been copied; `None` if all have been.
    pub unread_deviations: Option<String>,
    /// Assessment of the reliability of the numbers.
    pub trust: String,
    /// Facts that the source does not state.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// Differences of the task that exist whatever the settings.
    #[serde(default)]
    pub unlike: Vec<String>,
    /// Registry id of the task whose records are compared, for example `flip-flop`.
    pub task: Option<String>,
    /// Suite with the paper's recipe.
    pub suite: Option<String>,
    /// Command that reproduces the table, which no records do.
    pub instead: Option<String>,
    /// Reason why the table is not reproduced.
    pub missing: Option<String>,
    /// Suites that compare the same rows at another size.
    #[serde(default)]
    pub smaller: Vec<SmallerSuite>,
    /// Requirement for a verdict on the numbers; `None` if records of the suite suffice.
    pub needs: Option<String>,
    /// Settings that a record must have to be of this experiment.
    #[serde(default)]
    pub identity: Paths,
    /// Settings of the published training.
    #[serde(default)]
    pub recipe: Paths,
    /// Settings that an output of `pe-bench stability --json` must have to be set beside the columns with a `stability`.
    #[serde(default)]
    pub stability: BTreeMap<String, u64>,
    /// Columns: settings of the evaluation.
    pub columns: Vec<PublishedColumn>,
    /// Rows: encodings or methods.
    pub rows: Vec<PublishedRow>,
}

/// A column: one evaluation of the models of the rows.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedColumn {
    /// Name in the paper, unique in its table.
    pub name: String,
    /// Split of the task.
    pub split: Option<String>,
    /// Length of the evaluation divided by that of training.
    #[serde(default = "one")]
    pub length_ratio: f64,
    /// Metric, if it differs from that of the table.
    pub metric: Option<PublishedMetric>,
    /// Place of the number in the output of `pe-bench stability --json`, as a JSON pointer to a share of which the column
    /// has hundredths; `None` for columns that are not measured by it.
    pub stability: Option<String>,
    /// Overrides of the table's identity.
    #[serde(default)]
    pub identity: Paths,
}

fn one() -> f64 {
    1.0
}

/// A row: one encoding or method.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRow {
    /// Expression of the encoding in the grammar of `pe-bench`; `None` for a method that is not an encoding.
    pub encoding: Option<String>,
    /// Expression of the same model in our suites, where that of the row is refused because it is another encoding.
    pub trained_as: Option<String>,
    /// Name in the paper, if it differs from the expression.
    pub name: Option<String>,
    /// Settings of the encoding that are not published; records may have any value.
    #[serde(default)]
    pub free: BTreeSet<String>,
    /// Overrides of the table's identity.
    #[serde(default)]
    pub identity: Paths,
    /// Values, one for each column.
    pub values: Vec<Printed>,
    /// Standard deviation over seeds, by name of the column.
    #[serde(default)]
    pub deviations: BTreeMap<String, f64>,
    /// Standard error of the evaluation, by name of the column.
    #[serde(default)]
    pub standard_errors: BTreeMap<String, f64>,
}

impl PublishedRow {
    /// Returns the title of the row.
    pub fn title(&self) -> &str {
        self.name.as_deref().or(self.encoding.as_deref()).unwrap_or_default()
    }

    /// Returns the expression of the encoding that our records have.
    pub fn trained(&self) -> Option<&str> {
        self.trained_as.as_deref().or(self.encoding.as_deref())
    }
}

impl PublishedTable {
    /// Returns the metric of a column.
    pub fn metric_of<'a>(&'a self, column: &'a PublishedColumn) -> &'a PublishedMetric {
        column.metric.as_ref().unwrap_or(&self.metric)
    }

    /// Returns the settings that a record must have to match a row and column.
    pub fn identity_of(&self, row: &PublishedRow, column: &PublishedColumn) -> Paths {
        let nearer = row.identity.iter().chain(&column.identity);
        self.identity
            .iter()
            .chain(nearer)
            .map(|(path, value)| (path.clone(), value.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests;

//! Published numbers as data: `reports/published/*.toml`, one file for each source, compiled in.
//!
//! A table of a file is a table of the paper: rows are encodings, columns are settings of the
//! evaluation. It also says how a record of ours is recognised: `task`, split and length of the column,
//! the encoding's settings, and
//!
//! * `identity`: paths of a record's `config` without whose values a record shows something else;
//! * `recipe`: paths whose other values make it the same experiment under another recipe.
//!
//! Of both, what stands nearer wins: column, then row, then table. `"unset"` stands for a path without a
//! value, `{ any = [..] }` for one of several. A table for which no record can exist says why (`missing`)
//! or which command shows it (`instead`).

mod check;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::recipe::{Expected, Identity};

/// Paths of a record's configuration with the values that they must have.
pub type Paths = BTreeMap<String, Expected>;

/// The files, by the id that each must have.
const FILES: &[(&str, &str)] = &[
    ("cope", include_str!("../../published/cope.toml")),
    ("cope-vs-rope", include_str!("../../published/cope-vs-rope.toml")),
    ("grape", include_str!("../../published/grape.toml")),
    ("tape", include_str!("../../published/tape.toml")),
];

/// Settings of every encoding that a file names, as records have them: a test of `bench`, which knows
/// the encodings, writes it.
const ENCODINGS: &str = include_str!("../../published/encodings.json");

/// Published numbers that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// No TOML, or not of this layout.
    #[error("published/{file}.toml: {source}")]
    Syntax {
        /// The file.
        file: String,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// `encodings.json` is damaged.
    #[error(
        "published/encodings.json: {0}; `cargo test --workspace --test published` says how to write it anew"
    )]
    Encodings(#[from] serde_json::Error),
    /// An entry that contradicts itself or another.
    #[error("published/{file}.toml: {at}: {reason}")]
    Entry {
        /// The file.
        file: String,
        /// The table, and what of it.
        at: String,
        /// What is wrong, and what was expected.
        reason: String,
    },
}

/// A source with its tables.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The source.
    pub paper: Source,
    /// Its tables.
    #[serde(rename = "table")]
    pub tables: Vec<PublishedTable>,
}

/// Where numbers come from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Kebab-case, the file's name.
    pub id: String,
    /// Short, for headings.
    pub label: String,
    /// In full.
    pub title: String,
    /// Where to read it.
    pub url: String,
    /// How the numbers were read.
    pub about: String,
}

/// What a number is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishedMetric {
    /// Answers that are right as a whole, in percent.
    ExactMatchPercent,
    /// Answers that are wrong anywhere, in percent.
    ErrorPercent,
    /// Scored tokens that are wrong, in percent.
    TokenErrorPercent,
    /// Perplexity per token.
    Perplexity,
    /// Something that records do not hold, in this unit.
    Other(String),
}

impl PublishedMetric {
    /// Its unit or name, for people.
    pub fn unit(&self) -> &str {
        match self {
            Self::ExactMatchPercent => "% right",
            Self::ErrorPercent | Self::TokenErrorPercent => "% wrong",
            Self::Perplexity => "perplexity",
            Self::Other(unit) => unit,
        }
    }

    pub(super) fn is_percent(&self) -> bool {
        matches!(self, Self::ExactMatchPercent | Self::ErrorPercent | Self::TokenErrorPercent)
    }
}

/// How a table of a paper can be met here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// By records of this task.
    Records {
        /// Registry id.
        task: String,
        /// The suite with the paper's recipe.
        suite: Option<String>,
    },
    /// Not by records, but by this command.
    Instead(String),
    /// Not at all, for this reason.
    Missing(String),
}

/// A table of a paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "RawTable")]
pub struct PublishedTable {
    /// Kebab-case, unique in its file.
    pub id: String,
    /// Where in the source it stands.
    pub source: String,
    /// What was measured, at which sizes.
    pub what: String,
    /// What the numbers are, unless their column says otherwise.
    pub metric: PublishedMetric,
    /// Half of the last printed digit.
    pub rounding: f64,
    /// Seeds behind each number, if that is published.
    pub seeds: Option<u32>,
    /// How far to trust the numbers.
    pub trust: String,
    /// What the source does not say.
    pub unknown: Vec<String>,
    /// What is different here whatever the settings.
    pub unlike: Vec<String>,
    /// How it can be met.
    pub plan: Plan,
    /// What makes it this experiment.
    pub identity: Paths,
    /// How it was trained.
    pub recipe: Paths,
    /// Settings of the evaluation.
    pub columns: Vec<Column>,
    /// Encodings, or methods.
    pub rows: Vec<Row>,
}

/// The file's side of [`PublishedTable`], where exclusive keys stand beside each other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    id: String,
    source: String,
    what: String,
    metric: PublishedMetric,
    rounding: f64,
    seeds: Option<u32>,
    trust: String,
    #[serde(default)]
    unknown: Vec<String>,
    #[serde(default)]
    unlike: Vec<String>,
    task: Option<String>,
    suite: Option<String>,
    instead: Option<String>,
    missing: Option<String>,
    #[serde(default)]
    identity: Paths,
    #[serde(default)]
    recipe: Paths,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

impl TryFrom<RawTable> for PublishedTable {
    type Error = String;

    fn try_from(raw: RawTable) -> Result<Self, String> {
        let plan = match (raw.task, raw.suite, raw.instead, raw.missing) {
            (Some(task), suite, None, None) => Plan::Records { task, suite },
            (None, None, Some(command), None) => Plan::Instead(command),
            (None, None, None, Some(reason)) => Plan::Missing(reason),
            _ => {
                return Err(format!(
                    "table `{}`: expected exactly one of `task` (with or without `suite`), `instead` and `missing`",
                    raw.id
                ));
            }
        };
        Ok(Self {
            id: raw.id,
            source: raw.source,
            what: raw.what,
            metric: raw.metric,
            rounding: raw.rounding,
            seeds: raw.seeds,
            trust: raw.trust,
            unknown: raw.unknown,
            unlike: raw.unlike,
            plan,
            identity: raw.identity,
            recipe: raw.recipe,
            columns: raw.columns,
            rows: raw.rows,
        })
    }
}

/// A column: one evaluation of the models of the rows.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// As the paper calls it, unique in its table.
    pub name: String,
    /// The split of our task.
    pub split: Option<String>,
    /// Length of the evaluation over that of training.
    #[serde(default = "one")]
    pub length_ratio: f64,
    /// What the numbers are, if not what the table says.
    pub metric: Option<PublishedMetric>,
    /// As the table's.
    #[serde(default)]
    pub identity: Paths,
}

fn one() -> f64 {
    1.0
}

/// A row: one encoding or method.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Expression in the grammar of `pe-bench`, if it is an encoding.
    pub encoding: Option<String>,
    /// As the paper calls it, if not as its encoding is called.
    pub name: Option<String>,
    /// Settings of the encoding that are not published: any value will do.
    #[serde(default)]
    pub free: BTreeSet<String>,
    /// As the table's.
    #[serde(default)]
    pub identity: Paths,
    /// One for each column.
    pub values: Vec<f64>,
    /// Standard deviation over seeds, by name of the column.
    #[serde(default)]
    pub deviations: BTreeMap<String, f64>,
    /// Standard error of the evaluation, by name of the column.
    #[serde(default)]
    pub standard_errors: BTreeMap<String, f64>,
}

impl Row {
    /// What the row is called.
    pub fn title(&self) -> &str {
        self.name.as_deref().or(self.encoding.as_deref()).unwrap_or_default()
    }
}

impl PublishedTable {
    /// The task whose records stand beside it, if any do.
    pub fn task(&self) -> Option<&str> {
        match &self.plan {
            Plan::Records { task, .. } => Some(task),
            Plan::Instead(_) | Plan::Missing(_) => None,
        }
    }

    /// A published number with the digits of its table, or with its own where it has more.
    pub fn show(&self, value: f64) -> String {
        let decimals = (-(2.0 * self.rounding).log10()).ceil().max(0.0) as usize;
        let text = format!("{value:.decimals$}");
        if text.parse() == Ok(value) { text } else { value.to_string() }
    }

    /// What the numbers of a column are.
    pub fn metric_of<'a>(&'a self, column: &'a Column) -> &'a PublishedMetric {
        column.metric.as_ref().unwrap_or(&self.metric)
    }

    /// What makes a record one of this row and column.
    pub fn identity_of(&self, row: &Row, column: &Column) -> Paths {
        let nearer = row.identity.iter().chain(&column.identity);
        self.identity
            .iter()
            .chain(nearer)
            .map(|(path, value)| (path.clone(), value.clone()))
            .collect()
    }
}

/// Reads one file.
///
/// # Errors
/// [`PublishedError`], the file and the place in it named.
pub fn parse(file: &str, text: &str) -> Result<Paper, PublishedError> {
    let paper: Paper = toml::from_str(text).map_err(|source| PublishedError::Syntax {
        file: file.to_owned(),
        source: Box::new(source),
    })?;
    let entry = |(at, reason)| PublishedError::Entry { file: file.to_owned(), at, reason };
    if paper.paper.id != file {
        let reason = format!("`{}`, expected the name of its file", paper.paper.id);
        return Err(entry(("paper.id".to_owned(), reason)));
    }
    let mut ids = BTreeSet::new();
    for table in &paper.tables {
        table.check().map_err(entry)?;
        if !ids.insert(&table.id) {
            return Err(entry((format!("table `{}`", table.id), "stands twice".to_owned())));
        }
    }
    Ok(paper)
}

/// Every source, sorted by id.
///
/// # Errors
/// [`PublishedError`]; the files are compiled in and tested, so never in a program that passed its tests.
pub fn papers() -> Result<Vec<Paper>, PublishedError> {
    FILES.iter().map(|(file, text)| parse(file, text)).collect()
}

/// Settings of every encoding that a row names, by expression.
///
/// # Errors
/// As [`papers`].
pub fn encodings() -> Result<BTreeMap<String, Identity>, PublishedError> {
    Ok(serde_json::from_str(ENCODINGS)?)
}

#[cfg(test)]
mod tests;

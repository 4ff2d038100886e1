//! Tables of published numbers.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::reproduction::recipe::{Expected, Paths};

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
    pub(in crate::reproduction) fn is_gain(&self) -> bool {
        matches!(self, Self::ExactMatchPercent | Self::Other(_))
    }

    pub(in crate::reproduction) fn is_percent(&self) -> bool {
        matches!(self, Self::ExactMatchPercent | Self::ErrorPercent | Self::TokenErrorPercent)
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

/// Way in which a published table can be reproduced here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    /// From records of a task.
    Records {
        /// Registry id of the task, for example `flip-flop`.
        task: String,
        /// Suite with the paper's recipe.
        suite: Option<String>,
    },
    /// By this command, not from records.
    Instead(String),
    /// Not reproduced, for this reason.
    Missing(String),
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

/// A table of a paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "RawTable")]
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
    pub unknown: Vec<String>,
    /// Differences of the task that exist whatever the settings.
    pub unlike: Vec<String>,
    /// Way in which the table can be reproduced here.
    pub plan: Coverage,
    /// Suites that compare the same rows at another size.
    pub smaller: Vec<SmallerSuite>,
    /// Requirement for a verdict on the numbers; `None` if records of the suite suffice.
    pub needs: Option<String>,
    /// Settings that a record must have to be of this experiment.
    pub identity: Paths,
    /// Settings of the published training.
    pub recipe: Paths,
    /// Settings that an output of `pe-bench stability --json` must have to be set beside the columns with a `stability`.
    pub stability: BTreeMap<String, u64>,
    /// Columns: settings of the evaluation.
    pub columns: Vec<PublishedColumn>,
    /// Rows: encodings or methods.
    pub rows: Vec<PublishedRow>,
}

/// Serialised form of [`PublishedTable`], in which mutually exclusive keys are separate fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    id: String,
    source: String,
    what: String,
    metric: PublishedMetric,
    seeds: Option<u32>,
    unread_deviations: Option<String>,
    trust: String,
    #[serde(default)]
    unknown: Vec<String>,
    #[serde(default)]
    unlike: Vec<String>,
    task: Option<String>,
    suite: Option<String>,
    #[serde(default)]
    smaller: Vec<SmallerSuite>,
    instead: Option<String>,
    missing: Option<String>,
    needs: Option<String>,
    #[serde(default)]
    identity: Paths,
    #[serde(default)]
    recipe: Paths,
    #[serde(default)]
    stability: BTreeMap<String, u64>,
    columns: Vec<PublishedColumn>,
    rows: Vec<PublishedRow>,
}

impl TryFrom<RawTable> for PublishedTable {
    type Error = String;

    fn try_from(raw: RawTable) -> Result<Self, String> {
        let plan = match (raw.task, raw.suite, raw.instead, raw.missing) {
            (Some(task), suite, None, None) => Coverage::Records { task, suite },
            (None, None, Some(command), None) => Coverage::Instead(command),
            (None, None, None, Some(reason)) => Coverage::Missing(reason),
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
            seeds: raw.seeds,
            unread_deviations: raw.unread_deviations,
            trust: raw.trust,
            unknown: raw.unknown,
            unlike: raw.unlike,
            plan,
            smaller: raw.smaller,
            needs: raw.needs,
            identity: raw.identity,
            recipe: raw.recipe,
            stability: raw.stability,
            columns: raw.columns,
            rows: raw.rows,
        })
    }
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
    /// Returns the id of the task whose records are compared, if any.
    pub fn task(&self) -> Option<&str> {
        match &self.plan {
            Coverage::Records { task, .. } => Some(task),
            Coverage::Instead(_) | Coverage::Missing(_) => None,
        }
    }

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

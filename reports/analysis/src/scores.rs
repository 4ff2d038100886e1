//! Records of trainings that other programs made, from a table of their scores.

use std::collections::BTreeMap;
use std::io::Cursor;

use polars::prelude::{DataFrame, PolarsError, SerReader as _};
use polars_io::csv::read::CsvReadOptions;
use records::store::cell_key;
use records::{
    Answers, EncodingInfo, EvalPoint, FlopCount, Host, Metric, Outcomes, ParamCount, RunRecord,
    SCHEMA, Status, TaskInfo, TrainSummary,
};
use serde_json::{Value, json};

/// Columns that a table of scores must have.
const REQUIRED: [&str; 7] = ["encoding", "task", "train_len", "seed", "split", "len", "score"];
/// Columns that a table of scores may have.
const OPTIONAL: [&str; 9] = [
    "metric",
    "trained",
    "samples",
    "chance",
    "answers",
    "params",
    "step_flops",
    "step_seconds",
    "peak_bytes",
];

/// Backend of the records of a table of scores.
pub const PROGRAM: &str = "another program";

/// Split whose samples have the distribution of the training samples, where the column `trained` does not say it.
const TRAINED: &str = "in-distribution";

/// Error of a table of scores.
#[derive(Debug, thiserror::Error)]
pub enum ScoresError {
    /// The text is not CSV.
    #[error("expected CSV with column names in its first line: {reason}")]
    NotCsv {
        /// Problem of the parser.
        reason: String,
    },
    /// A column is missing or unknown.
    #[error(
        "{problem}; expected the columns {}, and any of the optional columns {}",
        REQUIRED.join(", "),
        OPTIONAL.join(", ")
    )]
    Columns {
        /// Problem with the columns.
        problem: String,
    },
    /// A value cannot be used.
    #[error("line {line}: {column} is `{value}`, expected {expected}")]
    Value {
        /// Number of the line, from 1.
        line: usize,
        /// Name of the column.
        column: &'static str,
        /// Text of the value.
        value: String,
        /// Values that can be used.
        expected: String,
    },
}

/// Reads a table of scores in CSV: a record for each encoding, task and seed, with an evaluation for each line.
///
/// `label` is the display name of an encoding.
///
/// # Errors
/// The first line that cannot be used.
pub fn records_of_scores(
    csv: &[u8],
    label: impl Fn(&str) -> String,
) -> Result<Vec<RunRecord>, ScoresError> {
    let table = read(csv)?;
    let mut cells: BTreeMap<(&str, &str, u64), RunRecord> = BTreeMap::new();
    let mut metrics: BTreeMap<&str, &str> = BTreeMap::new();
    for at in 0..table.height() {
        let row = ScoreRow { table: &table, at };
        let encoding = row.required("encoding")?;
        let task = row.required("task")?;
        let seed = row.whole("seed")?;
        if *metrics.entry(task).or_insert(row.headline()) != row.headline() {
            return Err(row.refused("metric", "the same metric in all lines of a task"));
        }
        let record = match cells.entry((task, encoding, seed)) {
            std::collections::btree_map::Entry::Occupied(cell) => cell.into_mut(),
            std::collections::btree_map::Entry::Vacant(cell) => {
                cell.insert(row.cell(label(encoding))?)
            }
        };
        let eval = row.evaluation(record)?;
        if record.eval(&eval.split, eval.len).is_some() {
            return Err(row.refused("split", "one line for each seed, split and length"));
        }
        record.evals.push(eval);
    }
    Ok(cells.into_values().collect())
}

/// Reads a table of texts and checks its columns.
fn read(csv: &[u8]) -> Result<DataFrame, ScoresError> {
    let options = CsvReadOptions::default().with_infer_schema_length(Some(0));
    let table = options.into_reader_with_file_handle(Cursor::new(csv)).finish();
    let table = table.map_err(|error| match error {
        // The library's own messages recommend its options.
        PolarsError::ComputeError(text) if text.contains("more fields than") => {
            let problem = "a line has more fields than the first line has column names".to_owned();
            ScoresError::Columns { problem }
        }
        other => {
            let text = other.to_string();
            let advice = ["\n", "Consider ", "You might "].into_iter();
            let end = advice.filter_map(|words| text.find(words)).min().unwrap_or(text.len());
            ScoresError::NotCsv { reason: text[..end].trim().to_owned() }
        }
    })?;
    let names = table.get_column_names();
    let names = names.iter().map(|name| name.as_str()).collect::<Vec<_>>();
    let problem = |problem| Err(ScoresError::Columns { problem });
    if let Some(missing) = REQUIRED.iter().find(|name| !names.contains(name)) {
        return problem(format!("no column `{missing}`"));
    }
    if let Some((twice, _)) = names.iter().find_map(|name| name.split_once("_duplicated_")) {
        return problem(format!("the column `{twice}` occurs twice"));
    }
    let known = |name: &&&str| REQUIRED.contains(*name) || OPTIONAL.contains(*name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        return problem(format!("unknown column `{unknown}`"));
    }
    if table.height() == 0 {
        return problem("no line after the column names".to_owned());
    }
    Ok(table)
}

/// A line of a table.
struct ScoreRow<'a> {
    table: &'a DataFrame,
    at: usize,
}

impl<'a> ScoreRow<'a> {
    fn text(&self, column: &str) -> Option<&'a str> {
        let values = self.table.column(column).ok()?.str().ok()?;
        values.get(self.at).map(str::trim).filter(|text| !text.is_empty())
    }

    fn required(&self, column: &'static str) -> Result<&'a str, ScoresError> {
        self.text(column).ok_or_else(|| self.refused(column, "a value"))
    }

    fn refused(&self, column: &'static str, expected: &str) -> ScoresError {
        ScoresError::Value {
            // The first line has the names.
            line: self.at + 2,
            column,
            value: self.text(column).unwrap_or_default().to_owned(),
            expected: expected.to_owned(),
        }
    }

    /// The value of an optional column.
    fn value<T: std::str::FromStr>(
        &self,
        column: &'static str,
        expected: &str,
    ) -> Result<Option<T>, ScoresError> {
        let parse = |text: &str| text.parse().map_err(|_| self.refused(column, expected));
        self.text(column).map(parse).transpose()
    }

    fn count(&self, column: &'static str) -> Result<Option<u64>, ScoresError> {
        self.value(column, "a whole number")
    }

    fn number(&self, column: &'static str) -> Result<Option<f64>, ScoresError> {
        Ok(self.count(column)?.map(|count| count as f64))
    }

    /// Score of guessing.
    fn chance(&self, metric: Metric) -> Result<Option<f64>, ScoresError> {
        let chance = self.value::<f64>("chance", "a number")?;
        let (is_possible, expected): (fn(f64) -> bool, &str) = match metric {
            Metric::Perplexity => (|x| x.is_finite() && x >= 1.0, "a perplexity of at least 1"),
            _ => (|x| (0.0..=1.0).contains(&x), "an exact match from 0 to 1"),
        };
        match chance {
            Some(number) if !is_possible(number) => Err(self.refused("chance", expected)),
            known => Ok(known),
        }
    }

    fn positive(&self, column: &'static str) -> Result<Option<f64>, ScoresError> {
        let value = self.value::<f64>(column, "a number")?;
        match value {
            Some(number) if !number.is_finite() || number <= 0.0 => {
                Err(self.refused(column, "a number above 0"))
            }
            _ => Ok(value),
        }
    }

    fn whole(&self, column: &'static str) -> Result<u64, ScoresError> {
        self.count(column)?.ok_or_else(|| self.refused(column, "a whole number"))
    }

    /// A record without evaluations.
    fn cell(&self, label: String) -> Result<RunRecord, ScoresError> {
        let encoding = self.required("encoding")?.to_owned();
        let task = self.required("task")?.to_owned();
        let (seed, train_len) = (self.whole("seed")?, self.whole("train_len")?);
        let config = json!({
            "encoding": encoding, "task": task, "seed": seed, "train_len": train_len,
        });
        Ok(RunRecord {
            schema: SCHEMA,
            key: cell_key(&config),
            suite: "scores".to_owned(),
            suite_sha256: None,
            workload: task.clone(),
            encoding: EncodingInfo {
                id: encoding.clone(),
                name: encoding,
                label,
                config: Value::Null,
            },
            task: TaskInfo {
                id: task.clone(),
                label: task,
                version: 1,
                headline: self.headline().to_owned(),
                len_unit: "tokens".to_owned(),
                chance: None,
                config: Value::Null,
            },
            config,
            seed,
            grid: None,
            status: Status::Done,
            train_len,
            params: ParamCount { total: self.count("params")?.unwrap_or_default(), encoding: 0 },
            flops: FlopCount {
                train_step: self.count("step_flops")?.unwrap_or_default(),
                forward_per_token: 0,
            },
            step_allocations: None,
            step_instructions: None,
            train: TrainSummary {
                step_seconds_median: self.positive("step_seconds")?,
                ..TrainSummary::default()
            },
            evals: Vec::new(),
            skipped_evals: Vec::new(),
            gates: Vec::new(),
            peak_bytes: self.count("peak_bytes")?,
            host_peak_bytes: None,
            device: None,
            host: Host {
                cpu: "unknown".to_owned(),
                logical_cpus: 1,
                os: "unknown".to_owned(),
                threads: 1,
                jobs: 1,
            },
            backend: PROGRAM.to_owned(),
            engine: PROGRAM.to_owned(),
            score_form: None,
            precision: "unknown".to_owned(),
            commit: None,
            dirty: None,
            versions: BTreeMap::new(),
            started_utc: String::new(),
            weights: None,
            evaluated_by: None,
        })
    }
    fn headline(&self) -> &'a str {
        self.text("metric").unwrap_or("exact-match")
    }

    fn metric(&self) -> Result<Metric, ScoresError> {
        let refused = || self.refused("metric", "exact-match or perplexity");
        Metric::from_headline(self.headline()).ok_or_else(refused)
    }

    fn evaluation(&self, cell: &RunRecord) -> Result<EvalPoint, ScoresError> {
        let metric = self.metric()?;
        let costs = [
            ("train_len", Some(self.whole("train_len")? as f64), Some(cell.train_len as f64)),
            ("params", self.number("params")?, Some(cell.params.total as f64)),
            ("step_flops", self.number("step_flops")?, Some(cell.flops.train_step as f64)),
            ("step_seconds", self.positive("step_seconds")?, cell.train.step_seconds_median),
            ("peak_bytes", self.number("peak_bytes")?, cell.peak_bytes.map(|bytes| bytes as f64)),
        ];
        for (column, own, of_cell) in costs {
            if own.is_some() && own != of_cell {
                let expected = "the same value in all lines of an encoding, task and seed";
                return Err(self.refused(column, expected));
            }
        }
        let (split, len) = (self.required("split")?, self.whole("len")?);
        let trained = self.value("trained", "true or false")?.unwrap_or(split == TRAINED);
        let score = self.value::<f64>("score", "a number")?;
        let score = score.ok_or_else(|| self.refused("score", "a number"))?;
        let exact = metric == Metric::ExactMatch;
        if exact && !(0.0..=1.0).contains(&score) {
            return Err(self.refused("score", "an exact match from 0 to 1"));
        }
        if !exact && (score.is_nan() || score < 1.0) {
            return Err(self.refused("score", "a perplexity of at least 1"));
        }
        let answers = self.answers(metric, score)?;
        let samples = self.count("samples")?;
        let count = answers.as_ref().map(|answers| answers.len() as u64);
        if count.is_some() && samples.is_some() && count != samples {
            return Err(self.refused("samples", "the number of answers"));
        }
        let questions = cell_key(&json!([cell.task.id, split, len, count]));
        Ok(EvalPoint {
            split: split.to_owned(),
            in_distribution: trained && len <= cell.train_len,
            trained_split: Some(trained),
            len,
            samples: samples.or(count).unwrap_or_default(),
            scored_tokens: 0,
            exact_match: if exact { score } else { f64::NAN },
            token_accuracy: f64::NAN,
            nll: if exact { f64::NAN } else { score.ln() },
            perplexity: if exact { f64::NAN } else { score },
            bits_per_byte: None,
            seconds: f64::NAN,
            chance: self.chance(metric)?,
            outcomes: answers
                .map(|answers| Outcomes { questions, answers: Answers::ExactMatch(answers) }),
            unseen: None,
            ceiling: None,
            slices: Vec::new(),
        })
    }

    /// Whether each question was answered right: a digit 0 or 1 for each.
    fn answers(&self, metric: Metric, score: f64) -> Result<Option<Vec<bool>>, ScoresError> {
        let Some(text) = self.text("answers") else { return Ok(None) };
        if metric != Metric::ExactMatch {
            return Err(self.refused("answers", "no answers where the metric is perplexity"));
        }
        let answer = |digit| match digit {
            '0' => Some(false),
            '1' => Some(true),
            _ => None,
        };
        let answers = text.chars().map(answer).collect::<Option<Vec<_>>>();
        let answers = answers.ok_or_else(|| self.refused("answers", "digits 0 and 1"))?;
        let right = answers.iter().filter(|right| **right).count() as f64 / answers.len() as f64;
        if (right - score).abs() > 0.000_5 {
            return Err(self.refused(
                "answers",
                &format!(
                    "a share of {score} right answers (digit 1), as in the column \
                 score"
                ),
            ));
        }
        Ok(Some(answers))
    }
}

#[cfg(test)]
mod tests;

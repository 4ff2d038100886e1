//! Format of suite files, and those that are part of the program.

use std::path::Path;

use pe_zoo::settings::explain;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use super::SuiteError;
use super::ablation::AblationSection;
use super::error::{FieldError, at};
use crate::names::{did_you_mean, unknown};

/// Key of the built-in suite that a file changes.
const EXTENDS: &str = "extends";
/// Keys that a file does not take from the suite that it extends.
const OWN: [&str; 3] = ["name", "title", "about"];
/// Keys that define encodings; a file that has one takes none of them from the suite that it extends.
const ENCODINGS: [&str; 2] = ["encodings", "ablation"];

/// Contents of a suite file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SuiteFile {
    /// Name of the suite, and of the folder of its results.
    pub(super) name: String,
    /// Title of the report.
    pub(super) title: String,
    /// Question that the suite answers, in a sentence.
    pub(super) about: String,
    /// Seeds of every encoding.
    seeds: Vec<u64>,
    /// Encodings: ids, expressions, `"*"` for all, or maps with `kind`, settings and an optional `name`.
    pub(super) encodings: Option<Vec<Value>>,
    /// Learning rates that every encoding tries on `seeds`; reports rank each encoding at its best rate, which
    /// validation chooses.
    #[serde(default)]
    learning_rates: Vec<f64>,
    /// Seeds that run at the chosen rate after the grid; reports show the results of these seeds only.
    #[serde(default)]
    fresh_seeds: Vec<u64>,
    /// Base encoding and its changes, in place of `encodings`.
    pub(super) ablation: Option<AblationSection>,
    /// Comparison that is stated before the run.
    pub(super) question: Option<records::settings::Question>,
    /// Claims of papers, or planned contrasts.
    #[serde(default)]
    pub(super) claim: Vec<records::settings::PaperClaim>,
    /// Uses of encodings; the report names the best encodings for each use.
    #[serde(default, rename = "use")]
    pub(super) uses: Vec<records::settings::UseCase>,
    /// Criteria of the report.
    #[serde(default)]
    pub(super) report: records::settings::Settings,
    /// Limits of a cell.
    #[serde(default)]
    pub(super) budget: Map<String, Value>,
    /// Architecture of the decoder.
    #[serde(default)]
    pub(super) model: Map<String, Value>,
    /// The training.
    #[serde(default)]
    pub(super) train: Map<String, Value>,
    /// The evaluations.
    #[serde(default)]
    pub(super) eval: Map<String, Value>,
    /// Workloads of the suite, at least one.
    pub(super) workload: Vec<WorkloadSection>,
}

/// Section `[[workload]]`: a task with the settings that differ from those of the suite.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadSection {
    /// Name in reports, unique in the suite.
    pub(super) name: String,
    /// Task: its id, or a map with `kind` and settings (`pe-bench explain TASK`).
    pub(super) task: Value,
    /// Seeds of this workload, in place of those of the suite.
    seeds: Option<Vec<u64>>,
    /// Encodings of this workload, in place of those of the suite.
    pub(super) encodings: Option<Vec<Value>>,
    /// Learning rates of this workload, in place of those of the suite.
    learning_rates: Option<Vec<f64>>,
    /// Fresh seeds of this workload, in place of those of the suite.
    fresh_seeds: Option<Vec<u64>>,
    /// Lists of values by dotted path (`task.variables`): one workload for each value, or for each combination of
    /// values of several lists.
    #[serde(default)]
    pub(super) axes: Map<String, Value>,
    /// Limits that differ from those of the suite.
    #[serde(default)]
    pub(super) budget: Map<String, Value>,
    /// Keys of `[model]` that differ.
    #[serde(default)]
    pub(super) model: Map<String, Value>,
    /// Keys of `[train]` that differ.
    #[serde(default)]
    pub(super) train: Map<String, Value>,
    /// Keys of `[eval]` that differ.
    #[serde(default)]
    pub(super) eval: Map<String, Value>,
}

impl SuiteFile {
    /// Parses the text, with the suite that it extends, and checks the names. Also returns the text of that suite.
    pub(super) fn read(name: &str, text: &str) -> Result<(Self, Option<&'static str>), SuiteError> {
        let refuse = |error: FieldError| SuiteError::field(name, error);
        let mut fields = fields(name, text)?;
        let mut base = None;
        if let Some(named) = fields.remove(EXTENDS) {
            let (extended, text) =
                extended(&fields, &named).map_err(at(EXTENDS)).map_err(refuse)?;
            fields = extended;
            base = Some(text);
        }
        let file: Self = read("", Value::Object(fields)).map_err(refuse)?;
        check_name(&file.name).map_err(at("name")).map_err(refuse)?;
        for (index, workload) in file.workload.iter().enumerate() {
            let double = file.workload[..index].iter().any(|other| other.name == workload.name);
            if double || workload.name.trim().is_empty() {
                let reason = format!("`{}`, expected a unique, non-empty name", workload.name);
                return Err(refuse((format!("workload[{index}].name"), reason)));
            }
        }
        Ok((file, base))
    }

    /// Seeds of a workload that choose its rates: those of the command line, if there are any.
    pub(super) fn seeds<'a>(
        &'a self,
        workload: &'a WorkloadSection,
        asked: &'a [u64],
    ) -> &'a [u64] {
        if asked.is_empty() { workload.seeds.as_ref().unwrap_or(&self.seeds) } else { asked }
    }

    /// Learning rates of the grid of a workload; empty: no grid.
    pub(super) fn rates<'a>(&'a self, workload: &'a WorkloadSection) -> &'a [f64] {
        workload.learning_rates.as_ref().unwrap_or(&self.learning_rates)
    }

    /// Seeds on which the chosen rates of a workload are reported; empty: those that chose.
    pub(super) fn fresh_seeds<'a>(&'a self, workload: &'a WorkloadSection) -> &'a [u64] {
        workload.fresh_seeds.as_ref().unwrap_or(&self.fresh_seeds)
    }
}

/// Reads the fields of a file.
fn fields(name: &str, text: &str) -> Result<Map<String, Value>, SuiteError> {
    let table: Result<toml::Table, _> = toml::from_str(text);
    table
        .map_err(|error| (String::new(), error.to_string()))
        .and_then(|table| table_fields("", table))
        .map_err(|error| SuiteError::field(name, error))
}

/// Returns the fields of the built-in suite `base`, changed by `own`: sections are merged, everything else is replaced.
/// Also returns the text of the base.
fn extended(
    own: &Map<String, Value>,
    base: &Value,
) -> Result<(Map<String, Value>, &'static str), String> {
    let known = || BUILT_IN.iter().map(|(name, _)| *name);
    let Some((name, text)) =
        BUILT_IN.iter().find(|(name, _)| base.as_str().is_some_and(|base| base == *name))
    else {
        let near = did_you_mean(base.as_str().unwrap_or_default(), known());
        return Err(format!("{base}, expected the name of a built-in suite{near}"));
    };
    let mut all = fields(name, text).map_err(|error| error.to_string())?;
    if all.contains_key(EXTENDS) {
        return Err(format!(
            "`{name}` itself extends another suite; name that other suite instead"
        ));
    }
    all.retain(|key, _| !OWN.contains(&key.as_str()));
    if ENCODINGS.iter().any(|key| own.contains_key(*key)) {
        all.retain(|key, _| !ENCODINGS.contains(&key.as_str()));
    }
    Ok((merged(&all, own), text))
}

/// Checks the name of a suite, which is also the name of its results folder.
///
/// # Errors
/// Message with the name and the allowed characters.
pub fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(allowed) {
        return Err(format!("`{name}`, expected lower-case letters, digits and `-`"));
    }
    // A command line would take it for an option.
    if name.starts_with('-') {
        return Err(format!("`{name}`, expected a letter or digit at its beginning"));
    }
    Ok(())
}

/// Converts the fields of a table, which is at `path`, to JSON.
fn table_fields(path: &str, table: toml::Table) -> Result<Map<String, Value>, FieldError> {
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let field = |(key, value): (String, toml::Value)| {
        let value = json(&join(&key), value)?;
        Ok((key, value))
    };
    table.into_iter().map(field).collect()
}

/// Converts TOML to JSON. Values without a JSON form are refused, because `null` would mean an absent field.
fn json(path: &str, value: toml::Value) -> Result<Value, FieldError> {
    let refuse = |what: String| Err((path.to_owned(), what));
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::Float(number) if !number.is_finite() => {
            return refuse(format!("{number}, expected a finite number"));
        }
        toml::Value::Float(number) => match settled(number) {
            Some(number) => Value::Number(number),
            None => {
                return refuse(format!("{number} cannot be stored exactly, expected fewer digits"));
            }
        },
        toml::Value::Datetime(date) => {
            return refuse(format!(
                "the date {date}, expected a number, a string, a list or a map"
            ));
        }
        toml::Value::Array(items) => {
            let items = items.into_iter().enumerate();
            let items = items.map(|(index, item)| json(&format!("{path}[{index}]"), item));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        toml::Value::Table(table) => Value::Object(table_fields(path, table)?),
    })
}

/// Returns a number that is unchanged by a round trip through JSON: this one or its neighbour, because the parser may
/// change the last of 16 or more digits. A worker receives its cell as JSON, and another number would change the key.
fn settled(number: f64) -> Option<Number> {
    let mut number = Number::from_f64(number)?;
    for _ in 0..16 {
        let again: Number = serde_json::from_str(&number.to_string()).ok()?;
        if again == number {
            return Some(number);
        }
        number = again;
    }
    None
}

/// Deserializes a section; an error names the field below `prefix`.
pub(super) fn read<T: DeserializeOwned>(prefix: &str, value: Value) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let inner = error.path().to_string();
        let path = match (prefix, inner.as_str()) {
            (prefix, ".") => prefix.to_owned(),
            ("", inner) => inner.to_owned(),
            (prefix, inner) => format!("{prefix}.{inner}"),
        };
        let said = explain(&error.into_inner().to_string());
        let example = "; `pe-bench new suite NAME` prints a suite with every section";
        let example = if said.starts_with("missing field") { example } else { "" };
        (path, format!("{said}{example}"))
    })
}

/// Merges `own` into `base`, nested maps included; `own` takes precedence.
pub(super) fn merged(base: &Map<String, Value>, own: &Map<String, Value>) -> Map<String, Value> {
    let mut all = base.clone();
    for (key, value) in own {
        let value = match (all.get(key), value) {
            (Some(Value::Object(base)), Value::Object(own)) => Value::Object(merged(base, own)),
            _ => value.clone(),
        };
        all.insert(key.clone(), value);
    }
    all
}

/// Suites that are part of the program: name and text of each file of `suites/`, sorted by name. The build script
/// lists them.
pub const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/suites.rs"));

/// Text of a suite with every feature and comments, with a name of the caller.
pub fn example(name: &str) -> String {
    let text = include_str!("../../suites/example.toml.in");
    text.replace("{name}", name).trim_end().to_owned()
}

/// Name and text of a built-in suite, or of the file at a path.
///
/// # Errors
/// If there is none.
pub fn text(name_or_path: &str) -> anyhow::Result<(String, String)> {
    if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
        return Ok(((*name).to_owned(), (*text).to_owned()));
    }
    let path = Path::new(name_or_path);
    let looks_like_path = path.extension().is_some() || name_or_path.contains(['/', '\\']);
    anyhow::ensure!(
        looks_like_path || path.is_file(),
        "{}; or give the path of a TOML file",
        unknown("suite", name_or_path, BUILT_IN.iter().map(|(name, _)| *name))
    );
    anyhow::ensure!(
        !path.is_dir(),
        "{name_or_path} is a folder, but a suite is a TOML file or a built-in name (`pe-bench list suites`); \
         commands that read records take the results folder with --results"
    );
    let text = tasks::read_text(path).map_err(|error| {
        anyhow::anyhow!(
            "cannot read suite {name_or_path}: {}; check the path, or name a built-in suite (`pe-bench list suites`)",
            error.cause
        )
    })?;
    Ok((name_or_path.to_owned(), text))
}

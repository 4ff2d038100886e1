//! Suites: TOML files of encodings x workloads x seeds, and the cells that they stand for.

use std::path::{Path, PathBuf};

use pe_zoo::Combination;
use pe_zoo::attention::Engine;
use pe_zoo::settings::{explain, nearest};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tasks::TaskConfig;

use crate::backend::{self, EngineChoice};
use crate::cell::{Cell, EvalConfig, TrainConfig};
use crate::model::ModelConfig;

/// Suites that come with the program: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("first-look", include_str!("../suites/first-look.toml")),
    ("quick", include_str!("../suites/quick.toml")),
    ("smoke", include_str!("../suites/smoke.toml")),
];

/// A suite that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// No suite has this name and no file this path.
    #[error("unknown suite `{name}`{}; built in: {known}; or give the path of a TOML file", nearest.as_ref().map(|n| format!(", did you mean `{n}`?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name, if one is near.
        nearest: Option<String>,
        /// All names.
        known: String,
    },
    /// The file cannot be read.
    #[error("suite {path}: {source}; check the path", path = path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no TOML.
    #[error("suite {name}: {source}")]
    Syntax {
        /// The suite.
        name: String,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// A field is unknown, missing or of the wrong type.
    #[error("suite {name}: at `{path}`: {reason}")]
    Field {
        /// The suite.
        name: String,
        /// Where in it.
        path: String,
        /// What was wrong and what was expected.
        reason: String,
    },
}

/// A suite with its cells spelled out.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Kebab-case name; results go to a folder of this name.
    pub name: String,
    /// For people.
    pub title: String,
    /// What it is for, in a sentence or two.
    pub about: String,
    /// Every run, in the order of the file.
    pub cells: Vec<Cell<Combination>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    about: String,
    seeds: Vec<u64>,
    encodings: Vec<Value>,
    #[serde(default)]
    model: Map<String, Value>,
    #[serde(default)]
    train: Map<String, Value>,
    #[serde(default)]
    eval: Map<String, Value>,
    workload: Vec<Workload>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    name: String,
    task: Value,
    seeds: Option<Vec<u64>>,
    encodings: Option<Vec<Value>>,
    #[serde(default)]
    model: Map<String, Value>,
    #[serde(default)]
    train: Map<String, Value>,
    #[serde(default)]
    eval: Map<String, Value>,
}

/// What the command line changes about a suite.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// These seeds instead of the suite's.
    pub seeds: Vec<u64>,
    /// This backend.
    pub backend: Option<String>,
    /// This attention engine; the backend's fastest otherwise.
    pub engine: Option<Engine>,
    /// This text file for every workload on text.
    pub data: Option<PathBuf>,
    /// These encodings instead of the suite's: names or expressions, or lists of them. One that the
    /// suite has runs where the suite has it, any other on every workload.
    pub encodings: Vec<String>,
}

/// The text of a built-in suite, or of the file at a path.
///
/// # Errors
/// [`SuiteError`].
pub fn text(name_or_path: &str) -> Result<(String, String), SuiteError> {
    if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
        return Ok(((*name).to_owned(), (*text).to_owned()));
    }
    let path = Path::new(name_or_path);
    let looks_like_path = path.extension().is_some() || name_or_path.contains(['/', '\\']);
    if !looks_like_path && !path.is_file() {
        return Err(SuiteError::Unknown {
            name: name_or_path.to_owned(),
            nearest: nearest(name_or_path, BUILT_IN.iter().map(|(name, _)| *name)),
            known: BUILT_IN.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        });
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((name_or_path.to_owned(), text)),
        Err(source) => Err(SuiteError::Unreadable { path: path.to_owned(), source }),
    }
}

/// Reads a suite and spells out its cells.
///
/// # Errors
/// [`SuiteError`], the field named.
pub fn parse(name: &str, text: &str, overrides: &Overrides) -> Result<Suite, SuiteError> {
    let value: Value = toml::from_str(text)
        .map_err(|source| SuiteError::Syntax { name: name.to_owned(), source: Box::new(source) })?;
    let file: File = read(name, "", value)?;
    let field =
        |path: String, reason: String| SuiteError::Field { name: name.to_owned(), path, reason };
    if file.name.is_empty()
        || !file.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    {
        let reason = format!("`{}`, expected lower-case letters, digits and `-`", file.name);
        return Err(field("name".to_owned(), reason));
    }
    let mut raced = Vec::new();
    for workload in &file.workload {
        let encodings = workload.encodings.as_ref().unwrap_or(&file.encodings);
        let at = || format!("workload `{}`.encodings", workload.name);
        let encodings = with_all(encodings)
            .iter()
            .map(|entry| encoding(entry).map_err(|e| field(at(), e)))
            .collect::<Result<Vec<_>, _>>()?;
        raced.push(encodings);
    }
    choose(&mut raced, &overrides.encodings).map_err(|e| field("--encodings".to_owned(), e))?;
    let mut cells = Vec::new();
    for (workload, encodings) in file.workload.iter().zip(&raced) {
        let at = format!("workload `{}`", workload.name);
        let task =
            task_config(workload, overrides).map_err(|error| field(format!("{at}.task"), error))?;
        let section = |kind: &str, base: &Map<String, Value>, own: &Map<String, Value>| {
            (format!("{at}.{kind}"), Value::Object(merged(base, own)))
        };
        let (path, value) = section("model", &file.model, &workload.model);
        let model: ModelConfig = read(name, &path, value)?;
        let (path, value) = section("train", &file.train, &workload.train);
        let train: TrainConfig = read(name, &path, value)?;
        let (path, value) = section("eval", &file.eval, &workload.eval);
        let eval: EvalConfig = read(name, &path, value)?;
        let seeds = match (overrides.seeds.is_empty(), &workload.seeds) {
            (false, _) => &overrides.seeds,
            (true, Some(seeds)) => seeds,
            (true, None) => &file.seeds,
        };
        let backend = overrides.backend.clone().unwrap_or_else(|| "flex".to_owned());
        let engine = overrides.engine.unwrap_or_else(|| {
            backend::engine(EngineChoice::Auto, &backend).unwrap_or(Engine::Reference)
        });
        for seed in seeds {
            for (encoding_name, encoding) in encodings {
                cells.push(Cell {
                    workload: workload.name.clone(),
                    name: encoding_name.clone(),
                    encoding: encoding.clone(),
                    task: task.clone(),
                    model: model.clone(),
                    train: train.clone(),
                    eval: eval.clone(),
                    grid: None,
                    seed: *seed,
                    backend: backend.clone(),
                    engine,
                });
            }
        }
    }
    if cells.is_empty() {
        let reason = "no cell, expected at least one seed, encoding and workload".to_owned();
        return Err(field("workload".to_owned(), reason));
    }
    if let Some((workload, encoding)) = twice(&cells) {
        let reason =
            format!("encoding `{encoding}` stands twice; give one of them another `name = \"…\"`");
        return Err(field(format!("workload `{workload}`"), reason));
    }
    Ok(Suite { name: file.name, title: file.title, about: file.about, cells })
}

/// `"*"` stands for every encoding of the registry at its defaults.
fn with_all(entries: &[Value]) -> Vec<Value> {
    let all = || pe_zoo::zoo::ALL.iter().map(|meta| Value::from(meta.id));
    entries
        .iter()
        .flat_map(|entry| if entry == "*" { all().collect() } else { vec![entry.clone()] })
        .collect()
}

/// Reads an encoding: an expression, or a map with the expression as `kind`, settings of its only
/// part, and a `name` if it is to have one of its own.
///
/// # Errors
/// The reason, in words.
pub fn encoding(entry: &Value) -> Result<Named, String> {
    let (kind, name, fields) = match entry {
        Value::String(text) => (text.clone(), None, Map::new()),
        Value::Object(fields) => {
            let mut fields = fields.clone();
            let mut take = |key: &str| match fields.remove(key) {
                None => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(other) => Err(format!("`{key}` is {other}, expected a string")),
            };
            let (kind, name) = (take("kind")?, take("name")?);
            let kind = kind.ok_or_else(|| {
                "a map without `kind`, expected for example { kind = \"rope\" }".to_owned()
            })?;
            (kind, name, fields)
        }
        other => return Err(format!("{other}, expected an expression or a map with `kind`")),
    };
    let config = Combination::with_options(&kind, fields).map_err(|error| error.to_string())?;
    Ok((name.unwrap_or_else(|| config.to_string()), config))
}

/// An encoding and its name within a suite.
pub type Named = (String, Combination);

/// Replaces the encodings of each workload by those that the command line asks for.
fn choose(raced: &mut [Vec<Named>], asked: &[String]) -> Result<(), String> {
    if asked.is_empty() {
        return Ok(());
    }
    let known = raced.iter().flatten().cloned().collect::<Vec<_>>();
    let has_name = |text: &str| known.iter().any(|(name, _)| name == text);
    let mut chosen = Vec::new();
    for text in asked {
        let items =
            if has_name(text) { vec![text.as_str()] } else { Combination::split_list(text) };
        for item in items {
            chosen
                .push((item, if has_name(item) { None } else { Some(expression(item, &known)?) }));
        }
    }
    for encodings in raced {
        *encodings = chosen
            .iter()
            .flat_map(|(text, expression)| match expression {
                None => encodings.iter().filter(|(name, _)| name == text).cloned().collect(),
                Some(asked) if known.iter().any(|(_, config)| config == asked) => {
                    encodings.iter().filter(|(_, config)| config == asked).cloned().collect()
                }
                Some(asked) => vec![(asked.to_string(), asked.clone())],
            })
            .collect();
    }
    Ok(())
}

/// Reads what is no name of the suite; a mistake suggests the nearest name as well.
fn expression(text: &str, known: &[Named]) -> Result<Combination, String> {
    Combination::parse(text).map_err(|error| {
        let said = error.to_string();
        match nearest(text, known.iter().map(|(name, _)| name.as_str())) {
            Some(near) if !said.contains("did you mean") => {
                format!("{said}; or did you mean the suite's `{near}`?")
            }
            _ => said,
        }
    })
}

fn task_config(workload: &Workload, overrides: &Overrides) -> Result<TaskConfig, String> {
    let value = match &workload.task {
        Value::String(id) => json!({ "kind": id }),
        other => other.clone(),
    };
    let config: TaskConfig =
        serde_json::from_value(value).map_err(|error| explain(&error.to_string()))?;
    match &overrides.data {
        Some(path) if config.meta().takes_path => {
            // The task's other settings stay.
            let mut value = serde_json::to_value(&config).map_err(|error| error.to_string())?;
            if let Value::Object(fields) = &mut value {
                fields.remove("corpus");
                fields.insert("path".to_owned(), json!(path));
            }
            serde_json::from_value(value).map_err(|error| error.to_string())
        }
        _ => Ok(config),
    }
}

fn read<T: serde::de::DeserializeOwned>(
    name: &str,
    prefix: &str,
    value: Value,
) -> Result<T, SuiteError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let inner = error.path().to_string();
        let path = match (prefix, inner.as_str()) {
            (prefix, ".") => prefix.to_owned(),
            ("", inner) => inner.to_owned(),
            (prefix, inner) => format!("{prefix}.{inner}"),
        };
        SuiteError::Field {
            name: name.to_owned(),
            path,
            reason: explain(&error.into_inner().to_string()),
        }
    })
}

/// `own` over `base`, maps within maps merged.
fn merged(base: &Map<String, Value>, own: &Map<String, Value>) -> Map<String, Value> {
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

fn twice(cells: &[Cell<Combination>]) -> Option<(String, String)> {
    let mut seen = std::collections::BTreeSet::new();
    cells
        .iter()
        .find(|cell| !seen.insert((&cell.workload, &cell.name, cell.seed)))
        .map(|cell| (cell.workload.clone(), cell.name.clone()))
}

#[cfg(test)]
mod tests;

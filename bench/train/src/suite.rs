//! Suites: TOML files of encodings x workloads x seeds, expanded to cells.
//!
//! A file may extend a built-in suite, a workload may vary settings over axes, and every cell may be run once for each
//! learning rate of a grid.
//! `suites/example.toml.in` shows every feature with comments.

mod ablation;
mod axes;
mod encodings;
mod error;
mod file;
mod grid;
mod values;

use std::collections::BTreeSet;
use std::path::PathBuf;

use pe_zoo::attention::Engine;
use pe_zoo::ops::MatmulPrecision;
use pe_zoo::settings::explain;
use records::GridPoint;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tasks::TaskConfig;
use tasks::suite::text::TextConfig;
use tasks::suite::text_passage::TextPassageConfig;
use tasks::tokenizer::TokenizerConfig;

pub use encodings::{Named, encoding};
pub use error::SuiteError;
pub use file::{BUILT_IN, check_name, example, text};
pub use grid::AXIS;

use crate::backend;
use crate::experiment::{Budget, EvalConfig, Experiment, TrainConfig};
use axes::WorkloadVariant;
use error::{FieldError, at};
use file::{SuiteFile, WorkloadSection, merged};
use pe_zoo::model::ModelConfig;

/// Maximum number of cells of a suite.
pub const MOST_CELLS: usize = 100_000;

/// Suite with all its cells.
#[derive(Debug, Clone, Default)]
pub struct Suite {
    /// Kebab-case name; results go to a folder of this name.
    pub name: String,
    /// SHA-256 of the text of the file, followed by that of the suite that it extends, 64 lower-case hex digits; `None` for
    /// cells that no file describes.
    pub sha256: Option<String>,
    /// Title shown to readers.
    pub title: String,
    /// Purpose of the suite in one or two sentences.
    pub about: String,
    /// Criteria of its report, the base of its ablation, and its question.
    pub report: records::settings::Settings,
    /// All cells, in the order of the file.
    pub cells: Vec<Experiment>,
    /// Cells of the fresh seeds at every rate of their grid; [`fresh_cells`](Self::fresh_cells) are those to run.
    pub fresh: Vec<Experiment>,
}

/// Settings of a suite that the command line overrides.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Seeds that replace the suite's; empty: no change.
    pub seeds: Vec<u64>,
    /// Name of the backend.
    pub backend: Option<String>,
    /// Attention engine; `None`: the fastest of the backend.
    pub engine: Option<Engine>,
    /// Precision of matrix products that replaces the suite's.
    pub precision: Option<MatmulPrecision>,
    /// Text file or folder for every text workload.
    pub data: Option<PathBuf>,
    /// Encodings that replace the suite's: names, expressions or lists of them. An encoding of the suite runs on the
    /// workloads that have it, any other on every workload.
    pub encodings: Vec<String>,
    /// Names of the workloads to run, with or without the values of their axes, or lists of them; empty: all.
    pub workloads: Vec<String>,
}

/// Option of [`Overrides::encodings`], the place of an error about them.
pub const ENCODINGS: &str = "--encodings";

/// Option of [`Overrides::seeds`], the place of an error about them.
const SEEDS: &str = "--seeds";

/// Option of [`Overrides::workloads`], the place of an error about them.
pub const WORKLOADS: &str = "--workloads";

/// Assumed vocabulary of a text that is not read, about that of its characters.
const TEXT_VOCABULARY: usize = 100;

impl Suite {
    /// Approximate number of operations of training all cells, without those of encodings. Texts are not read.
    pub fn operations(&self) -> f64 {
        let of = |cell: &Experiment| {
            // Building a text task could fetch its corpus.
            let task = if cell.task.meta().takes_path { None } else { cell.task.build().ok() };
            let text = cell.task.get::<TextConfig>().map(|text| &text.tokenizer);
            let (vocabulary, len) = match (task, text, cell.task.get::<TextPassageConfig>()) {
                (Some(task), ..) => (task.vocab_size(), cell.token_lens(&*task)[0]),
                (None, Some(TokenizerConfig::Bpe(pairs)), _) => (*pairs as usize, cell.train.len),
                (None, _, Some(passage)) => (passage.words as usize, cell.train.len),
                (None, ..) => (TEXT_VOCABULARY, cell.train.len),
            };
            let step = cell.model.step_operations(vocabulary, len, cell.train.batch_size);
            step * cell.train.steps as f64
        };
        self.cells.iter().map(of).sum()
    }

    /// Cells of the fresh seeds at one rate each: as many as follow when the rates are chosen.
    pub fn following(&self) -> impl Iterator<Item = &Experiment> {
        self.fresh.iter().filter(|cell| cell.grid.as_ref().is_some_and(|point| point.default))
    }

    /// Checks that a cell has the encoding that `option` of the command line names.
    ///
    /// # Errors
    /// [`SuiteError`] with the names of the suite.
    pub fn check_encoding(&self, option: &str, name: &str) -> Result<(), SuiteError> {
        let known = || self.cells.iter().map(|cell| cell.name.as_str());
        if known().any(|known| known == name) {
            return Ok(());
        }
        Err(SuiteError::field(&self.name, at(option)(unknown("encoding", name, known()))))
    }
}

/// Parses a suite and expands it to cells.
///
/// # Errors
/// [`SuiteError`], which names the field.
pub fn parse(name: &str, text: &str, overrides: &Overrides) -> Result<Suite, SuiteError> {
    let (file, base) = SuiteFile::read(name, text).map_err(|error| error.shown_in(text))?;
    let (cells, fresh, report) = expanded(&file, overrides)
        .map_err(|error| SuiteError::field(name, error).shown_in(text))?;
    let SuiteFile { name, title, about, .. } = file;
    let digest = Sha256::new().chain_update(text).chain_update(base.unwrap_or_default());
    let sha256 = Some(records::store::hex(&digest.finalize()));
    Ok(Suite { name, sha256, title, about, report, cells, fresh })
}

/// Cells of a suite, cells of its fresh seeds, and settings of its report.
type Expanded = (Vec<Experiment>, Vec<Experiment>, records::settings::Settings);

fn expanded(file: &SuiteFile, overrides: &Overrides) -> Result<Expanded, FieldError> {
    let (mut selected, report) = select(file)?;
    encodings::choose(&mut selected, &overrides.encodings).map_err(at(ENCODINGS))?;
    values::distinct(&overrides.seeds).map_err(at(SEEDS))?;
    // Counted before the expansion, so that a huge suite is refused at once.
    let count = file.workload.iter().zip(&selected).fold(0_usize, |sum, (workload, encodings)| {
        let rates = file.rates(workload).len().max(1);
        let seeds = file.seeds(workload, &overrides.seeds).len() + file.fresh_seeds(workload).len();
        let counts = [encodings.len(), seeds, rates, axes::count(&workload.axes)];
        sum.saturating_add(counts.into_iter().fold(1, usize::saturating_mul))
    });
    if count > MOST_CELLS {
        let reason = format!(
            "{count} cells, expected at most {MOST_CELLS}; remove values from the axes, seeds, \
             learning_rates or encodings"
        );
        return Err(at("workload")(reason));
    }
    let (mut cells, mut fresh) = (Vec::with_capacity(count), Vec::new());
    let expanded = file.workload.iter().map(|workload| axes::expand(file, workload));
    let expanded = expanded.collect::<Result<Vec<_>, _>>()?;
    let names = file.workload.iter().zip(&expanded).flat_map(|(workload, variants)| {
        [&workload.name].into_iter().chain(variants.iter().map(|variant| &variant.name))
    });
    let names = names.cloned().collect::<Vec<String>>();
    let lists = overrides.workloads.iter();
    let asked = lists.flat_map(|list| encodings::items(list, &names.iter().map(String::as_str)));
    let asked_for = asked.map(str::to_owned).collect::<Vec<_>>();
    values::distinct(&asked_for).map_err(at(WORKLOADS))?;
    for ((workload, encodings), variants) in file.workload.iter().zip(&selected).zip(expanded) {
        for variant in variants {
            let is_asked = |asked: &String| *asked == workload.name || *asked == variant.name;
            if asked_for.is_empty() || asked_for.iter().any(is_asked) {
                add_cells(file, workload, &variant, encodings, overrides, &mut cells, &mut fresh)?;
            }
        }
    }
    let question = file.question.iter().flat_map(|question| &question.tasks);
    let asked = question.map(|task| ("question.tasks", task));
    let claimed = file.claim.iter().flat_map(|claim| &claim.comparisons);
    let claimed = claimed.flat_map(|question| &question.tasks);
    let asked = asked.chain(claimed.map(|task| ("claim.comparisons.tasks", task)));
    let used = file.uses.iter().flat_map(|one| &one.tasks);
    let asked = asked.chain(used.map(|task| ("use.tasks", task)));
    for (path, task) in asked.chain(asked_for.iter().map(|task| (WORKLOADS, task))) {
        if !names.contains(task) {
            return Err(at(path)(unknown("workload", task, names.iter().map(String::as_str))));
        }
    }
    if cells.is_empty() {
        let reason = "no cell, expected at least one seed, encoding and workload";
        return Err(at("workload")(reason.to_owned()));
    }
    refuse_doubles(cells.iter().chain(&fresh))?;
    Ok((cells, fresh, report))
}

/// Returns the encodings of each workload, and the settings of the report with the base of the ablation.
fn select(file: &SuiteFile) -> Result<(Vec<Vec<Named>>, records::settings::Settings), FieldError> {
    let mut report = file.report.clone();
    let common = match (&file.encodings, &file.ablation) {
        (Some(_), Some(_)) => {
            let reason =
                "both `encodings` and `[ablation]` are given, and the ablation defines the \
                          encodings; keep one"
                    .to_owned();
            return Err(at("encodings")(reason));
        }
        (Some(entries), None) => Some(encodings::read_all(entries).map_err(at("encodings"))?),
        (None, Some(ablation)) => {
            let (base, encodings) = ablation.encodings()?;
            if report.ablation_base.replace(base).is_some() {
                let reason = "both `report.ablation_base` and `[ablation]` are given; keep one";
                return Err(at("report.ablation_base")(reason.to_owned()));
            }
            Some(encodings)
        }
        (None, None) => None,
    };
    let mut selected = Vec::new();
    for workload in &file.workload {
        let path = format!("workload `{}`.encodings", workload.name);
        selected.push(match (&workload.encodings, &common) {
            (Some(own), _) => encodings::read_all(own).map_err(at(path))?,
            (None, Some(common)) => common.clone(),
            (None, None) => {
                let reason =
                    "missing, expected a list such as [\"nope\", \"rope\"], or `[ablation]`";
                return Err(at("encodings")(reason.to_owned()));
            }
        });
    }
    if let Some(question) = &file.question {
        if report.question.replace(question.clone()).is_some() {
            let reason = "both `report.question` and `[question]` are given; keep one";
            return Err(at("report.question")(reason.to_owned()));
        }
        question.check().map_err(at("question.encodings"))?;
    }
    if !file.claim.is_empty() && !report.claims.is_empty() {
        let reason = "both `report.claims` and `[[claim]]` are given; keep one".to_owned();
        return Err(at("report.claims")(reason));
    }
    report.claims.extend(file.claim.iter().cloned());
    report.uses.extend(file.uses.iter().cloned());
    report.check().map_err(|error| at("report")(error.to_string()))?;
    let asked = report.question.iter().flat_map(|question| &question.encodings);
    let claimed = report.claims.iter().flat_map(|claim| &claim.comparisons);
    let claimed = claimed.flat_map(|question| &question.encodings);
    let asked = asked
        .map(|name| ("question.encodings", name))
        .chain(claimed.map(|name| ("claim.comparisons.encodings", name)));
    let base = report.ablation_base.iter().map(|name| ("report.ablation_base", name));
    let known = || selected.iter().flatten().map(|(name, _)| name.as_str());
    for (path, name) in base.chain(asked) {
        if known().all(|known| known != name) {
            return Err(at(path)(unknown("encoding", name, known())));
        }
    }
    Ok((selected, report))
}

/// Returns the message that the suite has no `kind` of this name, with its names and the one that is meant: an encoding
/// that is called by its expression, such as `cope{max_positions=32}`, or the nearest.
fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known = known.collect::<BTreeSet<_>>();
    let with_settings = known.iter().find(|known| known.starts_with(&format!("{name}{{")));
    let near = with_settings
        .map(|known| (*known).to_owned())
        .or_else(|| pe_zoo::settings::nearest(name, known.iter().copied()))
        .map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
    if !near.is_empty() {
        return format!("no {kind} of the suite is named `{name}`{near}");
    }
    let known = known.into_iter().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", ");
    format!("no {kind} of the suite is named `{name}`, expected one of {known}")
}

/// Adds the cells of one variant of a workload to the cells of the suite, and those of its fresh seeds to `fresh`.
fn add_cells(
    file: &SuiteFile,
    workload: &WorkloadSection,
    variant: &WorkloadVariant,
    encodings: &[Named],
    overrides: &Overrides,
    cells: &mut Vec<Experiment>,
    fresh: &mut Vec<Experiment>,
) -> Result<(), FieldError> {
    let place = |section: &str| format!("{}.{section}", variant.place);
    let task = task_config(variant.section("task"), overrides).map_err(at(place("task")))?;
    let model: ModelConfig = file::read(&place("model"), variant.section("model"))?;
    let mut train: TrainConfig = file::read(&place("train"), variant.section("train"))?;
    train.precision = overrides.precision.unwrap_or(train.precision);
    let eval: EvalConfig = file::read(&place("eval"), variant.section("eval"))?;
    let budget = Value::Object(merged(&file.budget, &workload.budget));
    let budget: Budget = file::read(&place("budget"), budget)?;
    budget.check().map_err(|error| at(place("budget"))(error.to_string()))?;
    let rates = file.rates(workload);
    if workload.axes.contains_key(AXIS) && !rates.is_empty() {
        let reason = format!("both the axis `{AXIS}` and `learning_rates` are given; keep one");
        return Err(at(place("axes"))(reason));
    }
    let trainings = grid::trainings(rates, &train).map_err(at(place("learning_rates")))?;
    let backend = overrides.backend.clone().unwrap_or_else(|| "flex".to_owned());
    let engine = overrides
        .engine
        .unwrap_or_else(|| backend::engine(None, &backend).unwrap_or(Engine::Reference));
    let chosen_on = file.seeds(workload, &overrides.seeds);
    let reported_on = file.fresh_seeds(workload);
    // Seeds of the command line are at fault there, not those of the file.
    let place = if overrides.seeds.is_empty() {
        format!("workload `{}`.fresh_seeds", workload.name)
    } else {
        SEEDS.to_owned()
    };
    grid::check_fresh(reported_on, chosen_on, rates).map_err(at(place))?;
    for (seeds, is_fresh, group) in [(chosen_on, false, cells), (reported_on, true, fresh)] {
        for seed in seeds {
            for (name, encoding) in encodings {
                group.extend(trainings.iter().map(|(train, grid)| Experiment {
                    workload: variant.name.clone(),
                    name: name.clone(),
                    encoding: encoding.clone(),
                    task: task.clone(),
                    model: model.clone(),
                    train: train.clone(),
                    eval: eval.clone(),
                    seed: *seed,
                    grid: grid.clone().map(|point| GridPoint { fresh: is_fresh, ..point }),
                    budget,
                    backend: backend.clone(),
                    engine,
                }));
            }
        }
    }
    Ok(())
}

fn task_config(value: Value, overrides: &Overrides) -> Result<TaskConfig, String> {
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

/// Checks that no two cells have the same workload, encoding, seed and learning rate.
fn refuse_doubles<'a>(cells: impl Iterator<Item = &'a Experiment>) -> Result<(), FieldError> {
    let mut seen = BTreeSet::new();
    for cell in cells {
        let rate = cell.grid.as_ref().map(|point| point.value.to_bits());
        if !seen.insert((&cell.workload, &cell.name, cell.seed, rate)) {
            let reason = format!(
                "encoding `{}` with seed {} is listed twice; give one of the two another `name = \"…\"`, or remove \
                 the seed",
                cell.name, cell.seed
            );
            return Err((format!("workload `{}`", cell.workload), reason));
        }
    }
    Ok(())
}

/// Returns the fields of a workload's task; a string is its `kind`.
fn task_fields(task: &Value) -> Result<Map<String, Value>, String> {
    match task {
        Value::String(id) => Ok(Map::from_iter([("kind".to_owned(), Value::from(id.as_str()))])),
        Value::Object(fields) => Ok(fields.clone()),
        other => Err(format!("{other}, expected the id of a task or a map with `kind`")),
    }
}

#[cfg(test)]
mod tests;

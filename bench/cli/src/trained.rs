//! Trained cells, found by key, name or path, with their kept weights.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use burn::module::Module;
use burn::tensor::Device;
use clap::Args;
use records::{RunRecord, WeightsAt};
use tasks::Task;

use super::compute::ComputeArgs;
use super::conflict::{self, FolderRecord};
use super::folders;
use super::out::complain;
use super::parsers::Suggested;
use llm::pretrained::{ModelMeta, Pretrained, known, place};
use pe_zoo::model::Decoder;
use train::backend;
use train::experiment::{Experiment, of_record};
use train::names::unknown;
use train::run;
use train::run::kept::{KeptTraining, weights_path};
use train::suite::{self, Overrides};

/// Arguments that name a trained cell and compute with it.
#[derive(Args, Clone)]
pub(super) struct CellArgs {
    #[command(flatten)]
    pub(super) choice: CellChoice,
    #[command(flatten)]
    pub(super) compute: ComputeArgs,
}

/// Arguments that name a trained cell.
#[derive(Args, Clone)]
pub(super) struct CellChoice {
    /// Trained cell: the key of a record or the beginning of a key (`pe-bench cells` lists the keys), the path of saved
    /// weights (.safetensors), or SUITE WORKLOAD ENCODING.
    #[arg(num_args = 1..=3, value_names = ["CELL"], value_parser = Suggested::ALL)]
    pub(super) cell: Vec<String>,
    /// Results folder to search for records and weights; may be repeated. Default: every folder with records below
    /// `results`.
    #[arg(long, value_name = "DIR")]
    pub(super) results: Vec<PathBuf>,
    /// Seed of the cell, for SUITE WORKLOAD ENCODING; default: the suite's first seed.
    #[arg(long, alias = "seeds")]
    pub(super) seed: Option<u64>,
    /// Use the weights of the best validation (`run --keep-weights best`) instead of the last weights.
    #[arg(long)]
    pub(super) best: bool,
}

/// Cell with its trained model.
pub(super) struct TrainedCell {
    pub(super) experiment: Experiment,
    pub(super) task: Box<dyn Task>,
    /// Record of the training, without evaluations.
    pub(super) record: RunRecord,
    /// The model, without autodiff.
    pub(super) model: Decoder,
    /// Device of the model.
    pub(super) device: Device,
}

impl TrainedCell {
    /// Finds a cell and builds its model from kept weights.
    pub(super) fn open(arguments: &CellArgs) -> anyhow::Result<Self> {
        let kept = find(&arguments.choice)?;
        let (mut experiment, task) = of_record(&kept.record)?;
        arguments.compute.apply(&mut experiment)?;
        let (model, device) = run::build(&experiment, &*task)?;
        let model = kept.restore(model.valid())?;
        Ok(Self { experiment, task, record: kept.record, model, device: device.inner() })
    }
}

/// Opens a model by the key of a record with kept weights, or as [`Pretrained::open`] does.
pub(super) fn pretrained(given: &str, device: &Device) -> anyhow::Result<Pretrained> {
    let is_key = (4..=16).contains(&given.len()) && given.bytes().all(|b| b.is_ascii_hexdigit());
    if is_key && known(given).is_none() && !Path::new(given).exists() {
        return Pretrained::of_kept(by_key(given, &[], WeightsAt::Last)?, device);
    }
    if let Some(meta) = known(given) {
        announce(meta);
    }
    let opened = Pretrained::open(given, device)?;
    for note in &opened.notes {
        complain(note);
    }
    Ok(opened)
}

/// Prints that a model which is not on this machine is fetched.
pub(super) fn announce(meta: &ModelMeta) {
    if !place(meta).exists() {
        let size = meta.bytes.div_ceil(1 << 20);
        complain(&format!("fetching {} ({size} MiB) through pip", meta.id));
    }
}

/// Finds the kept weights of a cell.
pub(super) fn find(arguments: &CellChoice) -> anyhow::Result<KeptTraining> {
    let at = if arguments.best { WeightsAt::Best } else { WeightsAt::Last };
    match arguments.cell.as_slice() {
        [suite] if suite::BUILT_IN.iter().any(|(name, _)| name == suite) => anyhow::bail!(
            "`{suite}` is a suite; also name one of its workloads and encodings, such as `quick flip-flop cope`"
        ),
        [key] => {
            anyhow::ensure!(
                arguments.seed.is_none(),
                "--seed applies only to SUITE WORKLOAD ENCODING, because a record has its own seed; leave out --seed"
            );
            by_key_or_path(key, &arguments.results, at)
        }
        [suite, workload, encoding] => {
            let cells = by_name(suite, workload, encoding, arguments.seed)?;
            let folders = folders::or_all(&arguments.results)?;
            let cells = cells.into_iter().map(|cell| cell.task.build().map(|task| (cell, task)));
            kept_of(suite, &cells.collect::<Result<Vec<_>, _>>()?, &folders, at)
        }
        _ => anyhow::bail!(
            "expected the key of a record, or three names SUITE WORKLOAD ENCODING such as `quick flip-flop cope`"
        ),
    }
}

/// Finds kept weights by the key of their record, or a prefix of it, or by their path.
fn by_key_or_path(given: &str, results: &[PathBuf], at: WeightsAt) -> anyhow::Result<KeptTraining> {
    if !given.ends_with(".safetensors") {
        return by_key(given, results, at);
    }
    let path = Path::new(given);
    let none = || {
        format!(
            "{}: the settings file {} does not exist, or the training has not finished; expected weights that `pe-bench \
             run` saved",
            path.display(),
            path.with_extension("json").display()
        )
    };
    KeptTraining::read(path)?.with_context(none)
}

/// Number of keys in a message.
const SHOWN: usize = 4;

/// Finds the weights of the record whose key begins with `key`.
fn by_key(key: &str, results: &[PathBuf], at: WeightsAt) -> anyhow::Result<KeptTraining> {
    let mut folders = folders::or_all(results)?;
    let mut found: Vec<(usize, RunRecord)> = Vec::new();
    let mut unreadable = Vec::new();
    for (index, folder) in folders.iter().enumerate() {
        for record in analysis::folder::read_each(folder)? {
            match record {
                Ok(record) if record.key.starts_with(key) => found.push((index, record)),
                Ok(_) => {}
                Err(error) => unreadable.push(error),
            }
        }
    }
    conflict::refuse(found.iter().map(|(index, record)| (folders[*index].as_path(), record)))?;
    conflict::refuse_within(&folders)?;
    // Several folders may contain the same cell.
    found.sort_by(|(_, a), (_, b)| b.started_utc.cmp(&a.started_utc));
    let mut seen = BTreeSet::new();
    found.retain(|(_, record)| seen.insert(record.key.clone()));
    let places = folders::names(&folders);
    match found.as_slice() {
        [(index, record)] => {
            // The folder of the record comes first.
            folders.swap(0, *index);
            kept_of(&record.suite, &[of_record(record)?], &folders, at)
        }
        [] => {
            folders::refuse_left_out("records", &folders::messages(&unreadable))?;
            anyhow::bail!(
                "no record has a key that begins with `{key}` in {places}; `pe-bench cells` lists the keys"
            )
        }
        several => {
            let keys = several.iter().take(SHOWN).map(|(_, record)| record.key.as_str());
            anyhow::bail!(
                "`{key}` is ambiguous: {} keys begin with it, such as {}; give more characters of the key",
                several.len(),
                keys.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

/// Reads the weights of the first of the cells that has some, from the first folder that has them.
///
/// # Errors
/// If there are none, with the command that trains the first cell.
fn kept_of(
    suite: &str,
    cells: &[(Experiment, Box<dyn Task>)],
    folders: &[PathBuf],
    at: WeightsAt,
) -> anyhow::Result<KeptTraining> {
    for (experiment, task) in cells {
        let training = experiment.training(&**task);
        let mut kept: Option<(&Path, KeptTraining)> = None;
        for folder in folders {
            let Some(own) = KeptTraining::read(&weights_path(folder, &training, at))? else {
                continue;
            };
            let Some((first, before)) = &kept else {
                kept = Some((folder, own));
                continue;
            };
            conflict::refuse_weights(
                FolderRecord { folder: first, record: &before.record },
                FolderRecord { folder, record: &own.record },
            )?;
        }
        if let Some((_, kept)) = kept {
            return Ok(kept);
        }
    }
    let (experiment, task) = cells.first().context("no cell")?;
    let training = experiment.training(&**task);
    let places = folders::names(folders);
    let which = if at == WeightsAt::Best { "best" } else { "last" };
    let file = weights_path(Path::new(""), &training, at);
    let key = experiment.key(&**task);
    let has_record = |folder: &PathBuf| {
        let each = analysis::folder::read_each(folder).into_iter().flatten().flatten();
        each.into_iter().any(|record| record.key == key)
    };
    // A cell with a record is finished, and would not be trained again.
    let force = if folders.iter().any(has_record) { " --force" } else { "" };
    let Experiment { name, workload, seed, .. } = experiment;
    // Fresh seeds follow those that choose the rates; they cannot be asked for alone.
    let is_fresh = experiment.grid.as_ref().is_some_and(|point| point.fresh);
    let asked = if is_fresh { String::new() } else { format!(" --seeds {seed}") };
    anyhow::bail!(
        "no weights of {name} on {workload}, seed {seed} are saved; this command trains the cell and saves its \
         weights: `pe-bench run {suite} --workloads '{workload}' --encodings '{name}'{asked} --keep-weights \
         {which}{force}` (looked for {} in {places})",
        file.display(),
    )
}

/// Finds the cells of a workload and an encoding at one seed: one, or one for each rate that the suite compares.
fn by_name(
    suite: &str,
    workload: &str,
    encoding: &str,
    seed: Option<u64>,
) -> anyhow::Result<Vec<Experiment>> {
    let (name, text) = suite::text(suite)?;
    let mut overrides = Overrides {
        backend: Some("flex".to_owned()),
        engine: Some(backend::engine(None, "flex")?),
        encodings: vec![encoding.to_owned()],
        ..Overrides::default()
    };
    let parse = |overrides: &Overrides| {
        suite::parse(&name, &text, overrides)
            .map_err(|error| error.moved(suite::ENCODINGS, "ENCODING"))
    };
    let mut suite = parse(&overrides)?;
    suite.cells.append(&mut suite.fresh);
    let names: BTreeSet<String> = suite.cells.iter().map(|cell| cell.workload.clone()).collect();
    suite.cells.retain(|cell| cell.workload == workload);
    let Some(first) = suite.cells.first() else {
        let said = unknown("workload", workload, names.iter().map(String::as_str));
        anyhow::bail!("suite {name} with {encoding}: {said}")
    };
    let seed = seed.unwrap_or(first.seed);
    if suite.cells.iter().all(|cell| cell.seed != seed) {
        // Not a seed of the suite: `run --seeds` may have trained it.
        overrides.seeds = vec![seed];
        overrides.workloads = vec![workload.to_owned()];
        suite = parse(&overrides)?;
    }
    suite.cells.retain(|cell| cell.seed == seed);
    Ok(suite.cells)
}

/// Complains if a sequence is longer than those that a model was trained on, and returns whether it is.
pub(super) fn complain_beyond(what: &str, tokens: usize, pretrained: &Pretrained) -> bool {
    let trained = pretrained.context;
    if tokens > trained {
        complain(&format!(
            "{what} {tokens} tokens, but {} was trained on sequences of {trained} tokens",
            pretrained.name
        ));
    }
    tokens > trained
}
